// SPDX-License-Identifier: Apache-2.0
// Shares of more breakers than are told apart (TH-79); more of them: tests/sim/proxy/share_cases.c.
#include "dataplane/proxy/share.h"
#include "dataplane/proxy/source.h"
#include "tests/support/check.h"

#include <stdlib.h>

#define N_BREAKERS (PROXY_SHARES_SEEN + 1)
#define LIMIT 7

struct sharing {
	struct proxy_shares shares;
	struct lb_breaker breakers[N_BREAKERS];
	struct proxy_source sources[2];
	struct proxy_held held[LIMIT];
	uint64_t now_ns;
};

static struct sharing *start(void)
{
	struct sharing *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	assert_int_equal(proxy_shares_init(&s->shares, LIMIT), 0);
	s->now_ns = 1;
	return s;
}

static void stop(struct sharing *s)
{
	proxy_shares_fini(&s->shares);
	free(s);
}

// How many of `wanted` places the source gets; they are left again.
static int places(struct sharing *s, struct lb_breaker *b, int source, int wanted)
{
	int n = 0;
	struct proxy_share_ask ask = {b, &s->sources[source], LIMIT, ++s->now_ns};
	while (n < wanted && proxy_share_enter(&s->shares, &ask, &s->held[n]))
		assert_true(lb_breaker_enter(b, LIMIT) && ++n);
	for (int i = 0; i < n; i++) {
		proxy_share_leave(&s->shares, &s->held[i]);
		lb_breaker_leave(b);
	}
	return n;
}

// A32-I06: some of these breakers have one hash.
static void a32_i06_who_asks_alone_gets_every_place_of_every_breaker(void **state)
{
	struct sharing *s = start();
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < N_BREAKERS; i++)
			assert_int_equal(places(s, &s->breakers[i], 0, LIMIT), LIMIT);
	stop(s);
}

// TH-79
static void th_79_asking_of_other_breakers_makes_nobody_alone(void **state)
{
	struct sharing *s = start();
	assert_int_equal(places(s, &s->breakers[0], 0, 1), 1);
	assert_int_equal(places(s, &s->breakers[0], 1, 1), 1);
	for (int i = 1; i < N_BREAKERS; i++)
		assert_int_equal(places(s, &s->breakers[i], 0, 1), 1);
	assert_in_range(places(s, &s->breakers[0], 0, LIMIT), LIMIT / 2, LIMIT - 1);
	s->now_ns += 61 * NS_PER_SECOND;
	assert_int_equal(places(s, &s->breakers[0], 0, LIMIT), LIMIT);
	stop(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a32_i06_who_asks_alone_gets_every_place_of_every_breaker),
		cmocka_unit_test(th_79_asking_of_other_breakers_makes_nobody_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
