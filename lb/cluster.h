// SPDX-License-Identifier: Apache-2.0
// A cluster in a snapshot: name, dense id, and its present picker. Immutable; a new state makes a
// new object. An id stays while the cluster exists, so route tables need not change.
// Thread: get/put/new on ctrl; workers read.
#pragma once

#include "lb/pick/endpoint.h"

#include <stdint.h>

struct lb_picker;

struct lb_cluster {
	uint32_t n_refs; // ctrl only
	uint32_t id;
	struct lb_picker *picker; // owned (counted); never NULL
	enum lb_state state : 8;
	// No configuration names it any more. Where its picker fails, requests fail at once, even
	// those that wait for ready (A31-R12).
	bool is_leaving;
	char name[];
};

// Takes its own reference to picker. Returns NULL if out of memory.
struct lb_cluster *lb_cluster_new(
	uint32_t id, const char *name, enum lb_state, struct lb_picker *picker);
struct lb_cluster *lb_cluster_get(struct lb_cluster *);
void lb_cluster_put(struct lb_cluster *); // NULL is fine
