// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/recent.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct access_recent {
	pthread_mutex_t lock; // of all below
	uint64_t n;
	struct access_recent_entry ring[ACCESS_RECENT];
};

struct access_recent *access_recent_new(void)
{
	struct access_recent *r = calloc(1, sizeof(*r));
	if (r && pthread_mutex_init(&r->lock, NULL)) {
		free(r);
		return NULL;
	}
	return r;
}

void access_recent_free(struct access_recent *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r);
}

void access_recent_add(struct access_recent *r, const struct lb_access_record *records,
	const struct access_log_frontend *const *frontends, uint32_t n, uint32_t worker,
	uint64_t wall_offset_ns)
{
	pthread_mutex_lock(&r->lock);
	for (uint32_t i = 0; i < n; i++) {
		struct access_recent_entry *to = &r->ring[r->n++ % ACCESS_RECENT];
		const struct lb_access_record *from = &records[i];
		to->began_wall_ns = from->brief.began_ns + wall_offset_ns;
		to->worker = worker;
		to->frontend = frontends[i];
		memcpy(&to->record, from, offsetof(struct lb_access_record, bytes) + from->n_bytes);
	}
	pthread_mutex_unlock(&r->lock);
}

uint64_t access_recent_count(struct access_recent *r)
{
	pthread_mutex_lock(&r->lock);
	uint64_t n = r->n;
	pthread_mutex_unlock(&r->lock);
	return n;
}

bool access_recent_read(struct access_recent *r, uint64_t *number, struct access_recent_entry *ret,
	uint64_t *ret_lost)
{
	pthread_mutex_lock(&r->lock);
	uint64_t oldest = r->n < ACCESS_RECENT ? 0 : r->n - ACCESS_RECENT;
	if (*number < oldest) {
		*ret_lost += oldest - *number;
		*number = oldest;
	}
	bool there = *number < r->n;
	if (there)
		*ret = r->ring[(*number)++ % ACCESS_RECENT];
	pthread_mutex_unlock(&r->lock);
	return there;
}
