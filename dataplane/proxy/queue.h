// SPDX-License-Identifier: Apache-2.0
// Requests that wait until their cluster's picker can choose: one FIFO per cluster, with one
// bound over all. A queue is walked when a new snapshot arrives or a connection of this
// worker comes or goes (MC-17), with a bounded number of picks per turn. Requests whose backend
// is already chosen wait at that backend instead.
// Thread: the owning worker.
#pragma once

#include "lb/base/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct proxy_request;

struct proxy_queue {
	struct list_link requests; // by proxy_request.link; valid while the queue is in `used`
	struct list_link *cursor; // next request to pick for; NULL = no walk in progress
	STAILQ_ENTRY(proxy_queue) walk_next;
	struct list_link used; // in the list of queues that are not empty
	bool walking; // in the queue of queues to walk
	bool again; // something changed after the cursor had passed: walk again
};

struct proxy_queues {
	struct proxy_queue *by_cluster; // [LB_MAX_CLUSTERS]
	struct list_link used; // queues that are not empty
	STAILQ_HEAD(, proxy_queue) walks; // queues to walk, the oldest walk first
	uint32_t max; // bound of n_waiting + n_paused
	uint32_t n_waiting; // requests, including those that wait for room at a backend
	uint32_t n_paused; // requests that wait for a delay or a backoff; in no list
};

// 0 or -ENOMEM.
[[nodiscard]] int proxy_queues_init(struct proxy_queues *, uint32_t max);
void proxy_queues_fini(struct proxy_queues *);
// How many requests wait for a backend or a time.
static inline uint32_t proxy_queues_used(const struct proxy_queues *qs)
{
	return qs->n_waiting + qs->n_paused;
}
// True if no further request may wait.
static inline bool proxy_queues_full(const struct proxy_queues *qs)
{
	return proxy_queues_used(qs) >= qs->max;
}

// Behind the others.
void proxy_queue_append(struct proxy_queues *, struct proxy_request *);
// Puts a request that has waited before in front, to be picked in this turn.
void proxy_queue_prepend(struct proxy_queues *, struct proxy_request *);
void proxy_queue_remove(struct proxy_queues *, struct proxy_request *);
// True if a new request of this cluster must queue behind those about to be picked.
bool proxy_queue_must_wait(const struct proxy_queues *, uint32_t cluster_id);

// Marks every queue for another walk.
void proxy_queues_changed(struct proxy_queues *);
// Picks again for the marked requests, within the turn's budget. pick_again returns true if the
// request left its queue. Returns true if any did.
bool proxy_queues_walk(
	struct proxy_queues *, uint32_t *budget, bool (*pick_again)(struct proxy_request *));
