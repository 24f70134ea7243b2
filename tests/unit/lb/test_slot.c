// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "lb/cluster.h"
#include "lb/pick/picker.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define N_READERS 2
#define N_PUBLISHES 10000

static struct lb_snapshot *snapshot_of(uint64_t version)
{
	char name[32];
	snprintf(name, sizeof(name), "v%llu", (unsigned long long)version);
	struct lb_snapshot *s = lb_snapshot_new(1, name);
	struct lb_picker *p = lb_picker_new_fail(name);
	struct lb_cluster *c = lb_cluster_new(0, name, LB_TRANSIENT_FAILURE, p);
	assert_int_equal(lb_snapshot_set_cluster(s, 0, c), 0);
	lb_cluster_put(c);
	lb_picker_put(p);
	s->version = version;
	return s;
}

// Every part that a request would touch belongs to the same version (UPD-01).
static bool is_whole(const struct lb_snapshot *s)
{
	char name[32];
	snprintf(name, sizeof(name), "v%llu", (unsigned long long)s->version);
	const struct lb_cluster *c = lb_snapshot_cluster(s, 0);
	struct lb_pick_ctx ctx = {0};
	return strcmp(lb_snapshot_frontend(s, 0)->error, name) == 0 && strcmp(c->name, name) == 0 &&
	       strcmp(lb_pick(c->picker, &ctx).text, name) == 0;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * NS_PER_MS}, NULL);
}

struct reader {
	struct lb_slot *slot;
	uint64_t seed;
	bool stop; // w: test, r: reader
	bool stalls; // w: test, r: reader: keeps its snapshot and reports nothing
	uint64_t turns; // w: reader, r: test
	bool is_wrong; // w: reader, r: test
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;
	lb_slot_reader_start();
	uint64_t last = 0;
	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		const struct lb_snapshot *s = lb_slot_read(r->slot);
		do {
			if (!is_whole(s) || s->version < last)
				__atomic_store_n(&r->is_wrong, true, __ATOMIC_RELAXED);
			last = s->version;
			__atomic_store_n(&r->turns, r->turns + 1, __ATOMIC_RELAXED);
		} while (__atomic_load_n(&r->stalls, __ATOMIC_ACQUIRE));
		if (r->turns % 64 == r->seed) {
			lb_slot_offline();
			pause_ms(1);
			lb_slot_online();
		} else {
			lb_slot_quiescent();
		}
	}
	lb_slot_reader_stop();
	return NULL;
}

// MC-01, MC-18
static void readers_never_see_a_torn_or_freed_snapshot(void **state)
{
	(void)state;
	struct lb_slot *slot = lb_slot_new(snapshot_of(1));
	struct reader readers[N_READERS];
	pthread_t threads[N_READERS];
	for (uint64_t i = 0; i < N_READERS; i++) {
		readers[i] = (struct reader){.slot = slot, .seed = i};
		assert_int_equal(pthread_create(&threads[i], NULL, reader_main, &readers[i]), 0);
		while (__atomic_load_n(&readers[i].turns, __ATOMIC_RELAXED) == 0)
			pause_ms(1);
	}
	unsigned most = 0;
	for (uint64_t version = 2; version < 2 + N_PUBLISHES; version++) {
		lb_slot_publish(slot, snapshot_of(version));
		assert_int_equal(lb_slot_current(slot)->version, version);
		unsigned n = lb_slot_reclaim(slot);
		// A publisher that holds back keeps the number bounded; readers go on meanwhile.
		while (n > 64) {
			pause_ms(1);
			n = lb_slot_reclaim(slot);
		}
		most = n > most ? n : most;
	}
	for (int i = 0; i < 5000 && lb_slot_reclaim(slot) > 1; i++)
		pause_ms(1);
	assert_int_equal(lb_slot_reclaim(slot), 1);
	assert_true(most > 1);
	for (int i = 0; i < N_READERS; i++) {
		__atomic_store_n(&readers[i].stop, true, __ATOMIC_RELEASE);
		pthread_join(threads[i], NULL);
		assert_false(readers[i].is_wrong);
	}
	lb_slot_free(slot);
}

// MC-18: a stalled worker delays freeing, not publishing.
static void stalled_reader_delays_freeing_only(void **state)
{
	(void)state;
	struct lb_slot *slot = lb_slot_new(snapshot_of(1));
	struct reader reader = {.slot = slot, .stalls = true};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, reader_main, &reader), 0);
	while (__atomic_load_n(&reader.turns, __ATOMIC_RELAXED) == 0)
		pause_ms(1);
	for (uint64_t version = 2; version <= 20; version++) {
		lb_slot_publish(slot, snapshot_of(version));
		assert_int_equal(lb_slot_current(slot)->version, version);
	}
	pause_ms(60);
	assert_int_equal(lb_slot_reclaim(slot), 20);
	assert_int_equal(lb_slot_oldest(slot)->version, 1);
	__atomic_store_n(&reader.stalls, false, __ATOMIC_RELEASE);
	for (int i = 0; i < 5000 && lb_slot_reclaim(slot) > 1; i++)
		pause_ms(1);
	assert_int_equal(lb_slot_reclaim(slot), 1);
	assert_ptr_equal(lb_slot_oldest(slot), lb_slot_current(slot));
	__atomic_store_n(&reader.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_false(reader.is_wrong);
	lb_slot_free(slot);
}

static void freeing_the_slot_frees_what_waits(void **state)
{
	(void)state;
	struct lb_slot *slot = lb_slot_new(snapshot_of(1));
	for (uint64_t version = 2; version < 10; version++)
		lb_slot_publish(slot, snapshot_of(version));
	lb_slot_free(slot); // leaks are the sanitizer's to find
	lb_slot_free(NULL);
}

RUN_SUITE("lb/slot", cmocka_unit_test(readers_never_see_a_torn_or_freed_snapshot),
	cmocka_unit_test(stalled_reader_delays_freeing_only),
	cmocka_unit_test(freeing_the_slot_frees_what_waits))
