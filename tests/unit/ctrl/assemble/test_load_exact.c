// SPDX-License-Identifier: Apache-2.0
// LR-11: what workers count reaches the reports without loss and without double count, whatever
// happens to localities, clusters, numbers and the stream meanwhile. The naive twin counts each
// request where it began. With a seed as argument the random lives are those of that seed.
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "lb/pick/drop.h"
#include "lb/pick/loads.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assemble/load_world.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ZONES 6
#define N_LEAVES 2
#define MAX_OPEN 64
#define N_LIVES 60
#define N_STEPS 400

static uint64_t seed = 1;

struct tally {
	uint64_t issued, ok, error;
};

static const char *const clusters[N_LEAVES] = {"a", "b"};
static const char *const regions[N_ZONES] = {"u", "v", "w", "x", "y", "z"};

struct life {
	struct load_world w;
	struct rand rand;
	struct load_leaf *leaves[N_LEAVES]; // NULL = not there
	uint32_t numbers[N_LEAVES][N_ZONES]; // 0 = not in use
	uint32_t old[N_LEAVES][N_ZONES]; // of the snapshot before, for this instant
	uint32_t drop[N_LEAVES];
	struct request {
		uint32_t leaf, zone, worker, number;
	} open[MAX_OPEN];
	uint32_t n_open;
	struct tally counted[N_LEAVES][N_ZONES], told[N_LEAVES][N_ZONES];
	uint64_t n_drops[N_LEAVES], told_drops[N_LEAVES];
};

static uint64_t open_at(const struct life *l, uint32_t leaf, uint32_t zone)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < l->n_open; i++)
		n += l->open[i].leaf == leaf && l->open[i].zone == zone;
	return n;
}

// Adds a report that is about to leave.
static void hear_cluster(struct life *l, char *text, uint64_t in_progress[N_LEAVES][N_ZONES])
{
	uint32_t leaf = text[0] == clusters[1][0];
	char *rest = text;
	strtok_r(rest, " ", &rest); // the name
	strtok_r(rest, " ", &rest); // the time
	for (char *word; (word = strtok_r(rest, " ", &rest));) {
		if (strcmp(word, "drops") == 0) {
			l->told_drops[leaf] += strtoull(strtok_r(rest, " ", &rest), NULL, 10);
			strtok_r(rest, " ", &rest); // again, by category
			continue;
		}
		uint32_t zone = (uint32_t)(word[0] - regions[0][0]);
		assert_in_range(zone, 0, N_ZONES - 1);
		struct tally *t = &l->told[leaf][zone];
		t->issued += strtoull(strtok_r(rest, " ", &rest), NULL, 10);
		t->ok += strtoull(strtok_r(rest, " ", &rest), NULL, 10);
		t->error += strtoull(strtok_r(rest, " ", &rest), NULL, 10);
		in_progress[leaf][zone] = strtoull(strtok_r(rest, " ", &rest), NULL, 10);
	}
}

static void hear(struct life *l, const char *said)
{
	uint64_t in_progress[N_LEAVES][N_ZONES] = {0};
	char text[4096], *rest = text;
	snprintf(text, sizeof(text), "%s", said);
	for (char *cluster; (cluster = strtok_r(rest, ";", &rest));)
		hear_cluster(l, cluster + strspn(cluster, " "), in_progress);
	for (uint32_t i = 0; i < N_LEAVES; i++)
		for (uint32_t j = 0; j < N_ZONES; j++)
			assert_int_equal(in_progress[i][j], open_at(l, i, j));
}

// What the server and the network do; a stream breaks now and then, before or after a report left.
static void serve(struct life *l, uint32_t break_percent)
{
	struct lrs_fixture *f = &l->w.f;
	char text[4096];
	snprintf(text, sizeof(text), "%s", lrs_sent(f));
	if (f->stream && rand_below(&l->rand, 100) < break_percent) {
		lrs_close(f, "broken");
	} else if (strcmp(text, "hello") == 0) {
		lrs_settle(f);
		lrs_settings(f, NULL, 2 * S);
	} else if (*text && f->sending) {
		if (strcmp(text, "nothing") != 0)
			hear(l, text);
		lrs_settle(f);
	}
	lrs_forget(f);
}

static void pass(struct life *l, uint64_t ms, uint32_t break_percent)
{
	memcpy(l->old, l->numbers, sizeof(l->old));
	for (uint64_t i = 0; i < ms; i += 100) { // a report is heard when it is made
		lrs_pass_time(&l->w.f, 100000000);
		serve(l, break_percent);
	}
}

