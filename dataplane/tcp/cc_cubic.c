// SPDX-License-Identifier: Apache-2.0
// CUBIC (RFC 9438): after a loss cwnd grows by a cubic of time, fast at first, slowly around where
// the loss was, and fast again beyond. Where Reno would have more, it has as much as Reno. Slow
// start is HyStart++'s, the first time. In integers: windows in bytes, the cubic's time in
// milliseconds.
#include "dataplane/tcp/cc.h"
#include "lb/base/time.h"

#define MAX_MS 100000 // of the cubic's argument: windows of 400,000 segments beyond

// The cubic root, rounded down, a bit at a time. Once a loss.
static uint32_t cube_root(uint64_t x)
{
	uint64_t root = 0;
	for (uint64_t bit = UINT64_C(1) << 20; bit; bit >>= 1) {
		uint64_t more = root | bit;
		if (more * more * more <= x)
			root = more;
	}
	return (uint32_t)root;
}

// RFC 9438 4.2: C is 0.4 segments a second cubed. Written as 4 * ms^3 / 10^10 segments.
static int64_t cubic(int64_t ms, uint32_t mss)
{
	ms = ms > MAX_MS ? MAX_MS : ms < -MAX_MS ? -MAX_MS : ms;
	return 4 * ms * ms * ms / 1000000 * mss / 10000;
}

// What cubic() takes to bring that many bytes, in milliseconds.
static uint32_t cubic_ms(uint32_t bytes, uint32_t mss)
{
	return cube_root(bytes * UINT64_C(2500000000) / mss);
}

static void begin_epoch(struct tcp_cc *cc, const struct tcp_cc_ack *ack)
{
	struct tcp_cubic *q = &cc->cubic;
	q->epoch_ns = q->last_ns = ack->now_ns;
	q->w_est = cc->cwnd;
	q->est_acked = cc->acked = 0;
	if (q->w_max < cc->cwnd) // RFC 9438 4.8, 4.10
		q->w_max = cc->cwnd;
	q->k_ms = cubic_ms(q->w_max - cc->cwnd, ack->mss);
}

// RFC 9438 4.3, figure 4: grows like Reno, but more slowly, for the smaller decrease, until it has
// what there was before.
static void grow_like_reno(struct tcp_cc *cc, uint32_t mss, uint32_t acked)
{
	struct tcp_cubic *q = &cc->cubic;
	// 1 / alpha = (1 + 0.7) / 3 / (1 - 0.7)
	uint64_t per_segment = q->w_est < q->before ? UINT64_C(17) * cc->cwnd / 9 : cc->cwnd;
	q->est_acked += acked;
	if (q->est_acked < per_segment)
		return;
	q->est_acked -= (uint32_t)per_segment;
	q->w_est += mss;
	if (cc->cwnd < q->w_est)
		tcp_cc_grow(cc, q->w_est - cc->cwnd);
}

// RFC 9438 4.2, 4.4, 4.5.
static void grow_to_target(struct tcp_cc *cc, const struct tcp_cc_ack *ack, uint32_t acked)
{
	struct tcp_cubic *q = &cc->cubic;
	uint64_t ms = (ack->now_ns - q->epoch_ns + ack->srtt_ns) / NS_PER_MS;
	int64_t target = q->w_max + cubic((int64_t)ms - q->k_ms, ack->mss);
	uint32_t cwnd = cc->cwnd, most = cwnd / 2;
	if (target <= cwnd)
		return;
	uint64_t step = (uint64_t)target - cwnd < most ? (uint64_t)target - cwnd : most;
	uint64_t sum = step * acked + cc->acked;
	cc->acked = (uint32_t)(sum % cwnd);
	tcp_cc_grow(cc, (uint32_t)(sum / cwnd));
}

