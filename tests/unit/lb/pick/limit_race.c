// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lb/pick/limit_race.h"

#include "tests/support/check.h"

#include <pthread.h>

void limit_race_run(struct limit_race *r, void *(*worker)(void *race))
{
	pthread_t threads[LIMIT_RACE_WORKERS];
	*r = (struct limit_race){.breakers = lb_breakers_new()};
	r->breaker = lb_breakers_get(r->breakers, "orders", "");
	assert_non_null(r->breaker);
	for (int i = 0; i < LIMIT_RACE_WORKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, worker, r), 0);
	for (int i = 0; i < LIMIT_RACE_WORKERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(lb_breaker_in_flight(r->breaker), 0);
}

void limit_race_free(struct limit_race *r)
{
	lb_breaker_put(r->breaker);
	lb_breakers_free(r->breakers);
}

void limit_race_entered(struct limit_race *r)
{
	uint32_t held = __atomic_add_fetch(&r->held, 1, __ATOMIC_SEQ_CST);
	uint32_t most = __atomic_load_n(&r->most, __ATOMIC_RELAXED);
	while (held > most && !__atomic_compare_exchange_n(&r->most, &most, held, true,
				      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	__atomic_fetch_add(&r->n_entered, 1, __ATOMIC_RELAXED);
}

void limit_race_leaves(struct limit_race *r)
{
	__atomic_sub_fetch(&r->held, 1, __ATOMIC_SEQ_CST);
}
