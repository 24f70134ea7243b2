// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/queue.h"

#include "dataplane/proxy/request.h"
#include "lb/base/cacheline.h"
#include "lb/base/container_of.h"
#include "lb/pick/limits.h"

#include <errno.h>
#include <stdlib.h>

static struct proxy_request *request_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct proxy_request, link);
}

int proxy_queues_init(struct proxy_queues *qs, uint32_t max)
{
	*qs = (struct proxy_queues){.max = max};
	list_init(&qs->used);
	STAILQ_INIT(&qs->walks);
	qs->by_cluster = cacheline_alloc(LB_MAX_CLUSTERS, sizeof(*qs->by_cluster));
	return qs->by_cluster ? 0 : -ENOMEM;
}

void proxy_queues_fini(struct proxy_queues *qs)
{
	cacheline_free(qs->by_cluster);
}

static void start_walk(struct proxy_queues *qs, struct proxy_queue *q)
{
	q->again = q->walking;
	if (q->walking)
		return;
	q->walking = true;
	q->cursor = q->requests.next;
	STAILQ_INSERT_TAIL(&qs->walks, q, walk_next);
}

static struct proxy_queue *use(struct proxy_queues *qs, uint32_t cluster_id)
{
	struct proxy_queue *q = &qs->by_cluster[cluster_id];
	if (!list_linked(&q->used)) {
		list_init(&q->requests);
		list_insert(&qs->used, &q->used);
	}
	return q;
}

void proxy_queue_append(struct proxy_queues *qs, struct proxy_request *r)
{
	list_append(&use(qs, r->cluster_id)->requests, &r->link);
}

void proxy_queue_prepend(struct proxy_queues *qs, struct proxy_request *r)
{
	struct proxy_queue *q = use(qs, r->cluster_id);
	list_insert(&q->requests, &r->link);
	// Several in a row: the walk that the first one began has not started, or is at it.
	if (q->walking && q->cursor == r->link.next)
		q->cursor = &r->link;
	else
		start_walk(qs, q);
}

void proxy_queue_remove(struct proxy_queues *qs, struct proxy_request *r)
{
	struct proxy_queue *q = &qs->by_cluster[r->cluster_id];
	if (q->cursor == &r->link)
		q->cursor = r->link.next;
	list_remove(&r->link);
	if (list_empty(&q->requests))
		list_remove(&q->used);
}

bool proxy_queue_must_wait(const struct proxy_queues *qs, uint32_t cluster_id)
{
	const struct proxy_queue *q = &qs->by_cluster[cluster_id];
	return list_linked(&q->used) && q->walking;
}

void proxy_queues_changed(struct proxy_queues *qs)
{
	for (struct list_link *l = qs->used.next; l != &qs->used; l = l->next)
		start_walk(qs, CONTAINER_OF(l, struct proxy_queue, used));
}

static void end_walk(struct proxy_queues *qs, struct proxy_queue *q)
{
	STAILQ_REMOVE_HEAD(&qs->walks, walk_next);
	q->walking = false;
	q->cursor = NULL;
	if (q->again && list_linked(&q->used))
		start_walk(qs, q);
}

bool proxy_queues_walk(
	struct proxy_queues *qs, uint32_t *budget, bool (*pick_again)(struct proxy_request *))
{
	bool moved = false;
	struct proxy_queue *q;
	while ((q = STAILQ_FIRST(&qs->walks)) && *budget) {
		struct list_link *l = q->cursor;
		if (l == &q->requests) {
			end_walk(qs, q);
			continue;
		}
		q->cursor = l->next;
		--*budget;
		moved |= pick_again(request_of(l));
	}
	return moved;
}
