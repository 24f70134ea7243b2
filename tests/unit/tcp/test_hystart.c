// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/cc.h"
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

#include <limits.h>

// A sender in slow start whose cwnd is always full.
struct sender {
	struct tcp_hystart h;
	uint32_t cwnd, una, nxt;
	uint32_t end; // of the round
	bool done;
};

static struct sender begin(void)
{
	uint32_t una = UINT32_MAX - 20 * MSS, nxt = una + 10 * MSS;
	return (struct sender){.cwnd = 10 * MSS, .una = una, .nxt = nxt, .end = nxt};
}

// ACKs of two segments each until what was in flight when the last one of these ended is
// acknowledged. The first n_samples of them measure a round trip of so long.
static void round_trip(struct sender *s, uint64_t rtt_us, unsigned n_samples)
{
	for (uint32_t end = s->end; seq_lt(s->una, end) && !s->done; s->end = s->nxt) {
		s->nxt = s->una + s->cwnd; // what the last ACK allowed has been sent
		s->una += 2 * MSS;
		const struct tcp_cc_ack ack = {
			.rtt_ns = n_samples ? rtt_us * NS_PER_US : 0,
			.mss = MSS,
			.acked = 2 * MSS,
			.una = s->una,
			.nxt = s->nxt,
		};
		n_samples -= n_samples ? 1 : 0;
		s->cwnd += tcp_hystart_on_ack(&s->h, &ack, &s->done);
	}
}

// TCP-131
static void cwnd_doubles_while_round_trips_stay_short(void **state)
{
	struct sender s = begin();
	for (unsigned i = 0; i < 6; i++)
		round_trip(&s, 20000 + 500 * i, UINT_MAX);
	assert_int_equal(s.cwnd, s.una - begin().una + 10 * MSS);
	assert_true(s.cwnd > 400 * MSS);
	assert_false(s.done);
}

// TCP-131
static void growth_slows_when_round_trips_grow_by_an_eighth(void **state)
{
	struct sender s = begin();
	for (unsigned i = 0; i < 3; i++)
		round_trip(&s, 80000, UINT_MAX);
	round_trip(&s, 89900, UINT_MAX);
	assert_false(s.h.n_slow_rounds); // less than an eighth
	uint32_t cwnd = s.cwnd, una = s.una;
	round_trip(&s, 101200, UINT_MAX);
	assert_true(s.h.n_slow_rounds);
	// The first eight ACKs grew it by all, the others by a quarter.
	uint32_t rest = s.una - una - 16 * MSS;
	assert_true(rest > 80 * MSS);
	assert_int_equal(s.cwnd, cwnd + 16 * MSS + rest / 4);
}

static void four_milliseconds_are_the_least_growth_that_counts(void **state)
{
	struct sender s = begin();
	for (unsigned i = 0; i < 3; i++)
		round_trip(&s, 200, UINT_MAX);
	round_trip(&s, 4100, UINT_MAX);
	assert_false(s.h.n_slow_rounds);
	round_trip(&s, 8200, UINT_MAX);
	assert_true(s.h.n_slow_rounds);
}

static void sixteen_milliseconds_are_enough_however_long_the_way(void **state)
{
	struct sender s = begin();
	for (unsigned i = 0; i < 3; i++)
		round_trip(&s, 300000, UINT_MAX);
	round_trip(&s, 316000, UINT_MAX);
	assert_true(s.h.n_slow_rounds);
}

static void seven_samples_tell_nothing(void **state)
{
	struct sender s = begin();
	for (unsigned i = 0; i < 3; i++)
		round_trip(&s, 20000, UINT_MAX);
	round_trip(&s, 60000, 7);
	assert_false(s.h.n_slow_rounds);
	round_trip(&s, 90000, 8);
	assert_true(s.h.n_slow_rounds);
}

// TCP-132
static void shorter_round_trips_again_resume_slow_start(void **state)
{
	struct sender s = begin();
	for (unsigned i = 0; i < 3; i++)
		round_trip(&s, 20000, UINT_MAX);
	round_trip(&s, 40000, UINT_MAX);
	assert_true(s.h.n_slow_rounds);
	round_trip(&s, 20000, UINT_MAX);
	assert_false(s.h.n_slow_rounds);
	uint32_t before = s.cwnd, una = s.una;
	round_trip(&s, 20000, UINT_MAX);
	assert_int_equal(s.cwnd, before + s.una - una);
}

// TCP-132
static void five_rounds_of_slow_growth_end_slow_start(void **state)
{
	struct sender s = begin();
	for (unsigned i = 0; i < 3; i++)
		round_trip(&s, 20000, UINT_MAX);
	for (unsigned i = 0; i < 4; i++) // the first one's rest counts as a round
		round_trip(&s, 40000 + i, UINT_MAX);
	assert_false(s.done);
	round_trip(&s, 40000, UINT_MAX);
	assert_true(s.done);
}

RUN_SUITE("tcp/hystart", CASE(cwnd_doubles_while_round_trips_stay_short),
	CASE(growth_slows_when_round_trips_grow_by_an_eighth),
	CASE(four_milliseconds_are_the_least_growth_that_counts),
	CASE(sixteen_milliseconds_are_enough_however_long_the_way),
	CASE(seven_samples_tell_nothing), CASE(shorter_round_trips_again_resume_slow_start),
	CASE(five_rounds_of_slow_growth_end_slow_start))
