// SPDX-License-Identifier: Apache-2.0
// The last requests of a worker that the proxy itself answered or cut, with the details that their
// clients may not see. A ring: new ones go over the oldest, and whoever reads an entry that is
// written meanwhile notices.
// Thread: one writes; any may read.
#pragma once

#include "lb/base/ip.h"
#include "lb/base/str.h"
#include "lb/pick/cause.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_FAILURES 256 // that a worker keeps
#define LB_FAILURE_CLUSTER_MAX 120 // longer names and texts are cut
#define LB_FAILURE_TEXT_MAX 344

struct lb_failure {
	uint64_t at_ns; // of the worker's clock
	struct ip_port backend;
	uint16_t frontend;
	uint8_t cause; // enum lb_cause
	bool has_backend; // one was chosen
	_Alignas(8) char cluster[LB_FAILURE_CLUSTER_MAX]; // "" = none was chosen
	_Alignas(8) char text[LB_FAILURE_TEXT_MAX];
};
struct lb_failures;

struct lb_failures *lb_failures_new(void); // NULL = out of memory
void lb_failures_free(struct lb_failures *); // NULL is fine

// Writes one; cluster and text come apart, so that no more is copied than they have.
void lb_failures_add(
	struct lb_failures *, const struct lb_failure *, struct str cluster, struct str text);
// How many were ever written.
uint64_t lb_failures_count(const struct lb_failures *);
// Reads one by its number, from 0 on. False = it has not come yet, is being written, or was
// overwritten.
[[nodiscard]] bool lb_failures_read(
	const struct lb_failures *, uint64_t number, struct lb_failure *ret);
