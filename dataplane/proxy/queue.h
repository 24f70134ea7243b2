// SPDX-License-Identifier: Apache-2.0
// Requests that wait until their cluster's picker can choose: one FIFO per cluster, bounded over
// all. A queue is walked again when a new snapshot came or a connection of this
// worker came or went (MC-17), a bounded number of picks per turn. Requests whose backend is chosen
// already wait at that backend instead.
// Thread: the owning worker.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct proxy_request;

// FIFO through the requests' next and prev.
struct proxy_list {
	struct proxy_request *head, *tail;
};
void proxy_list_append(struct proxy_list *, struct proxy_request *);
void proxy_list_prepend(struct proxy_list *, struct proxy_request *);
void proxy_list_remove(struct proxy_list *, struct proxy_request *);

struct proxy_queue {
	struct proxy_list list;
	struct proxy_request *cursor; // next to be picked again; NULL = no walk going on
	struct proxy_queue *walk_next; // of queues to walk
	struct proxy_queue *next, *prev; // of queues that are not empty
	bool walking; // in the list of queues to walk
	bool again; // something changed behind the cursor
};

struct proxy_queues {
	struct proxy_queue *by_cluster; // [LB_MAX_CLUSTERS]
	struct proxy_queue *used; // not empty
	struct proxy_queue *walk_head, *walk_tail;
	uint32_t max; // of the next two together
	uint32_t n_waiting; // requests, those that wait for room at a backend included
	uint32_t n_paused; // requests that wait for a time instead, in no list
};

// 0 or -ENOMEM.
[[nodiscard]] int proxy_queues_init(struct proxy_queues *, uint32_t max);
void proxy_queues_fini(struct proxy_queues *);
// Requests that wait for a backend or a time.
static inline uint32_t proxy_queues_used(const struct proxy_queues *qs)
{
	return qs->n_waiting + qs->n_paused;
}
// Nobody else may wait.
static inline bool proxy_queues_full(const struct proxy_queues *qs)
{
	return proxy_queues_used(qs) >= qs->max;
}

// Behind the others.
void proxy_queue_append(struct proxy_queues *, struct proxy_request *);
// Before the others, and to be picked in this turn: it has waited already.
void proxy_queue_prepend(struct proxy_queues *, struct proxy_request *);
void proxy_queue_remove(struct proxy_queues *, struct proxy_request *);
// A newcomer to this cluster must go behind those that are about to be picked.
bool proxy_queue_must_wait(const struct proxy_queues *, uint32_t cluster_id);

// Every waiting request is worth another pick.
void proxy_queues_changed(struct proxy_queues *);
// Picks again for each that is worth it, within the turn's budget. pick_again: true = the request
// left its queue. True = some request did.
bool proxy_queues_walk(
	struct proxy_queues *, uint32_t *budget, bool (*pick_again)(struct proxy_request *));
