// SPDX-License-Identifier: Apache-2.0
#include "tlshs/sessions.h"

#include "lb/base/container_of.h"
#include "tlshs/impl.h"
#include "tlshs/session.h"

#include <pthread.h>
#include <string.h>

#define N_BUCKETS 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all that follows
static struct list_link buckets[N_BUCKETS]; // by origin; the newest first
static struct list_link by_age; // the oldest first
// Where handshakes failed, by bucket: others of that context there are let alone as well.
static struct {
	const struct tlshs_context *context;
	int64_t until_s;
} pauses[N_BUCKETS];
static uint32_t n_all;
static size_t n_bytes;
static uint64_t counts[TLSHS_N_SESSION_COUNTERS]; // r: any

static void count(enum tlshs_session_counter c)
{
	counter_add(&counts[c], 1);
}

static void enter(void)
{
	pthread_mutex_lock(&lock);
	if (by_age.next)
		return;
	list_init(&by_age);
	for (unsigned i = 0; i < N_BUCKETS; i++)
		list_init(&buckets[i]);
}

static void leave(void)
{
	pthread_mutex_unlock(&lock);
}

static unsigned place_of(const struct tlshs_origin *o)
{
	return (unsigned)((o->peer ^ (uintptr_t)o->context >> 6) % N_BUCKETS);
}

static struct list_link *bucket_of(const struct tlshs_origin *o)
{
	return &buckets[place_of(o)];
}

static bool is_paused(const struct tlshs_origin *o, int64_t now_s)
{
	unsigned at = place_of(o);
	return pauses[at].context == o->context && now_s < pauses[at].until_s;
}

static bool is_same(const struct tlshs_origin *a, const struct tlshs_origin *b)
{
	return a->context == b->context && a->peer == b->peer && a->name_len == b->name_len &&
	       memcmp(a->name, b->name, a->name_len) == 0;
}

static size_t size_of(const struct tlshs_session *s)
{
	return sizeof(*s) + s->peer_len + s->der_len;
}

static void remove_one(struct tlshs_session *s)
{
	list_remove(&s->same);
	list_remove(&s->age);
	gauge_set(&n_all, n_all - 1);
	n_bytes -= size_of(s);
}

static void end_one(struct tlshs_session *s, enum tlshs_session_counter why)
{
	remove_one(s);
	count(why);
	tlshs_session_free(s);
}

// The first one in its bucket from `at` on; NULL = there is none.
static struct tlshs_session *find(const struct tlshs_origin *o, const struct list_link *at)
{
	const struct list_link *head = bucket_of(o);
	for (struct list_link *l = list_after(head, at); l; l = list_after(head, l)) {
		struct tlshs_session *s = CONTAINER_OF(l, struct tlshs_session, same);
		if (is_same(&s->origin, o))
			return s;
	}
	return NULL;
}

// Behind those that may stay.
static void thin_out(const struct tlshs_origin *o, uint32_t max)
{
	const struct list_link *at = bucket_of(o);
	for (struct tlshs_session *s; (s = find(o, at));) {
		if (max) {
			max--;
			at = &s->same;
		} else {
			end_one(s, TLSHS_SESSIONS_evicted);
		}
	}
}

void tlshs_sessions_put(struct tlshs_session *s)
{
	enter();
	struct list_link *bucket = bucket_of(&s->origin);
	list_insert(bucket, &s->same);
	list_append(&by_age, &s->age);
	gauge_set(&n_all, n_all + 1);
	n_bytes += size_of(s);
	count(TLSHS_SESSIONS_kept);
	thin_out(&s->origin, s->origin.context->max_sessions);
	while (n_all > TLSHS_MAX_SESSIONS || n_bytes > TLSHS_MAX_SESSION_BYTES)
		end_one(CONTAINER_OF(by_age.next, struct tlshs_session, age),
			TLSHS_SESSIONS_evicted);
	leave();
}

struct tlshs_session *tlshs_sessions_take(const struct tlshs_origin *o, int64_t now_s)
{
	struct tlshs_session *s;
	enter();
	while ((s = find(o, bucket_of(o))) && s->until_s <= now_s)
		end_one(s, TLSHS_SESSIONS_expired);
	if (s && is_paused(o, now_s))
		s = NULL;
	if (s)
		remove_one(s);
	leave();
	return s;
}

void tlshs_sessions_forget(const struct tlshs_origin *o, int64_t now_s)
{
	enter();
	pauses[place_of(o)].context = o->context;
	pauses[place_of(o)].until_s = now_s + TLSHS_PAUSE_S;
	for (struct tlshs_session *s; (s = find(o, bucket_of(o)));)
		end_one(s, TLSHS_SESSIONS_dropped);
	leave();
}

void tlshs_sessions_drop(const struct tlshs_context *c)
{
	enter();
	for (struct list_link *l = list_first(&by_age), *after; l; l = after) {
		struct tlshs_session *s = CONTAINER_OF(l, struct tlshs_session, age);
		after = list_after(&by_age, l);
		if (s->origin.context == c)
			end_one(s, TLSHS_SESSIONS_dropped);
	}
	for (unsigned i = 0; i < N_BUCKETS; i++)
		if (pauses[i].context == c) // another one may come to lie there
			pauses[i].context = NULL;
	leave();
}

void tlshs_sessions_count(unsigned counter)
{
	enter();
	count(counter);
	leave();
}

struct counter_set tlshs_sessions_counters(void)
{
	static const char *const names[] = {TLSHS_SESSION_COUNTERS(COUNTER_NAME)};
	return (struct counter_set){names, counts, TLSHS_N_SESSION_COUNTERS};
}

uint32_t tlshs_sessions_n(void)
{
	return gauge_read(&n_all);
}
