// SPDX-License-Identifier: Apache-2.0
// CUBIC beside RFC 9438's formulas in floating point, over virtual time.
#include "dataplane/tcp/cc.h"
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

#include <math.h>

#define C 0.4
#define ALPHA (3 * (1 - 0.7) / (1 + 0.7))

struct sender {
	struct tcp_cc cc;
	uint64_t now_ns, rtt_ns;
	uint32_t una;
};

static struct sender begin(uint64_t rtt_ms)
{
	struct sender s = {.now_ns = 5 * NS_PER_SECOND, .rtt_ns = rtt_ms * NS_PER_MS};
	tcp_cc_cubic.init(&s.cc, MSS);
	return s;
}

static double segments(const struct sender *s)
{
	return (double)s->cc.cwnd / MSS;
}

// Of a sender with so many segments in flight, all of cwnd.
static void lose(struct sender *s, uint32_t cwnd)
{
	s->cc.cwnd = cwnd * MSS;
	tcp_cc_cubic.on_loss(&s->cc, MSS, s->cc.cwnd);
	tcp_cc_settle(&s->cc);
}

// Acknowledges for so long what fills cwnd, two segments an ACK, evenly.
static void run_for(struct sender *s, uint64_t ns)
{
	for (uint64_t end = s->now_ns + ns; s->now_ns < end;) {
		s->now_ns += s->rtt_ns * 2 * MSS / s->cc.cwnd;
		s->una += 2 * MSS;
		const struct tcp_cc_ack ack = {
			s->now_ns, s->rtt_ns, s->rtt_ns, MSS, 2 * MSS, s->una, s->una + s->cc.cwnd};
		tcp_cc_cubic.on_ack(&s->cc, &ack);
	}
}

static double w_cubic(double t, double w_max, double k)
{
	return C * pow(t - k, 3) + w_max;
}

static void assert_close(double is, double should, double share)
{
	if (fabs(is - should) > share * should)
		fail_msg("%.2f instead of %.2f segments", is, should);
}

// TCP-133: concave up to where the loss was, then convex.
static void cwnd_follows_the_cubic(void **state)
{
	static const struct {
		uint64_t rtt_ms;
		uint32_t cwnd;
	} cases[] = {{100, 1000}, {100, 4000}, {40, 2000}, {200, 300}, {20, 9000}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sender s = begin(cases[i].rtt_ms);
		double w_max = cases[i].cwnd, k = cbrt(0.3 * w_max / C);
		lose(&s, cases[i].cwnd);
		assert_close(segments(&s), 0.7 * w_max, 0.001);
		uint64_t start = s.now_ns;
		for (unsigned part = 1; part <= 30; part++) { // 1.5 times K
			run_for(&s, (uint64_t)(k * 1e9 / 20));
			assert_close(segments(&s),
				w_cubic((double)(s.now_ns - start) / 1e9, w_max, k), 0.01);
		}
		assert_true(segments(&s) > w_max);
	}
}

// TCP-134: where the cubic is slower than Reno would be, Reno's growth counts: figure 4 of RFC 9438
// in floating point beside it.
static void cwnd_is_at_least_what_reno_would_have(void **state)
{
	struct sender s = begin(10);
	lose(&s, 100);
	double w_est = 70, cwnd = 70, start = (double)s.now_ns;
	while (w_est < 140) {
		s.now_ns += s.rtt_ns * 2 * MSS / s.cc.cwnd;
		s.una += 2 * MSS;
		const struct tcp_cc_ack ack = {
			s.now_ns, s.rtt_ns, s.rtt_ns, MSS, 2 * MSS, s.una, s.una + s.cc.cwnd};
		tcp_cc_cubic.on_ack(&s.cc, &ack);
		w_est += (w_est < 100 ? ALPHA : 1) * 2 / cwnd;
		cwnd = w_est;
		assert_true(w_cubic(((double)s.now_ns - start) / 1e9, 100, cbrt(30 / C)) < w_est);
		assert_close(segments(&s), w_est, 0.02);
	}
}