static void change(struct life *l, uint32_t leaf)
{
	static const struct lb_drop_category category[] = {{"lb", 1}};
	uint32_t zones = rand_below(&l->rand, 1 << N_ZONES);
	uint32_t numbers[N_ZONES] = {0};
	memcpy(l->old[leaf], l->numbers[leaf], sizeof(l->old[leaf]));
	if (rand_below(&l->rand, 10) == 0) {
		load_leaf_free(l->leaves[leaf]);
		l->leaves[leaf] = NULL;
		memset(l->numbers[leaf], 0, sizeof(numbers));
		l->drop[leaf] = 0;
		return;
	}
	if (!l->leaves[leaf])
		l->leaves[leaf] =
			load_leaf_new(l->w.report, l->w.f.bootstrap->servers, clusters[leaf], "");
	assert_non_null(l->leaves[leaf]);
	load_leaf_begin(l->leaves[leaf]);
	for (uint32_t i = 0; i < N_ZONES; i++)
		if (zones & 1u << i)
			numbers[i] = load_leaf_locality(l->leaves[leaf], regions[i], "z", "s");
	const struct lb_loads *drops =
		load_leaf_drops(l->leaves[leaf], category, rand_below(&l->rand, 2));
	if (rand_below(&l->rand, 5) == 0)
		return; // given up: what was in use stays so
	load_leaf_end(l->leaves[leaf]);
	memcpy(l->numbers[leaf], numbers, sizeof(numbers));
	l->drop[leaf] = drops->n_drops ? drops->drops[0] : 0;
}

static void begin_request(struct life *l)
{
	uint32_t leaf = rand_below(&l->rand, N_LEAVES), zone = rand_below(&l->rand, N_ZONES);
	uint32_t worker = rand_below(&l->rand, N_WORKERS);
	bool late = rand_below(&l->rand, 4) == 0; // by the snapshot before
	uint32_t number = late ? l->old[leaf][zone] : l->numbers[leaf][zone];
	if (l->n_open == MAX_OPEN || !number)
		return;
	l->open[l->n_open++] = (struct request){leaf, zone, worker, number};
	l->counted[leaf][zone].issued++;
	load_world_count(&l->w, worker, number, ISSUED);
}

static void end_request(struct life *l)
{
	if (l->n_open == 0)
		return;
	uint32_t which = rand_below(&l->rand, l->n_open);
	struct request r = l->open[which];
	l->open[which] = l->open[--l->n_open];
	bool ok = rand_below(&l->rand, 3) > 0;
	(*(ok ? &l->counted[r.leaf][r.zone].ok : &l->counted[r.leaf][r.zone].error))++;
	load_world_count(&l->w, r.worker, r.number, ok ? OK : FAILED);
}

static void drop_request(struct life *l)
{
	uint32_t leaf = rand_below(&l->rand, N_LEAVES);
	if (!l->drop[leaf])
		return;
	l->n_drops[leaf]++;
	load_world_count(&l->w, rand_below(&l->rand, N_WORKERS), l->drop[leaf], ISSUED);
}

static void step(struct life *l)
{
	switch (rand_below(&l->rand, 8)) {
	case 0:
		change(l, rand_below(&l->rand, N_LEAVES));
		break;
	case 1:
		pass(l, rand_below(&l->rand, 15) * 100, 3);
		break;
	case 2:
	case 3:
	case 4:
		begin_request(l);
		break;
	case 5:
		drop_request(l);
		break;
	default:
		end_request(l);
		break;
	}
}

static void all_is_told(const struct life *l)
{
	for (uint32_t i = 0; i < N_LEAVES; i++) {
		assert_int_equal(l->told_drops[i], l->n_drops[i]);
		for (uint32_t j = 0; j < N_ZONES; j++) {
			assert_int_equal(l->told[i][j].issued, l->counted[i][j].issued);
			assert_int_equal(l->told[i][j].ok, l->counted[i][j].ok);
			assert_int_equal(l->told[i][j].error, l->counted[i][j].error);
		}
	}
}

static void every_count_is_told_once_in_random_lives_LR_06_LR_09_LR_11(void **state)
{
	uint64_t n_told = 0;
	print_message("seed %" PRIu64 "\n", seed);
	for (uint32_t i = 0; i < N_LIVES; i++) {
		struct load_report_info info;
		struct life l = {0};
		rand_init(&l.rand, seed + i);
		load_world_init_small(&l.w, i % 2 ? 24 : 10); // numbers are given again soon
		for (uint32_t j = 0; j < N_STEPS; j++)
			step(&l);
		while (l.n_open)
			end_request(&l);
		for (uint32_t j = 0; j < N_LEAVES; j++)
			load_leaf_free(l.leaves[j]);
		pass(&l, 140000, 0); // the longest backoff is over
		all_is_told(&l);
		n_told += l.told[0][0].issued + l.told_drops[1];
		load_report_info(l.w.report, &info);
		assert_int_equal(info.n_counters, 0);
		assert_int_equal(info.stream.n_clusters, 0);
		assert_int_equal(info.stream.n_given_up, 0);
		load_world_fini(&l.w);
	}
	assert_true(n_told > N_LIVES); // something has happened
}

// Threads

#define N_ROUNDS 60
#define N_FLIGHT 8
#define N_MEMBERS 4

