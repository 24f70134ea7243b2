// SPDX-License-Identifier: Apache-2.0
// Passive opens. A half-open connection is a whole control block, so their number is bounded.
// Beyond it SYNs are answered by cookies (RFC 4987 3.6): our sequence number holds all that is
// needed to believe the ACK that comes back, so that a flood of forged SYNs costs no memory and
// honest clients get in. To a client with timestamps ours, which it echoes, has the other options,
// as Linux does it; one without gets no window scale and no SACK.
#include "dataplane/tcp/mss.h"
#include "dataplane/tcp/tcp_internal.h"
#include "lb/base/time.h"

#include <errno.h>

#define COOKIE_PERIOD (64 * NS_PER_SECOND) // a cookie is good for this one and the next
#define COOKIE_BELIEVED (2 * COOKIE_PERIOD)
#define COOKIES_SHARE 16 // of what peers may have, for whoever answers a cookie

static struct tcp_listener **bucket_of(struct tcp_stack *s, const struct ip_addr *ip, uint16_t port)
{
	// Not keyed: who listens is our own choice.
	uint32_t x = get32(ip->b + 12) * 0x9e3779b1 + port * 0x85ebca6b;
	return &s->listener_buckets[x >> 20];
}

_Static_assert(TCP_LISTENER_BUCKETS == 1 << 12, "bucket_of() gives twelve bits");

struct tcp_listener *tcp_listener_find(struct tcp_stack *s, const struct ip_addr *ip, uint16_t port)
{
	struct tcp_listener *l = *bucket_of(s, ip, port);
	while (l && !(l->port == port && ip_eq(&l->ip, ip)))
		l = l->next;
	return l;
}

int tcp_listen(struct tcp_stack *s, const struct ip_addr *ip, uint16_t port, tcp_accept_fn accept,
	void *arg)
{
	if (tcp_listener_find(s, ip, port))
		return -EADDRINUSE;
	struct tcp_listener *l = s->free_listeners;
	if (l)
		s->free_listeners = l->next;
	else if (s->n_listeners < TCP_MAX_LISTENERS)
		l = &s->listeners[s->n_listeners++];
	else
		return -ENOMEM;
	struct tcp_listener **bucket = bucket_of(s, ip, port);
	*l = (struct tcp_listener){*bucket, *ip, port, accept, arg};
	*bucket = l;
	return 0;
}

void tcp_unlisten(struct tcp_stack *s, const struct ip_addr *ip, uint16_t port)
{
	struct tcp_listener **link = bucket_of(s, ip, port);
	while (*link && !((*link)->port == port && ip_eq(&(*link)->ip, ip)))
		link = &(*link)->next;
	struct tcp_listener *l = *link;
	if (!l)
		return;
	*link = l->next;
	l->next = s->free_listeners;
	s->free_listeners = l;
}

// What fits into three bits of a cookie; the last one that is no larger than the offer counts.
static const uint16_t cookie_mss[8] = {
	TCP_MSS_FLOOR, TCP_MSS_DEFAULT, TCP_MSS_DEFAULT6, 1360, 1400, 1440, 1460, 8960};

// Period in five bits, MSS in three, 24 bits of hash over them, the flow and the peer's number.
static uint32_t cookie(const struct tcp_stack *s, const struct tcp_flow *flow, uint32_t peer_isn,
	uint32_t period, uint32_t mss_index)
{
	uint32_t what = (period & 31) << 27 | mss_index << 24;
	return what | tcp_cookie_hash(s, flow, peer_isn, what) >> 8;
}

static uint32_t cookie_period(const struct tcp_stack *s)
{
	return (uint32_t)(tcp_now(s) / COOKIE_PERIOD);
}

// In the lowest bits of a timestamp: the window scale that the peer offered, and whether it permits
// SACK. The next bit is free.
#define TS_BITS 6
#define TS_NO_WSCALE 15
#define TS_SACK 16

static uint32_t now_ms(const struct tcp_stack *s)
{
	return (uint32_t)(tcp_now(s) / NS_PER_MS);
}

// Not later than now, so that those to come are not older than it.
static uint32_t cookie_timestamp(uint32_t now, const struct tcp_opts *o)
{
	const uint32_t step = 1 << TS_BITS;
	uint32_t what = (o->has_wscale ? o->wscale : TS_NO_WSCALE) | (o->sack_ok ? TS_SACK : 0);
	uint32_t ts = (now & ~(step - 1)) | what;
	return seq_lt(now, ts) ? ts - step : ts;
}

// What the peer's SYN offered, as far as its answer tells: the peer's own word, so that it is worth
// no hash.
static struct tcp_opts offered(const struct tcp_conn *c, const struct tcp_seg *ack, uint16_t mss)
{
	struct tcp_opts o = {.has_mss = true, .mss = mss};
	uint32_t ts = ack->opts.ts_ecr - c->ts_offset, age = now_ms(c->stack) - ts;
	if (!ack->opts.has_ts || age > COOKIE_BELIEVED / NS_PER_MS)
		return o;
	o.has_ts = true;
	o.ts_val = ack->opts.ts_val;
	o.sack_ok = ts & TS_SACK;
	o.wscale = ts & 15;
	o.has_wscale = o.wscale != TS_NO_WSCALE;
	return o;
}