// TCP-135
static void a_loss_before_the_last_one_lowers_the_plateau(void **state)
{
	struct sender s = begin(100);
	lose(&s, 1000);
	assert_int_equal(s.cc.cubic.w_max, 1000 * MSS);
	lose(&s, 800);
	assert_int_equal(s.cc.cubic.w_max, 680 * MSS);
	lose(&s, 900);
	assert_int_equal(s.cc.cubic.w_max, 900 * MSS);
}

// TCP-133
static void a_loss_takes_three_tenths_of_what_is_in_flight(void **state)
{
	struct sender s = begin(100);
	s.cc.cwnd = 1000 * MSS;
	tcp_cc_cubic.on_loss(&s.cc, MSS, 500 * MSS);
	assert_int_equal(s.cc.cwnd, 350 * MSS);
	assert_int_equal(s.cc.ssthresh, 350 * MSS);
	tcp_cc_settle(&s.cc);
	tcp_cc_cubic.on_loss(&s.cc, MSS, MSS);
	assert_int_equal(s.cc.cwnd, 2 * MSS);
}

// TCP-144
static void another_loss_of_one_repair_is_measured_by_where_cwnd_was_going(void **state)
{
	struct sender s = begin(100);
	s.cc.cwnd = 1000 * MSS;
	tcp_cc_cubic.on_loss(&s.cc, MSS, 1000 * MSS);
	s.cc.cwnd = 100 * MSS; // PRR has not let more out yet
	tcp_cc_cubic.on_loss(&s.cc, MSS, 100 * MSS);
	assert_int_equal(s.cc.ssthresh, 490 * MSS);
	assert_int_equal(s.cc.cubic.w_max, 1000 * MSS);
	tcp_cc_cubic.undo(&s.cc);
	assert_int_equal(s.cc.cwnd, 1000 * MSS);
}

// TCP-139
static void a_mark_takes_three_twentieths(void **state)
{
	struct sender s = begin(100);
	s.cc.cwnd = 1000 * MSS;
	tcp_cc_cubic.on_ecn(&s.cc, MSS, 1000 * MSS);
	assert_int_equal(s.cc.cwnd, 850 * MSS);
	assert_int_equal(s.cc.ssthresh, 850 * MSS);
	assert_int_equal(s.cc.cubic.w_max, 1000 * MSS);
}

// TCP-136: the cubic begins where slow start ends, at its plateau.
static void after_a_timeout_growth_begins_slowly(void **state)
{
	struct sender s = begin(100);
	s.cc.cwnd = 1000 * MSS;
	tcp_cc_cubic.on_timeout(&s.cc, MSS, 1000 * MSS, true);
	assert_int_equal(s.cc.cwnd, MSS);
	assert_int_equal(s.cc.ssthresh, 700 * MSS);
	tcp_cc_cubic.on_timeout(&s.cc, MSS, MSS, false);
	assert_int_equal(s.cc.ssthresh, 700 * MSS);
	while (s.cc.cwnd < s.cc.ssthresh)
		run_for(&s, s.rtt_ns);
	uint64_t start = s.now_ns;
	run_for(&s, 8 * NS_PER_SECOND);
	assert_close(segments(&s), w_cubic((double)(s.now_ns - start) / 1e9, 700, 0), 0.01);
}

// TCP-137
static void time_in_which_something_else_was_the_limit_does_not_count(void **state)
{
	struct sender s = begin(100);
	lose(&s, 4000);
	run_for(&s, NS_PER_SECOND);
	double before = segments(&s);
	s.now_ns += 60 * NS_PER_SECOND; // with ACKs that nobody tells of
	run_for(&s, NS_PER_SECOND);
	double k = cbrt(0.3 * 4000 / C);
	assert_true(segments(&s) < 1.3 * before);
	assert_close(segments(&s), w_cubic(2.1, 4000, k), 0.01);
}