static void cubic_on_ack(struct tcp_cc *cc, const struct tcp_cc_ack *ack)
{
	struct tcp_cubic *q = &cc->cubic;
	uint32_t acked = ack->acked;
	bool done;
	if (cc->ssthresh == UINT32_MAX) { // RFC 9406 4.3: the first slow start only
		tcp_cc_grow(cc, tcp_hystart_on_ack(&cc->hystart, ack, &done));
		if (done)
			cc->ssthresh = cc->cwnd;
		return;
	}
	acked = tcp_cc_slow_start(cc, acked);
	if (!acked)
		return;
	if (!q->epoch_ns)
		begin_epoch(cc, ack);
	// RFC 9438 5.8: time in which something else was the limit does not count. ACKs of a full
	// window are less than a round trip apart.
	uint64_t silence = ack->now_ns - q->last_ns;
	if (silence > 2 * ack->srtt_ns)
		q->epoch_ns += silence - ack->srtt_ns;
	q->last_ns = ack->now_ns;
	grow_to_target(cc, ack, acked);
	grow_like_reno(cc, ack->mss, acked);
}

// What the path has carried: of cwnd, if half of it was not used, only what was (RFC 7661 4.4.1).
static uint32_t carried(const struct tcp_cc *cc, uint32_t mss, uint32_t flight)
{
	uint32_t least = tcp_cc_initial_window(mss);
	if (flight >= cc->cwnd / 2 || cc->cwnd <= least)
		return cc->cwnd;
	return flight > least ? flight : least;
}

// RFC 9438 4.6 and 4.7: beta is numerator / denominator.
static void reduce(
	struct tcp_cc *cc, uint32_t mss, uint32_t flight, uint32_t numerator, uint32_t denominator)
{
	struct tcp_cubic *q = &cc->cubic;
	uint32_t was = carried(cc, mss, flight);
	bool sooner = was < q->w_max; // others take their share: make room faster
	q->before = was;
	q->w_max = sooner ? (uint32_t)(UINT64_C(17) * was / 20) : was;
	q->epoch_ns = 0;
	cc->ssthresh = tcp_cc_share(mss, flight, numerator, denominator);
}

static void cubic_on_loss(struct tcp_cc *cc, uint32_t mss, uint32_t flight)
{
	// Another loss of one repair (RFC 5681 4.3): cwnd and what is in flight are low meanwhile,
	// so what counts is where they were going, and W_max is of the first loss.
	bool again = cc->prior_cwnd != 0;
	tcp_cc_save(cc);
	if (again)
		cc->ssthresh = tcp_cc_share(mss, cc->ssthresh, 7, 10);
	else
		reduce(cc, mss, flight, 7, 10);
	cc->cwnd = cc->ssthresh;
}

static void cubic_on_timeout(struct tcp_cc *cc, uint32_t mss, uint32_t flight, bool first)
{
	if (first) {
		tcp_cc_save(cc);
		reduce(cc, mss, flight, 7, 10);
	}
	cc->cubic.w_max = 0; // RFC 9438 4.8
	cc->cubic.epoch_ns = 0;
	cc->cwnd = mss;
}

static void cubic_on_ecn(struct tcp_cc *cc, uint32_t mss, uint32_t flight)
{
	tcp_cc_settle(cc);
	reduce(cc, mss, flight, 17, 20); // RFC 8511 3.1
	cc->cwnd = cc->cwnd < cc->ssthresh ? cc->cwnd : cc->ssthresh;
}

// RFC 7661 4.4.3. In silence by halves for each RTO, as Linux does it: a path that was good half a
// second ago is not an unknown one.
static void cubic_on_idle(struct tcp_cc *cc, uint32_t mss, uint64_t n)
{
	uint32_t floor = tcp_cc_initial_window(mss), three_quarters = cc->cwnd - cc->cwnd / 4;
	if (cc->cwnd <= floor)
		return;
	if (cc->ssthresh < three_quarters)
		cc->ssthresh = three_quarters;
	cc->cwnd = n < 32 ? cc->cwnd >> n : 0;
	cc->cwnd = cc->cwnd < floor ? floor : cc->cwnd;
	cc->cubic.epoch_ns = 0;
}

// RFC 9438 4.9. The next ACK finds the point of the curve again where cwnd is.
static void cubic_undo(struct tcp_cc *cc)
{
	tcp_cc_restore(cc);
	cc->cubic.epoch_ns = 0;
}

const struct tcp_cc_ops tcp_cc_cubic = {"cubic", tcp_cc_init, cubic_on_ack, cubic_on_loss,
	cubic_on_timeout, cubic_on_ecn, cubic_on_idle, cubic_undo};