struct writer {
	pthread_t thread;
	struct lb_link *link;
	uint64_t turns; // w: the thread (release), r: the test (acquire)
	bool stop; // w: the test, r: the thread (relaxed)
	uint64_t n_begun; // the thread's; the test's after joining
};

static void end_one(const struct writer *w, uint32_t *slot, bool ok)
{
	struct lb_load_counters *c = &w->link->loads[*slot];
	if (*slot)
		counter_add(ok ? &c->ok : &c->failed, 1);
	*slot = 0;
}

// Requests to all members in turn, each with the counters that its member has when it begins.
static void *write_counts(void *arg)
{
	struct writer *w = arg;
	uint32_t flight[N_FLIGHT] = {0};
	for (; !__atomic_load_n(&w->stop, __ATOMIC_RELAXED); w->n_begun++) {
		uint32_t *slot = &flight[w->n_begun % N_FLIGHT];
		end_one(w, slot, w->n_begun % 3);
		*slot = __atomic_load_n(
			&w->link->shared->loads[w->n_begun % N_MEMBERS], __ATOMIC_RELAXED);
		counter_add(&w->link->loads[*slot].issued, 1);
		if (w->n_begun % 64 == 0)
			__atomic_store_n(&w->turns, w->turns + 1, __ATOMIC_RELEASE);
	}
	for (uint32_t i = 0; i < N_FLIGHT; i++)
		end_one(w, &flight[i], false);
	return NULL;
}

// Until every writer has seen what was published before.
static void grace(const struct writer *writers)
{
	for (uint32_t i = 0; i < N_WORKERS; i++) {
		uint64_t seen = __atomic_load_n(&writers[i].turns, __ATOMIC_ACQUIRE);
		while (__atomic_load_n(&writers[i].turns, __ATOMIC_ACQUIRE) < seen + 2)
			sched_yield();
	}
}

struct hearer {
	struct load_world w;
	struct load_leaf *leaf;
	struct tally told;
	uint64_t in_progress;
};

static void hear_all(struct hearer *h)
{
	char text[4096], *rest = text;
	h->in_progress = 0;
	snprintf(text, sizeof(text), "%s", load_world_report(&h->w));
	if (!*text) // a second report of zeros
		return;
	strtok_r(rest, " ", &rest);
	strtok_r(rest, " ", &rest);
	while (strtok_r(rest, " ", &rest)) {
		h->told.issued += strtoull(strtok_r(rest, " ", &rest), NULL, 10);
		h->told.ok += strtoull(strtok_r(rest, " ", &rest), NULL, 10);
		h->told.error += strtoull(strtok_r(rest, " ", &rest), NULL, 10);
		h->in_progress += strtoull(strtok_r(rest, " ", &rest), NULL, 10);
	}
	assert_int_equal(h->told.issued, h->told.ok + h->told.error + h->in_progress);
}

// Every member gets another locality, so that those of before leave under way.
static void move_members(struct hearer *h, uint32_t round)
{
	load_leaf_begin(h->leaf);
	for (uint32_t i = 0; i < N_MEMBERS; i++) {
		const char *region = regions[(round + i) % N_ZONES];
		uint32_t number = load_leaf_locality(h->leaf, region, "z", "s");
		assert_true(number > 0);
		__atomic_store_n(&h->w.shared->loads[i], number, __ATOMIC_RELAXED);
	}
	load_leaf_end(h->leaf);
}

static void two_workers_count_while_reports_are_made_LR_11(void **state)
{
	struct hearer h = {0};
	struct writer writers[N_WORKERS] = {0};
	uint64_t n_begun = 0;
	load_world_init_small(&h.w, N_ZONES);
	h.leaf = load_leaf_new(h.w.report, h.w.f.bootstrap->servers, "a", "");
	assert_non_null(h.leaf);
	load_world_begin(&h.w);
	move_members(&h, 0);
	for (uint32_t i = 0; i < N_WORKERS; i++) {
		writers[i].link = h.w.links[i];
		assert_int_equal(
			pthread_create(&writers[i].thread, NULL, write_counts, &writers[i]), 0);
	}
	for (uint32_t round = 1; round <= N_ROUNDS; round++) {
		hear_all(&h);
		move_members(&h, round);
		grace(writers);
	}
	for (uint32_t i = 0; i < N_WORKERS; i++) {
		__atomic_store_n(&writers[i].stop, true, __ATOMIC_RELAXED);
		pthread_join(writers[i].thread, NULL);
		n_begun += writers[i].n_begun;
	}
	hear_all(&h);
	assert_int_equal(h.in_progress, 0);
	assert_int_equal(h.told.issued, n_begun);
	assert_int_equal(h.told.ok + h.told.error, n_begun);
	load_leaf_free(h.leaf);
	load_world_fini(&h.w);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(every_count_is_told_once_in_random_lives_LR_06_LR_09_LR_11),
		cmocka_unit_test(two_workers_count_while_reports_are_made_LR_11),
	};
	return cmocka_run_group_tests_name("ctrl/load_exact", suite, NULL, NULL);
}