// TCP-136
static void an_undone_loss_returns_to_the_curve(void **state)
{
	struct sender s = begin(100);
	lose(&s, 2000);
	uint64_t start = s.now_ns;
	run_for(&s, 3 * NS_PER_SECOND);
	uint32_t cwnd = s.cc.cwnd, ssthresh = s.cc.ssthresh;
	tcp_cc_cubic.on_loss(&s.cc, MSS, cwnd);
	tcp_cc_cubic.undo(&s.cc);
	assert_int_equal(s.cc.cwnd, cwnd);
	assert_int_equal(s.cc.ssthresh, ssthresh);
	run_for(&s, 3 * NS_PER_SECOND);
	double t = (double)(s.now_ns - start) / 1e9;
	assert_close(segments(&s), w_cubic(t, 2000, cbrt(600 / C)), 0.01);
}

// TCP-138
static void silence_halves_cwnd_for_each_rto(void **state)
{
	struct sender s = begin(100);
	lose(&s, 1000); // 700
	tcp_cc_cubic.on_idle(&s.cc, MSS, 2);
	assert_int_equal(s.cc.cwnd, 175 * MSS);
	assert_int_equal(s.cc.ssthresh, 700 * MSS); // not below three quarters of what was
	tcp_cc_cubic.on_idle(&s.cc, MSS, 1000);
	assert_int_equal(s.cc.cwnd, 10 * MSS);
}

// TCP-203
static void what_of_cwnd_was_not_in_flight_is_no_plateau(void **state)
{
	struct sender s = begin(100);
	s.cc.cwnd = 4000 * MSS;
	tcp_cc_cubic.on_loss(&s.cc, MSS, 1000 * MSS);
	tcp_cc_settle(&s.cc);
	assert_int_equal(s.cc.cwnd, 700 * MSS);
	uint64_t start = s.now_ns;
	run_for(&s, 12 * NS_PER_SECOND);
	double t = (double)(s.now_ns - start) / 1e9;
	assert_close(segments(&s), w_cubic(t, 1000, cbrt(0.3 * 1000 / C)), 0.01);
	s.cc.cwnd = 4000 * MSS;
	tcp_cc_cubic.on_loss(&s.cc, MSS, MSS); // what any connection may begin with is no news
	assert_int_equal(s.cc.cwnd, 2 * MSS);
	assert_int_equal(s.cc.cubic.before, 10 * MSS);
}

static void cwnd_stays_below_two_gibibytes(void **state)
{
	struct sender s = begin(1);
	s.cc.cwnd = UINT32_MAX / 2 - MSS;
	const struct tcp_cc_ack ack = {.now_ns = 1, .mss = MSS, .acked = UINT32_MAX / 2};
	tcp_cc_cubic.on_ack(&s.cc, &ack);
	assert_int_equal(s.cc.cwnd, UINT32_MAX / 2);
	lose(&s, s.cc.cwnd / MSS);
	run_for(&s, 50 * NS_PER_MS);
	assert_true(s.cc.cwnd <= UINT32_MAX / 2);
}

RUN_SUITE("tcp/cubic", CASE(cwnd_follows_the_cubic), CASE(cwnd_is_at_least_what_reno_would_have),
	CASE(a_loss_before_the_last_one_lowers_the_plateau),
	CASE(a_loss_takes_three_tenths_of_what_is_in_flight),
	CASE(another_loss_of_one_repair_is_measured_by_where_cwnd_was_going),
	CASE(a_mark_takes_three_twentieths), CASE(after_a_timeout_growth_begins_slowly),
	CASE(time_in_which_something_else_was_the_limit_does_not_count),
	CASE(an_undone_loss_returns_to_the_curve), CASE(silence_halves_cwnd_for_each_rto),
	CASE(what_of_cwnd_was_not_in_flight_is_no_plateau), CASE(cwnd_stays_below_two_gibibytes))
