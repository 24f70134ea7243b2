// SPDX-License-Identifier: Apache-2.0
// The life of a control block, and what its owner can do to it.
#include "dataplane/tcp/csum.h"
#include "dataplane/tcp/mss.h"
#include "dataplane/tcp/ooo.h"
#include "dataplane/tcp/sent.h"
#include "dataplane/tcp/timewait.h"
#include "lb/base/time.h"

#include <errno.h>
#include <string.h>

const char *tcp_close_reason_name(enum tcp_close_reason reason)
{
	static const char *const names[TCP_N_CLOSE_REASONS] = {
		[TCP_CLOSE_DONE] = "done",
		[TCP_CLOSE_RESET] = "reset",
		[TCP_CLOSE_REFUSED] = "refused",
		[TCP_CLOSE_TIMEOUT] = "timeout",
		[TCP_CLOSE_CONNECT_TIMEOUT] = "connect_timeout",
		[TCP_CLOSE_UNREACHABLE] = "unreachable",
	};
	CHECK((unsigned)reason < TCP_N_CLOSE_REASONS);
	return names[reason];
}

// By a call: where the compiler sees the size it puts a string instruction in its place, which
// takes longer to begin than libc takes for all of it.
static inline void clear(struct tcp_conn *c)
{
	size_t len = sizeof(*c);
	__asm__("" : "+r"(len));
	memset(c, 0, len);
}

struct tcp_conn *tcp_conn_new(struct tcp_stack *s, const struct tcp_flow *flow, uint32_t hash)
{
	struct tcp_conn *c = pool_take(&s->conns);
	if (!c)
		return NULL;
	struct tcp_start start = tcp_start_of(s, flow);
	clear(c);
	c->stack = s;
	c->hash = hash;
	c->flow = *flow;
	c->timer.fire = s->expire;
	c->rto_ns = TCP_RTO_INITIAL;
	c->min_rtt_ns = UINT32_MAX;
	c->user_timeout_ns = TCP_USER_TIMEOUT;
	c->our_mss = tcp_mss_of_flow(s, flow);
	c->peer_mss = tcp_mss_default(flow);
	c->ts_offset = start.ts_offset;
	c->iss = start.isn;
	c->rcv_wscale = s->rcv_wscale & 15;
	c->flow_sum = tcp_csum_flow(&flow->local, &flow->remote);
	c->slow_path = s->conf.slow_path;
	s->n_conns++;
	return c;
}

void tcp_conn_take_syn(struct tcp_conn *c, const struct tcp_seg *syn)
{
	const struct tcp_opts *o = &syn->opts;
	c->irs = syn->seq;
	c->rcv_nxt = c->rcv_acked = syn->seq + 1;
	c->rcv_adv = c->rcv_nxt + min_u32(c->stack->conf.recv_window, UINT16_MAX);
	c->snd_wnd = c->max_snd_wnd = syn->wnd; // never scaled in a SYN (RFC 7323 2.2)
	c->snd_wl1 = syn->seq;
	c->snd_wl2 = syn->flags & TCP_ACK ? syn->ack : c->snd_una;
	if (o->has_mss)
		c->peer_mss = o->mss;
	if (c->peer_mss < TCP_MSS_DEFAULT)
		tcp_count(c->stack, TCP_small_mss);
	if (c->peer_mss < TCP_MSS_FLOOR)
		c->peer_mss = TCP_MSS_FLOOR;
	c->wscale_on = o->has_wscale;
	c->snd_wscale = o->has_wscale ? o->wscale & 15 : 0;
	if (!o->has_wscale)
		c->rcv_wscale = 0;
	tcp_window_init(c);
	c->quick_acks = TCP_QUICK_START | TCP_QUICK_ACKS;
	tcp_ecn_take_syn(c, syn);
	c->ts_on = o->has_ts;
	c->header_len = TCP_HEADER_LEN + (c->ts_on ? TCP_OPT_TS_LEN : 0);
	c->sack_on = o->sack_ok;
	c->ts_recent = o->ts_val;
	c->heard_ns = tcp_now(c->stack);
	tcp_mss_set(c, c->our_mss);
	tcp_cc_ops(c)->init(&c->cc, c->mss);
	c->used_ms = tcp_ts_now(c);
}

void tcp_conn_drop(struct tcp_conn *c)
{
	struct tcp_stack *s = c->stack;
	DCHECK(!c->dead);
	tcp_table_remove(c);
	list_remove(&c->dirty);
	twheel_cancel(s->wheel, &c->timer);
	buf_clear(&c->sendq, s->chunks);
	buf_clear(&c->recvq, s->chunks);
	tcp_ooo_clear(c);
	tcp_sent_clear(c);
	if (c->passive) {
		s->n_passive--;
		s->n_half_open -= c->state == TCP_SYN_RECEIVED;
	}
	s->n_conns--;
	c->dead = true;
	if (!c->n_held)
		pool_put(&s->conns, c);
}

void tcp_conn_close(struct tcp_conn *c, enum tcp_close_reason reason)
{
	tcp_conn_hold(c);
	tcp_count(c->stack, (enum tcp_counter)(TCP_closed_done + reason));
	tcp_conn_drop(c);
	if (c->ops)
		c->ops->on_closed(c, c->user, reason);
	tcp_conn_unhold(c);
}

