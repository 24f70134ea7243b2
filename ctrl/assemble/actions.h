// SPDX-License-Identifier: Apache-2.0
// The actions of one frontend's routes under the names that gRFC A28 defines: equal actions are
// one, names are readable and stable over updates (A28-N01..A28-N05). For display; lb/route/route.h
// routes requests.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct actions;
struct actions_job;
struct res_route_config;
struct slice;

struct action_target {
	const char *cluster;
	uint32_t weight;
};
struct action {
	const char *name; // "cds:blue", "weighted:blue_green_1"
	const struct action_target *targets; // in order of name, each cluster once
	uint32_t n_targets; // 1 = a single cluster
};

// Begins to list the actions of one virtual host (index) or of all (-1). Keeps a reference to the
// routes. Returns NULL if out of memory.
struct actions_job *actions_job_new(struct res_route_config *, int32_t vhost);
void actions_job_free(struct actions_job *); // at any time; NULL is fine
// Goes on with it. before: the previous actions, whose names are kept; NULL = none. Returns -EAGAIN
// if the slice is over, -ENOMEM, or 0: the caller owns *ret, and must not run the job again.
[[nodiscard]] int actions_job_run(
	struct actions_job *, struct slice *, const struct actions *before, struct actions **ret);
void actions_free(struct actions *); // NULL is fine

uint32_t actions_count(const struct actions *);
const struct action *actions_at(
	const struct actions *, uint32_t index); // in the order in which routes first use them
// Returns the index of a route's action; -1 = it has no supported one. Indices of virtual host and
// route are those of the resource; the virtual host must be one of those whose actions are listed.
int64_t actions_of(const struct actions *, uint32_t vhost, uint32_t route);
