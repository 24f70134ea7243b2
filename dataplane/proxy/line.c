// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/line.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/request.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"

#include <errno.h>
#include <stdlib.h>

// There is one as long as a request is in it.
struct proxy_line {
	struct proxy_line *next; // in its bucket
	struct list_link link; // in its room
	struct list_link requests; // by proxy_request.link
	const struct list_link *room;
	const struct proxy_source *source;
};

static struct proxy_line *line_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct proxy_line, link);
}

static struct proxy_request *request_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct proxy_request, link);
}

int proxy_lines_init(struct proxy_lines *all, uint32_t n_requests)
{
	*all = (struct proxy_lines){.mask = 1};
	while (all->mask < n_requests)
		all->mask = all->mask * 2 + 1;
	all->buckets = calloc(all->mask + 1u, sizeof(struct proxy_line *));
	if (!all->buckets)
		return -ENOMEM;
	return pool_init(&all->pool, sizeof(struct proxy_line), n_requests);
}

void proxy_lines_fini(struct proxy_lines *all)
{
	free(all->buckets);
	all->buckets = NULL;
	pool_fini(&all->pool);
}

static struct proxy_line **bucket_of(const struct proxy_lines *all, const struct list_link *room,
	const struct proxy_source *source)
{
	uint64_t hash = proxy_share_hash(source) ^ proxy_share_hash(room) >> 7;
	return &all->buckets[(hash >> 24) & all->mask];
}

static struct proxy_line *obtain(
	struct proxy_lines *all, struct list_link *room, const struct proxy_source *source)
{
	struct proxy_line **bucket = bucket_of(all, room, source), *l = *bucket;
	while (l && (l->room != room || l->source != source))
		l = l->next;
	if (l)
		return l;
	l = pool_take(&all->pool);
	CHECK(l); // one for each request
	*l = (struct proxy_line){.next = *bucket, .room = room, .source = source};
	*bucket = l;
	list_init(&l->requests);
	list_append(room, &l->link);
	return l;
}

void proxy_line_append(struct proxy_lines *all, struct list_link *room, struct proxy_request *r)
{
	list_append(&obtain(all, room, r->owner->source)->requests, &r->link);
}

static void drop(struct proxy_lines *all, struct proxy_line *l)
{
	struct proxy_line **at = bucket_of(all, l->room, l->source);
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	list_remove(&l->link);
	pool_put(&all->pool, l);
}

void proxy_line_remove(struct proxy_lines *all, struct proxy_request *r)
{
	struct list_link *beside = r->link.next;
	list_remove(&r->link);
	if (list_empty(beside)) // then it is the line itself
		drop(all, CONTAINER_OF(beside, struct proxy_line, requests));
}

struct proxy_request *proxy_line_first(const struct list_link *room)
{
	struct list_link *l = list_first(room);
	return l ? request_of(line_of(l)->requests.next) : NULL;
}

struct proxy_request *proxy_line_last(const struct list_link *room)
{
	struct list_link *l = list_last(room);
	return l ? request_of(line_of(l)->requests.prev) : NULL;
}

void proxy_line_turn(struct list_link *room)
{
	struct list_link *l = list_first(room);
	list_remove(l);
	list_append(room, l);
}