void tcp_conn_finish(struct tcp_conn *c)
{
	if (c->ack_due) // of their FIN: no flush will see this connection again
		(void)!tcp_output(c);
	if (!c->no_time_wait)
		tcp_tw_add(c);
	tcp_conn_close(c, TCP_CLOSE_DONE);
}

struct tcp_conn *tcp_connect(struct tcp_stack *s, const struct tcp_flow *wanted,
	uint64_t timeout_ns, const struct tcp_conn_ops *ops, void *user)
{
	struct tcp_flow flow = *wanted;
	uint32_t hash;
	if (!(flow.local_port ? tcp_flow_is_free(s, &flow, &hash) : tcp_pick_port(s, &flow, &hash)))
		return NULL;
	struct tcp_conn *c = tcp_conn_new(s, &flow, hash);
	if (!c)
		return NULL;
	tcp_tw_reuse(c);
	c->state = TCP_SYN_SENT;
	c->ops = ops;
	c->user = user;
	c->snd_una = c->recover = c->iss;
	c->snd_nxt = c->snd_max = c->iss + 1;
	c->syn_due = true;
	tcp_table_add(c);
	tcp_conn_mark_dirty(c);
	tcp_timer_set(c, TCP_TIMER_PATIENCE, tcp_now(s) + timeout_ns);
	tcp_count(s, TCP_opened);
	return c;
}

const struct tcp_flow *tcp_conn_flow(const struct tcp_conn *c)
{
	return &c->flow;
}

struct buf *tcp_conn_sendq(struct tcp_conn *c)
{
	return &c->sendq;
}

size_t tcp_conn_send_limit(const struct tcp_conn *c)
{
	return tcp_window_send_limit(c);
}

size_t tcp_conn_send_room(const struct tcp_conn *c)
{
	size_t limit = tcp_window_send_limit(c);
	return c->shut || c->sendq.len >= limit ? 0 : limit - c->sendq.len;
}

size_t tcp_conn_unsent(const struct tcp_conn *c)
{
	size_t sent = c->snd_max - c->snd_una;
	return c->sendq.len > sent ? c->sendq.len - sent : 0;
}

uint64_t tcp_conn_round_trip_ns(const struct tcp_conn *c)
{
	return c->srtt_ns;
}

uint32_t tcp_conn_n_sent(const struct tcp_conn *c)
{
	return c->snd_max - c->iss - 1;
}

uint32_t tcp_conn_n_received(const struct tcp_conn *c)
{
	return c->rcv_nxt - c->irs - 1;
}

void tcp_conn_push(struct tcp_conn *c)
{
	DCHECK(!c->dead);
	tcp_conn_mark_dirty(c);
}

size_t tcp_conn_unread(const struct tcp_conn *c)
{
	return c->recvq.len;
}

void tcp_conn_resume(struct tcp_conn *c)
{
	DCHECK(!c->dead);
	tcp_conn_hold(c);
	if (tcp_recv_resume(c) && !c->dead && tcp_conn_is_done(c))
		tcp_conn_finish(c);
	tcp_conn_unhold(c);
}

void tcp_conn_shutdown(struct tcp_conn *c)
{
	DCHECK(!c->dead);
	if (c->shut)
		return;
	c->shut = true;
	c->no_time_wait = c->fin_received; // CLOSE_WAIT becomes LAST_ACK
	tcp_conn_mark_dirty(c);
}

void tcp_conn_abort(struct tcp_conn *c)
{
	DCHECK(!c->dead);
	if (c->fin_acked && c->fin_received) { // only unread bytes kept it here
		if (!c->no_time_wait)
			tcp_tw_add(c);
	} else if (c->state != TCP_SYN_SENT) {
		tcp_output_rst(c);
	}
	tcp_count(c->stack, TCP_aborted);
	tcp_conn_drop(c);
}

bool tcp_conn_let_go(struct tcp_conn *c)
{
	DCHECK(!c->dead);
	if (!c->fin_acked) {
		tcp_conn_abort(c);
		return false;
	}
	if (!c->no_time_wait)
		tcp_tw_add(c);
	tcp_count(c->stack, TCP_let_go);
	tcp_conn_drop(c);
	return true;
}

bool tcp_conn_forget(struct tcp_conn *c)
{
	DCHECK(!c->dead);
	if (!c->fin_sent) {
		tcp_conn_abort(c);
		return false;
	}
	tcp_count(c->stack, TCP_let_go);
	tcp_conn_drop(c);
	return true;
}

void tcp_conn_set_keepalive(struct tcp_conn *c, uint64_t idle_ns)
{
	c->keepalive_ns = idle_ns;
	if (idle_ns)
		tcp_timer_set(c, TCP_TIMER_KEEPALIVE, tcp_now(c->stack) + idle_ns);
	else
		tcp_timer_stop(c, TCP_TIMER_KEEPALIVE);
}

void tcp_conn_set_user_timeout(struct tcp_conn *c, uint64_t timeout_ns)
{
	c->user_timeout_ns = timeout_ns ? timeout_ns : TCP_USER_TIMEOUT;
	if (c->state == TCP_OPEN && c->deadlines[TCP_TIMER_RTX])
		tcp_rtx_start(c);
}
