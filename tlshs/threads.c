// SPDX-License-Identifier: Apache-2.0
#include "tlshs/threads.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "tlshs/owing.h"
#include "tlshs/queue.h"
#include "tlshs/storm.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define EMPTY_TURNS 64 // before the first sleep
#define FIRST_SLEEP_NS (20 * NS_PER_US)
#define LAST_SLEEP_NS NS_PER_MS
#define TIMEOUT_NS (10 * NS_PER_SECOND)
// A round trip of 300 ms and a loss: our flight, sent again after two round trips (RFC 8985 7.2),
// is answered after 0.9 s; the peer's, after a timeout of 1 s (RFC 6298 2.4), is there after 1.3 s.
#define OWING_PATIENCE_NS (1500 * NS_PER_MS)
#define N_SLOTS 64

struct end { // of a link
	struct tlshs_link link;
	struct tlshs_seat *seats; // max_handshakes
	struct list_link waiting; // seats that wait for room
	struct tlshs_owing owing;
};

struct thread {
	struct tlshs_threads *all;
	pthread_t id;
	bool started;
	struct end *ends; // by worker
	struct list_link open; // seats
	struct tlshs_queue queue;
	struct tlshs_promises promises;
	uint64_t now_ns;
	struct tlshs_storm storm; // of all threads: that of the first one is looked at
	_Alignas(CACHELINE_SIZE) uint64_t counts[TLSHS_N_OUTCOMES]; // w: thread, r: any
};

struct tlshs_threads {
	struct tlshs_threads_conf conf;
	uint8_t source_key[16];
	struct thread *threads;
	bool stop; // w: control thread (release), r: threads (acquire)
	_Alignas(CACHELINE_SIZE) struct tlshs_census census;
};

static void answer(struct thread *t, struct end *e, struct tlshs_seat *s)
{
	list_remove(&s->waiting);
	if (!tlshs_seat_answer(s, &e->link, &t->all->census, t->counts))
		list_append(&e->waiting, &s->waiting);
	if (!s->n_unanswered)
		tlshs_owing_renew(s, t->now_ns);
}

static uint64_t read_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

// Its source pays.
static void run_seat(struct thread *t, struct end *e, struct tlshs_seat *s)
{
	uint64_t source = s->source;
	uint64_t began_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
	list_remove(&s->ready);
	tlshs_seat_run(s);
	answer(t, e, s);
	tlshs_queue_charge(
		&t->queue, source, read_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns, t->now_ns);
}

static void take_bytes(
	struct thread *t, struct end *e, struct tlshs_seat *s, const struct tlshs_order *o)
{
	if (!tlshs_seat_feed(s, &e->link, o))
		return;
	if (tlshs_handshake_ended(s->handshake)) // refused at sight: there is nothing to wait for
		answer(t, e, s);
	else
		tlshs_queue_add(&t->queue, s, t->now_ns);
}

static void obey(struct thread *t, struct end *e, const struct tlshs_order *o)
{
	if (o->kind == TLSHS_TICKET) {
		tlshs_promises_feed(&t->promises, o);
		return;
	}
	uint32_t at = (uint32_t)o->id;
	struct tlshs_seat *s = at < t->all->conf.max_handshakes ? &e->seats[at] : NULL;
	bool known = s && s->taken && s->id == o->id;
	if (o->kind == TLSHS_START && (!s || s->taken)) {
		tlshs_context_put(o->context); // against the rules
		return;
	}
	if (o->kind == TLSHS_START) {
		tlshs_seat_start(
			s, o, &t->all->census, &t->promises, t->now_ns + t->all->conf.timeout_ns);
		if (s->handshake)
			list_append(&t->open, &s->open);
		if (s->handshake && s->role == TLSHS_SERVER)
			tlshs_owing_add(&e->owing, s, t->now_ns);
		tlshs_storm_see(&t->storm, tlshs_threads_open(t->all));
		answer(t, e, s);
	} else if (known && o->kind == TLSHS_BYTES) {
		take_bytes(t, e, s, o);
	} else if (known && o->kind == TLSHS_EOF && s->handshake) {
		s->is_last = true;
		tlshs_queue_add(&t->queue, s, t->now_ns);
	} else if (known && o->kind == TLSHS_STOP) {
		tlshs_seat_stop(s, &t->all->census, t->counts);
	}
}

