// SPDX-License-Identifier: Apache-2.0
// What follows when a deadline of a connection has passed.
#include "dataplane/tcp/mss.h"
#include "dataplane/tcp/ooo.h"
#include "dataplane/tcp/sent.h"
#include "lb/base/container_of.h"

#define KEEPALIVE_PROBES 8 // at least, in what our patience is
// RFC 9293 3.8.3's R1 is three repetitions; where RTO is short they are over too soon to mean much.
#define UNANSWERED_REPEATS 3
#define UNANSWERED_NS (6 * NS_PER_SECOND)

static void backoff(struct tcp_conn *c)
{
	if (c->n_backoff < UINT8_MAX)
		c->n_backoff++;
}

static void give_up(struct tcp_conn *c)
{
	tcp_output_rst(c);
	tcp_conn_close(c, TCP_CLOSE_TIMEOUT);
}

static void tell_unanswered(struct tcp_conn *c)
{
	if (c->ops->on_unanswered)
		c->ops->on_unanswered(c, c->user);
}

static void timed_out(struct tcp_conn *c)
{
	tcp_mss_timed_out(c);
	tcp_mss_refresh(c); // the path may have told of a smaller MTU: cwnd is counted in it
	tcp_ack_timeout(c);
}

static void rtx_fired(struct tcp_conn *c)
{
	if (c->state != TCP_OPEN) {
		backoff(c);
		c->syn_due = true;
		c->timing = false; // Karn
		tcp_conn_mark_dirty(c);
		tcp_rtx_start(c);
		return;
	}
	uint64_t waited = tcp_now(c->stack) - c->progress_ns;
	if (waited >= tcp_patience(c)) {
		give_up(c);
		return;
	}
	if (c->tail_probe_next) {
		c->tail_probe_due = true;
		tcp_conn_mark_dirty(c);
		tcp_rtx_start(c);
		return;
	}
	bool probes = c->snd_nxt == c->snd_una && tcp_output_pending(c) && c->snd_wnd < c->mss;
	bool answered = probes && tcp_run_first(c)->sent_ns <= c->heard_ns;
	if (probes)
		c->probe_due = true; // RFC 9293 3.8.6.1
	else if (c->snd_max != c->snd_una)
		timed_out(c);
	backoff(c);
	tcp_conn_mark_dirty(c);
	tcp_rtx_start(c);
	if (!answered && c->n_backoff >= UNANSWERED_REPEATS && waited >= UNANSWERED_NS)
		tell_unanswered(c);
}

static void keepalive_fired(struct tcp_conn *c)
{
	uint64_t now = tcp_now(c->stack), silent = now - c->heard_ns;
	uint64_t patience = tcp_patience(c), end = c->heard_ns + c->keepalive_ns + patience;
	uint64_t often = patience / KEEPALIVE_PROBES;
	uint64_t next = now + (often < c->keepalive_ns ? often : c->keepalive_ns);
	bool unanswered = false;
	if (c->state != TCP_OPEN || silent < c->keepalive_ns) {
		next = (c->state == TCP_OPEN ? c->heard_ns : now) + c->keepalive_ns;
	} else if (now >= end) {
		give_up(c);
		return;
	} else if (c->snd_una == c->snd_max) { // else retransmissions ask already
		uint64_t slow = UNANSWERED_REPEATS * c->rto_ns;
		uint64_t least = c->keepalive_ns + (slow > UNANSWERED_NS ? slow : UNANSWERED_NS);
		unanswered = silent >= least;
		c->keepalive_due = true;
		tcp_conn_mark_dirty(c);
	}
	tcp_timer_set(c, TCP_TIMER_KEEPALIVE, next < end || c->state != TCP_OPEN ? next : end);
	if (unanswered)
		tell_unanswered(c);
}

static void handshake_expired(struct tcp_conn *c)
{
	if (!c->ops) {
		tcp_count(c->stack, TCP_half_open_expired);
		tcp_conn_drop(c);
	} else {
		tcp_conn_close(c, TCP_CLOSE_CONNECT_TIMEOUT);
	}
}

static void fire_one(struct tcp_conn *c, enum tcp_timer which)
{
	switch (which) {
	case TCP_TIMER_RTX:
		rtx_fired(c);
		break;
	case TCP_TIMER_ACK:
		tcp_recv_ack_late(c);
		break;
	case TCP_TIMER_KEEPALIVE:
		keepalive_fired(c);
		break;
	case TCP_TIMER_REORDER:
		tcp_ack_late(c);
		break;
	case TCP_TIMER_PACE:
		tcp_conn_mark_dirty(c);
		break;
	case TCP_TIMER_PATIENCE:
		if (c->state == TCP_OPEN)
			tcp_ooo_late(c);
		else
			handshake_expired(c);
		break;
	case TCP_TIMER_RESUME:
	default:
		tcp_conn_resume(c);
	}
}

void tcp_expire_fire(struct twheel_timer *t)
{
	struct tcp_conn *c = CONTAINER_OF(t, struct tcp_conn, timer);
	uint64_t now = tcp_now(c->stack);
	tcp_conn_hold(c);
	for (unsigned i = 0; i < TCP_N_TIMERS && !c->dead; i++) {
		if (!c->deadlines[i] || c->deadlines[i] > now)
			continue;
		tcp_timer_excuse(c, (enum tcp_timer)i);
		c->deadlines[i] = 0;
		fire_one(c, (enum tcp_timer)i);
	}
	for (unsigned i = 0; i < TCP_N_TIMERS && !c->dead; i++)
		if (c->deadlines[i])
			tcp_timer_set(c, (enum tcp_timer)i, c->deadlines[i]);
	tcp_conn_unhold(c);
}
