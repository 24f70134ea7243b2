// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/queue.h"

#include "dataplane/proxy/request.h"
#include "lb/base/cacheline.h"
#include "lb/pick/limits.h"

#include <errno.h>
#include <stdlib.h>

void proxy_list_append(struct proxy_list *l, struct proxy_request *r)
{
	r->next = NULL;
	r->prev = l->tail;
	if (l->tail)
		l->tail->next = r;
	else
		l->head = r;
	l->tail = r;
}

void proxy_list_prepend(struct proxy_list *l, struct proxy_request *r)
{
	r->prev = NULL;
	r->next = l->head;
	if (l->head)
		l->head->prev = r;
	else
		l->tail = r;
	l->head = r;
}

void proxy_list_remove(struct proxy_list *l, struct proxy_request *r)
{
	if (r->prev)
		r->prev->next = r->next;
	else
		l->head = r->next;
	if (r->next)
		r->next->prev = r->prev;
	else
		l->tail = r->prev;
	r->next = r->prev = NULL;
}

int proxy_queues_init(struct proxy_queues *qs, uint32_t max)
{
	*qs = (struct proxy_queues){.max = max};
	qs->by_cluster = cacheline_alloc(LB_MAX_CLUSTERS, sizeof(*qs->by_cluster));
	return qs->by_cluster ? 0 : -ENOMEM;
}

void proxy_queues_fini(struct proxy_queues *qs)
{
	cacheline_free(qs->by_cluster);
}

static void start_walk(struct proxy_queues *qs, struct proxy_queue *q)
{
	if (q->walking) {
		q->again = true;
		return;
	}
	q->walking = true;
	q->again = false;
	q->cursor = q->list.head;
	q->walk_next = NULL;
	if (qs->walk_tail)
		qs->walk_tail->walk_next = q;
	else
		qs->walk_head = q;
	qs->walk_tail = q;
}

static struct proxy_queue *link_used(struct proxy_queues *qs, uint32_t cluster_id)
{
	struct proxy_queue *q = &qs->by_cluster[cluster_id];
	if (!q->list.head) {
		q->prev = NULL;
		q->next = qs->used;
		if (q->next)
			q->next->prev = q;
		qs->used = q;
	}
	return q;
}

void proxy_queue_append(struct proxy_queues *qs, struct proxy_request *r)
{
	proxy_list_append(&link_used(qs, r->cluster_id)->list, r);
}

void proxy_queue_prepend(struct proxy_queues *qs, struct proxy_request *r)
{
	struct proxy_queue *q = link_used(qs, r->cluster_id);
	proxy_list_prepend(&q->list, r);
	// Several in a row: the walk that the first one began has not started, or is at it.
	if (q->walking && q->cursor == r->next)
		q->cursor = r;
	else
		start_walk(qs, q);
}

void proxy_queue_remove(struct proxy_queues *qs, struct proxy_request *r)
{
	struct proxy_queue *q = &qs->by_cluster[r->cluster_id];
	if (q->cursor == r)
		q->cursor = r->next;
	proxy_list_remove(&q->list, r);
	if (q->list.head)
		return;
	if (q->prev)
		q->prev->next = q->next;
	else
		qs->used = q->next;
	if (q->next)
		q->next->prev = q->prev;
}

bool proxy_queue_must_wait(const struct proxy_queues *qs, uint32_t cluster_id)
{
	const struct proxy_queue *q = &qs->by_cluster[cluster_id];
	return q->list.head && q->walking;
}

void proxy_queues_changed(struct proxy_queues *qs)
{
	for (struct proxy_queue *q = qs->used; q; q = q->next)
		start_walk(qs, q);
}

static void end_walk(struct proxy_queues *qs, struct proxy_queue *q)
{
	qs->walk_head = q->walk_next;
	if (!qs->walk_head)
		qs->walk_tail = NULL;
	q->walking = false;
	q->cursor = NULL;
	if (q->again && q->list.head)
		start_walk(qs, q);
}

bool proxy_queues_walk(
	struct proxy_queues *qs, uint32_t *budget, bool (*pick_again)(struct proxy_request *))
{
	bool moved = false;
	while (qs->walk_head && *budget) {
		struct proxy_queue *q = qs->walk_head;
		struct proxy_request *r = q->cursor;
		if (!r) {
			end_walk(qs, q);
			continue;
		}
		q->cursor = r->next;
		--*budget;
		moved |= pick_again(r);
	}
	return moved;
}