static void send_cookie(struct tcp_stack *s, const struct tcp_flow *flow, const struct tcp_seg *syn)
{
	uint32_t i = 7, mss = syn->opts.has_mss ? syn->opts.mss : tcp_mss_default(flow);
	while (i && cookie_mss[i] > mss)
		i--;
	struct tcp_seg reply = {
		.seq = cookie(s, flow, syn->seq, cookie_period(s), i),
		.ack = syn->seq + 1,
		.wnd = min_u32(s->conf.recv_window, UINT16_MAX),
		.flags = TCP_SYN | TCP_ACK,
		.opts = {.has_mss = true, .mss = tcp_mss_to_announce(s, flow)},
	};
	if (syn->opts.has_ts) {
		reply.opts.has_ts = true;
		reply.opts.ts_val =
			cookie_timestamp(now_ms(s), &syn->opts) + tcp_start_of(s, flow).ts_offset;
		reply.opts.ts_ecr = syn->opts.ts_val;
		reply.opts.sack_ok = syn->opts.sack_ok;
		reply.opts.has_wscale = syn->opts.has_wscale;
		reply.opts.wscale = s->rcv_wscale;
	}
	s->cookies_until_ns = tcp_now(s) + COOKIE_BELIEVED;
	tcp_count(s, TCP_cookies_out);
	tcp_output_raw(s, flow, &reply);
}

// The last places that peers may have are for those who show that they are there.
static bool may_be_half_open(const struct tcp_stack *s)
{
	uint32_t most = s->conf.max_passive;
	return s->n_half_open < s->conf.max_half_open &&
	       (!most || s->n_passive < most - most / COOKIES_SHARE);
}

// At the bound one more, since an owner that has no room refuses it at once, and its peer hears of
// that.
static struct tcp_conn *new_half_open(
	struct tcp_stack *s, const struct tcp_flow *flow, uint32_t hash)
{
	bool is_full = s->conf.max_passive && s->n_passive > s->conf.max_passive;
	struct tcp_conn *c = is_full ? NULL : tcp_conn_new(s, flow, hash);
	if (!c) {
		tcp_drop(s, TCP_drop_conns_full);
		return NULL;
	}
	c->state = TCP_SYN_RECEIVED;
	c->passive = true;
	s->n_passive++;
	s->n_half_open++;
	return c;
}

// What it was told leaves room for a tunnel's headers; what it is sent has none.
static void spare_overhead(struct tcp_conn *c)
{
	if (c->stack->overhead)
		c->our_mss = tcp_mss_to_announce(c->stack, &c->flow);
}

static uint32_t mss_index_of(uint32_t iss)
{
	return iss >> 24 & 7;
}

bool tcp_listener_is_cookie(
	struct tcp_stack *s, const struct tcp_flow *flow, const struct tcp_seg *seg)
{
	// Only after a flood: 24 bits are few enough to be guessed in the long run.
	if ((seg->flags & (TCP_SYN | TCP_RST | TCP_ACK)) != TCP_ACK ||
		tcp_now(s) >= s->cookies_until_ns ||
		!tcp_listener_find(s, &flow->local, flow->local_port))
		return false;
	uint32_t iss = seg->ack - 1, period = cookie_period(s), mss_index = mss_index_of(iss);
	return iss == cookie(s, flow, seg->seq - 1, period, mss_index) ||
	       iss == cookie(s, flow, seg->seq - 1, period - 1, mss_index);
}

bool tcp_listener_cookie(
	struct tcp_stack *s, const struct tcp_flow *flow, uint32_t hash, struct tcp_seg *seg)
{
	if (!tcp_listener_is_cookie(s, flow, seg))
		return false;
	uint32_t iss = seg->ack - 1;
	struct tcp_conn *c = new_half_open(s, flow, hash);
	if (!c)
		return true;
	// As if the SYN had been kept.
	struct tcp_seg syn = {.seq = seg->seq - 1,
		.wnd = seg->wnd,
		.flags = TCP_SYN,
		.opts = offered(c, seg, cookie_mss[mss_index_of(iss)])};
	c->iss = c->snd_una = c->recover = iss;
	c->snd_nxt = c->snd_max = iss + 1;
	tcp_conn_take_syn(c, &syn);
	spare_overhead(c);
	tcp_table_add(c);
	tcp_count(s, TCP_cookies_taken);
	tcp_conn_hold(c);
	tcp_conn_input(c, seg);
	tcp_conn_unhold(c);
	return true;
}

void tcp_listener_syn(struct tcp_stack *s, const struct tcp_flow *flow, uint32_t hash,
	const struct tcp_seg *seg, const uint32_t *iss_floor)
{
	if (!may_be_half_open(s)) {
		send_cookie(s, flow, seg);
		return;
	}
	struct tcp_conn *c = new_half_open(s, flow, hash);
	if (!c)
		return;
	if (iss_floor && seq_le(c->iss, *iss_floor))
		c->iss = *iss_floor + UINT16_MAX; // RFC 6191 2
	c->snd_una = c->recover = c->iss;
	c->snd_nxt = c->snd_max = c->iss + 1;
	tcp_conn_take_syn(c, seg);
	spare_overhead(c);
	c->syn_due = true;
	tcp_table_add(c);
	tcp_conn_mark_dirty(c);
	// The wheel is armed with the SYN-ACK, for sooner.
	c->deadlines[TCP_TIMER_PATIENCE] = tcp_now(s) + TCP_HALF_OPEN_NS;
}

bool tcp_listener_accept(struct tcp_conn *c)
{
	struct tcp_stack *s = c->stack;
	const struct tcp_listener *l = tcp_listener_find(s, &c->flow.local, c->flow.local_port);
	const struct tcp_conn_ops *ops = l ? l->accept(l->arg, c, &c->user) : NULL;
	if (c->dead)
		return false;
	if (!ops) {
		tcp_count(s, TCP_accept_refused);
		tcp_output_rst(c);
		tcp_conn_drop(c);
		return false;
	}
	c->ops = ops;
	tcp_count(s, TCP_accepted);
	return true;
}
