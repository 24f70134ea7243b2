// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/haproxy_ids.h"

#include "ctrl/base/strmap.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#include <stdio.h>
#include <stdlib.h>

// Rows that went are kept until there are so many more than were told.
#define KEPT_GONE 1024

struct row {
	struct strmap_link link;
	struct row *next;
	struct haproxy_id id;
	uint64_t listing; // the last one with it
	char key[];
};

struct haproxy_ids {
	struct strmap map;
	struct row *rows; // owned; the newest first
	uint32_t last_number;
	uint64_t n_listings; // begun so far
	uint32_t n_running;
	struct haproxy_id nobody; // in place of one that there is no room for
};

struct haproxy_ids *haproxy_ids_new(void)
{
	return calloc(1, sizeof(struct haproxy_ids));
}

void haproxy_ids_free(struct haproxy_ids *s)
{
	if (!s)
		return;
	for (struct row *r = s->rows, *next; r; r = next) {
		next = r->next;
		free(r);
	}
	strmap_fini(&s->map);
	free(s);
}

uint64_t haproxy_ids_begin(struct haproxy_ids *s)
{
	s->n_running++;
	return ++s->n_listings;
}

void haproxy_ids_end(struct haproxy_ids *s, uint64_t listing, uint32_t n)
{
	bool is_last = --s->n_running == 0; // else another one may use them
	if (!is_last || s->map.n < 2 * (uint64_t)n + KEPT_GONE)
		return;
	for (struct row **at = &s->rows; *at;) {
		struct row *r = *at;
		if (r->listing >= listing) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		strmap_remove(&s->map, &r->link);
		free(r);
	}
}

static struct row *add(struct haproxy_ids *s, const char *key, size_t len)
{
	struct row *r = s->map.n < HAPROXY_IDS_MAX ? calloc(1, sizeof(*r) + len + 1) : NULL;
	if (!r)
		return NULL;
	snprintf(r->key, len + 1, "%s", key);
	if (strmap_add(&s->map, &r->link, r->key)) {
		free(r);
		return NULL;
	}
	r->id.number = ++s->last_number;
	r->next = s->rows;
	s->rows = r;
	return r;
}

static struct row *find_or_add(struct haproxy_ids *s, const char *group, const char *name)
{
	char *key = NULL;
	// Names with a line break and a blank may share a number, which harms nobody.
	int len = asprintf(&key, "%s\n %s", group, name);
	if (len < 0)
		return NULL;
	struct strmap_link *link = strmap_find(&s->map, key);
	struct row *r = link ? CONTAINER_OF(link, struct row, link) : add(s, key, (size_t)len);
	free(key);
	return r;
}

struct haproxy_id *haproxy_ids_take(
	struct haproxy_ids *s, uint64_t listing, const char *group, const char *name)
{
	struct row *r = find_or_add(s, group, name);
	if (!r) {
		s->nobody = (struct haproxy_id){.number = 0};
		return &s->nobody;
	}
	if (r->listing == listing)
		return NULL;
	r->listing = listing;
	return &r->id;
}

void haproxy_reading_take(struct haproxy_reading *r, uint64_t count, uint64_t sum, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - r->at_ns;
	if (r->at_ns && passed_ns < NS_PER_SECOND)
		return;
	uint64_t n = count - r->count;
	bool began_anew = count < r->count || sum < r->sum;
	if (r->at_ns && !began_anew) {
		r->per_s = (uint64_t)((double)n * NS_PER_SECOND / (double)passed_ns + 0.5);
		r->has_rate = true;
	}
	if (n && !began_anew) {
		r->mean = (sum - r->sum) / n;
		r->has_mean = true;
	}
	r->count = count;
	r->sum = sum;
	r->at_ns = now_ns ? now_ns : 1;
}
