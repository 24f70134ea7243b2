// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/member/member.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/world.h"

struct fixture {
	struct world world;
	struct lb_member_env env;
	struct lb_member *member;
};

static void init(struct fixture *f)
{
	struct ip_port address = world_addr(1);
	world_init(&f->world, 1, 1);
	f->env = (struct lb_member_env){f->world.connectivity, 250 * WORLD_MS};
	f->member = lb_member_new(&f->env, 5, &address, 1);
	assert_non_null(f->member);
}

static void fini(struct fixture *f)
{
	lb_member_put(f->member);
	world_fini(&f->world);
}

#define N_LISTS 3
#define N_PLACES 4

struct listener {
	struct lb_member_watcher watcher;
	uint32_t n_told[N_PLACES];
};

static void listener_told(struct lb_member_watcher *watcher, uint32_t index)
{
	((struct listener *)watcher)->n_told[index]++;
}

// Each hears of each change as often as it watches, whoever comes and goes.
static void lists_watch_a_member_under_indexes_of_their_own(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct fixture f;
		init(&f);
		struct listener lists[N_LISTS];
		bool watches[N_LISTS][N_PLACES] = {0};
		for (int i = 0; i < N_LISTS; i++)
			lists[i] = (struct listener){.watcher = {listener_told, N_PLACES}};
		struct rand r;
		rand_init(&r, seed);
		for (int step = 0; step < 200; step++) {
			uint32_t i = (uint32_t)rand_below(&r, N_LISTS);
			uint32_t k = (uint32_t)rand_below(&r, N_PLACES);
			if (watches[i][k])
				lb_member_unwatch(f.member, &lists[i].watcher, k);
			else
				assert_true(lb_member_watch(f.member, &lists[i].watcher, k));
			watches[i][k] = !watches[i][k];
			lb_member_set_ejected(f.member, step % 2 == 0);
			bool any = false;
			for (i = 0; i < N_LISTS; i++)
				for (k = 0; k < N_PLACES; k++) {
					assert_int_equal(lists[i].n_told[k], watches[i][k]);
					lists[i].n_told[k] = 0;
					any |= watches[i][k];
				}
			assert_int_equal(lb_member_is_watched(f.member), any);
		}
		for (uint32_t i = 0; i < N_LISTS; i++) {
			for (uint32_t k = 0; k < N_PLACES; k++)
				if (watches[i][k])
					lb_member_unwatch(f.member, &lists[i].watcher, k);
			assert_null(lists[i].watcher.links);
		}
		fini(&f);
	}
}

static void second_watcher_without_memory_changes_nothing(void **state)
{
	(void)state;
	struct fixture f;
	init(&f);
	struct listener one = {.watcher = {listener_told, N_PLACES}}, other = one;
	assert_true(lb_member_watch(f.member, &one.watcher, 0));
	bool ok = false;
	ALLOC_FAIL_EACH(ok = lb_member_watch(f.member, &other.watcher, 2), !ok, (void)0);
	lb_member_connect(f.member);
	assert_int_equal(one.n_told[0], 1);
	assert_int_equal(other.n_told[2], 1);
	lb_member_unwatch(f.member, &one.watcher, 0);
	lb_member_unwatch(f.member, &other.watcher, 2);
	fini(&f);
}

RUN_SUITE("lb/member_watch", cmocka_unit_test(lists_watch_a_member_under_indexes_of_their_own),
	cmocka_unit_test(second_watcher_without_memory_changes_nothing))
