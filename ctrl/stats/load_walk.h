// SPDX-License-Identifier: Apache-2.0
// What workers, frontends and clusters have had to do, one after the other, in steps of a bounded
// cost: for `show load` and the status page (ctrl/page). Clusters come in order of name, and may
// come and go between steps.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/assemble.h"

#include <stdint.h>

struct histogram;
struct load_walk;
struct show;

enum load_kind { LOAD_WORKER, LOAD_FRONTEND, LOAD_CLUSTER, LOAD_N_KINDS };

struct load { // texts are borrowed for the call
	enum load_kind kind;
	uint32_t number; // of a worker or frontend
	const char *name, *state; // state: of workers ""
	const char *error; // of frontends: why it does not serve; "" = it does
	double busy_share; // of workers: 0..1
	uint32_t n_endpoints, n_ready, n_failing; // of clusters
	uint64_t connections; // of workers those of clients, of clusters those to endpoints
	uint64_t n_clients; // of frontends that drain: how many are left
	uint64_t queued; // of clusters
	uint64_t requests, active;
	const uint64_t *ended; // [LB_N_CAUSES]
	uint64_t failed; // of these, all but LB_CAUSE_OK
	uint64_t bad; // and of LB_CAUSE_OK, those that a backend answered that it failed
	const struct histogram *times; // of requests, of frontends alone
};

struct load_reader {
	void (*load)(void *ctx, const struct load *);
	// Each endpoint that is counted, before its cluster is told; NULL = nobody asks.
	void (*endpoint)(void *ctx, const char *cluster, const struct assembler_endpoint_info *);
	void *ctx;
};

// Of all, or of one cluster and no other; the name is copied. NULL = out of memory.
struct load_walk *load_walk_new(
	const struct show *, const struct load_reader *, const char *only_cluster);
void load_walk_free(struct load_walk *); // NULL is fine
// 1: there is more to do; 0: all is told; -ENOMEM.
[[nodiscard]] int load_walk_step(struct load_walk *);
