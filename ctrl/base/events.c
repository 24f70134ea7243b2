// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct events {
	pthread_mutex_t lock; // of all below
	uint64_t n;
	struct event_entry ring[EVENTS];
};

struct events *events_new(void)
{
	struct events *e = calloc(1, sizeof(*e));
	if (e && pthread_mutex_init(&e->lock, NULL)) {
		free(e);
		return NULL;
	}
	return e;
}

void events_free(struct events *e)
{
	if (!e)
		return;
	pthread_mutex_destroy(&e->lock);
	free(e);
}

// With a NUL; returns how many bytes were taken.
static size_t put(char *to, size_t room, const char *text)
{
	size_t len = strnlen(text, room - 1);
	memcpy(to, text, len);
	to[len] = 0;
	return len + 1;
}

void events_add(
	void *ctx, uint64_t wall_ns, enum log_level level, const char *msg, const char *rest)
{
	struct events *e = ctx;
	pthread_mutex_lock(&e->lock);
	struct event_entry *to = &e->ring[e->n++ % EVENTS];
	to->wall_ns = wall_ns;
	to->level = level;
	size_t used = put(to->text, EVENT_MAX / 2, msg);
	put(to->text + used, EVENT_MAX - used, rest);
	pthread_mutex_unlock(&e->lock);
}

uint64_t events_count(struct events *e)
{
	pthread_mutex_lock(&e->lock);
	uint64_t n = e->n;
	pthread_mutex_unlock(&e->lock);
	return n;
}

bool events_read(struct events *e, uint64_t *number, struct event_entry *ret, uint64_t *ret_lost)
{
	pthread_mutex_lock(&e->lock);
	uint64_t oldest = e->n < EVENTS ? 0 : e->n - EVENTS;
	if (*number < oldest) {
		*ret_lost += oldest - *number;
		*number = oldest;
	}
	bool there = *number < e->n;
	if (there)
		*ret = e->ring[(*number)++ % EVENTS];
	pthread_mutex_unlock(&e->lock);
	return there;
}

const char *event_rest(const struct event_entry *e)
{
	return e->text + strlen(e->text) + 1;
}