// True = there was something. Orders cost little; they wait while answers find no room, so that
// nothing piles up here but what each seat may gather.
static bool serve(struct thread *t, struct end *e)
{
	const struct tlshs_order *o;
	bool busy = false;
	for (struct list_link *l; (l = list_first(&e->waiting)) && spsc_room(&e->link.answers) > 0;
		busy = true)
		answer(t, e, CONTAINER_OF(l, struct tlshs_seat, waiting));
	for (uint32_t n = 0; n < t->all->conf.n_slots && list_empty(&e->waiting) &&
			     spsc_room(&e->link.answers) > 0 && (o = spsc_peek(&e->link.orders));
		n++, busy = true) {
		obey(t, e, o);
		spsc_pass(&e->link.orders);
	}
	return busy;
}

static struct end *end_of(struct thread *t, const struct tlshs_seat *s)
{
	const struct tlshs_threads_conf *conf = &t->all->conf;
	for (uint32_t i = 0; i < conf->n_workers; i++)
		if (s >= t->ends[i].seats && s < t->ends[i].seats + conf->max_handshakes)
			return &t->ends[i];
	return NULL;
}

static void end_early(struct thread *t, struct end *e, struct tlshs_seat *s, enum tlshs_outcome how)
{
	list_remove(&s->open);
	tlshs_handshake_stop(s->handshake, how);
	answer(t, e, s);
}

// All have the same time, so that the first one to start is the first one to expire.
static void expire(struct thread *t)
{
	for (struct list_link *l; (l = list_first(&t->open));) {
		struct tlshs_seat *s = CONTAINER_OF(l, struct tlshs_seat, open);
		if (t->now_ns < s->deadline_ns)
			return;
		end_early(t, end_of(t, s), s, TLSHS_timeout);
	}
}

// Whoever gives way ends at once, so that nobody is found twice.
static void make_room(struct thread *t, struct end *e)
{
	struct tlshs_seat *s;
	while (list_empty(&e->waiting) && spsc_room(&e->link.answers) > 0 &&
		(s = tlshs_owing_find(&e->owing, &t->all->census, t->now_ns)))
		end_early(t, e, s, TLSHS_gave_way);
}

// One public key operation or so: then whoever came meanwhile is looked at. True = there was one.
static bool run_next(struct thread *t)
{
	struct tlshs_seat *s = tlshs_queue_take(&t->queue);
	if (s)
		run_seat(t, end_of(t, s), s);
	return s != NULL;
}

static void give_back(struct thread *t)
{
	bool is_first = t == t->all->threads;
	if (is_first && tlshs_storm_is_over(&t->storm, tlshs_threads_open(t->all), t->now_ns))
		malloc_trim(0);
}

// Workers need not look for answers but of those who wait for room (TLS-270).
static void tell_rest(struct thread *t)
{
	for (uint32_t i = 0; i < t->all->conf.n_workers; i++)
		if (list_empty(&t->ends[i].waiting))
			tlshs_link_rest(&t->ends[i].link);
}

// Returns for how long, for the next time.
static uint64_t rest(struct thread *t, uint32_t n_empty, uint64_t sleep_ns)
{
	tell_rest(t);
	give_back(t);
	if (n_empty < EMPTY_TURNS) {
		sched_yield();
		return FIRST_SLEEP_NS;
	}
	nanosleep(&(struct timespec){.tv_nsec = (long)sleep_ns}, NULL);
	return 2 * sleep_ns < LAST_SLEEP_NS ? 2 * sleep_ns : LAST_SLEEP_NS;
}

static void *run(void *arg)
{
	struct thread *t = arg;
	uint64_t sleep_ns = FIRST_SLEEP_NS;
	uint32_t n_empty = 0;
	// Pairs with the release of tlshs_threads_free().
	while (!__atomic_load_n(&t->all->stop, __ATOMIC_ACQUIRE)) {
		bool busy = false;
		t->now_ns = read_ns(CLOCK_MONOTONIC);
		for (uint32_t i = 0; i < t->all->conf.n_workers; i++)
			busy |= serve(t, &t->ends[i]);
		expire(t);
		for (uint32_t i = 0; i < t->all->conf.n_workers; i++)
			make_room(t, &t->ends[i]);
		tlshs_promises_expire(&t->promises, t->now_ns);
		busy |= run_next(t);
		n_empty = busy ? 0 : n_empty + 1;
		if (!busy)
			sleep_ns = rest(t, n_empty, sleep_ns);
	}
	return NULL;
}

static bool end_init(struct end *e, const struct tlshs_threads *all)
{
	const struct tlshs_threads_conf *conf = &all->conf;
	list_init(&e->waiting);
	tlshs_owing_init(&e->owing, conf->max_handshakes, conf->patience_ns);
	e->seats = calloc(conf->max_handshakes, sizeof(*e->seats));
	if (!e->seats || tlshs_link_init(&e->link, conf->n_slots))
		return false;
	e->link.source_key = all->source_key;
	return true;
}

static void end_fini(struct end *e, struct thread *t)
{
	const struct tlshs_order *o;
	for (; e->link.orders.items && (o = spsc_peek(&e->link.orders)); spsc_pass(&e->link.orders))
		if (o->kind == TLSHS_START)
			tlshs_context_put(o->context);
	while (e->link.answers.items && tlshs_link_peek(&e->link))
		tlshs_link_pass(&e->link);
	for (uint32_t i = 0; e->seats && i < t->all->conf.max_handshakes; i++)
		if (e->seats[i].taken)
			tlshs_seat_stop(&e->seats[i], &t->all->census, t->counts);
	tlshs_link_fini(&e->link);
	free(e->seats);
}

static bool thread_init(struct thread *t, struct tlshs_threads *all)
{
	t->all = all;
	list_init(&t->open);
	tlshs_queue_init(&t->queue);
	t->ends = cacheline_alloc(all->conf.n_workers, sizeof(*t->ends));
	if (!t->ends || tlshs_promises_init(&t->promises))
		return false;
	for (uint32_t i = 0; i < all->conf.n_workers; i++)
		if (!end_init(&t->ends[i], all))
			return false;
	return true;
}

// Signals are the control thread's.
static bool thread_start(struct thread *t)
{
	sigset_t every, before;
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	t->started = pthread_create(&t->id, NULL, run, t) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (t->started)
		pthread_setname_np(t->id, "tls-handshakes");
	return t->started;
}

struct tlshs_threads *tlshs_threads_new(const struct tlshs_threads_conf *conf)
{
	struct tlshs_threads *all = cacheline_alloc(1, sizeof(*all));
	if (!all)
		return NULL;
	all->conf = *conf;
	all->conf.n_slots = conf->n_slots ? conf->n_slots : N_SLOTS;
	all->conf.timeout_ns = conf->timeout_ns ? conf->timeout_ns : TIMEOUT_NS;
	all->conf.patience_ns = conf->patience_ns ? conf->patience_ns : OWING_PATIENCE_NS;
	all->census.max = conf->max_open;
	all->census.max_of_source = conf->max_open_of_source;
	all->census.keys = conf->keys;
	all->threads = cacheline_alloc(conf->n_threads, sizeof(*all->threads));
	bool ok = all->threads &&
	          getrandom(all->source_key, sizeof(all->source_key), 0) == sizeof(all->source_key);
	for (uint32_t i = 0; ok && i < conf->n_threads; i++)
		ok = thread_init(&all->threads[i], all);
	for (uint32_t i = 0; ok && i < conf->n_threads; i++)
		ok = thread_start(&all->threads[i]);
	if (ok)
		return all;
	tlshs_threads_free(all);
	return NULL;
}

void tlshs_threads_free(struct tlshs_threads *all)
{
	if (!all)
		return;
	// Pairs with the acquire in run().
	__atomic_store_n(&all->stop, true, __ATOMIC_RELEASE);
	for (uint32_t i = 0; all->threads && i < all->conf.n_threads; i++) {
		struct thread *t = &all->threads[i];
		if (t->started)
			pthread_join(t->id, NULL);
		for (uint32_t k = 0; t->ends && k < all->conf.n_workers; k++)
			end_fini(&t->ends[k], t);
		tlshs_promises_fini(&t->promises);
		cacheline_free(t->ends);
	}
	cacheline_free(all->threads);
	cacheline_free(all);
}

struct tlshs_link *tlshs_threads_link(struct tlshs_threads *all, uint32_t worker, uint32_t thread)
{
	return &all->threads[thread].ends[worker].link;
}

struct counter_set tlshs_threads_counters(const struct tlshs_threads *all, uint32_t thread)
{
	return (struct counter_set){
		tlshs_outcome_names, all->threads[thread].counts, TLSHS_N_OUTCOMES};
}

uint32_t tlshs_threads_open(const struct tlshs_threads *all)
{
	return gauge_read(&all->census.open);
}
