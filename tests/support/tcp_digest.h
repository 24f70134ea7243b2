// SPDX-License-Identifier: Apache-2.0
// What two runs of the same segments must agree in, one with and one without the fast path of
// fast_path.c: each segment sent, and each connection's state.
// Thread: any.
#pragma once

#include "dataplane/tcp/sent.h"

static inline uint64_t digest_u64(uint64_t h, uint64_t x)
{
	h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

// Four at a time: each multiplication waits for the one before it of its own lane alone.
static inline uint64_t digest_bytes(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	if (len >= 32) {
		uint64_t lanes[4] = {h, 1, 2, 3}, x[4];
		for (; len >= sizeof(x); p += sizeof(x), len -= sizeof(x)) {
			memcpy(x, p, sizeof(x));
			for (unsigned i = 0; i < 4; i++)
				lanes[i] = digest_u64(lanes[i], x[i]);
		}
		h = lanes[0];
		for (unsigned i = 1; i < 4; i++)
			h = digest_u64(h, lanes[i]);
	}
	for (uint64_t x; len >= sizeof(x); p += sizeof(x), len -= sizeof(x)) {
		memcpy(&x, p, sizeof(x));
		h = digest_u64(h, x);
	}
	uint64_t last = len;
	memcpy((uint8_t *)&last + 1, p, len);
	return digest_u64(h, last);
}

// What recovery.h is about.
static inline uint64_t digest_recovery(uint64_t h, struct tcp_conn *c)
{
	const uint64_t state[] = {c->reordering_seen, c->dsack_round, c->may_undo, c->timed_out,
		c->haste, c->frto, c->n_runs, c->reo_wnd_more, c->reo_wnd_persist, c->min_rtt_ns,
		c->sacked_bytes, c->lost_bytes, c->rack_end, c->dsack_round_end, c->resent_seq,
		c->resent_end, c->undo_until, c->undo_bytes, c->prr_delivered, c->prr_out,
		c->prr_flight, c->rack_ns, c->rack_rtt_ns, c->min_rtt_since_ns, c->reduced_ns,
		c->resent_ns, c->tail_ns};
	h = digest_bytes(h, state, sizeof(state));
	for (const struct tcp_run *r = tcp_run_first(c); r; r = tcp_run_next(c, r)) {
		const uint64_t run[] = {
			r->sent_ns, r->seq, r->fate, r->fate & TCP_RUN_SACKED ? r->n_segments : 0};
		h = digest_bytes(h, run, sizeof(run));
	}
	return h;
}

// All of it but pointers, padding and what only says which way is taken.
static inline uint64_t digest_conn(uint64_t h, const struct tcp_conn *c)
{
	struct tcp_conn plain = *c;
	plain.slow_path = false;
	const uint64_t numbers[] = {plain.rare, c->ts_on, c->sack_on, c->wscale_on, c->ack_due,
		c->other_window, c->delivering, c->resume_asked, c->cwnd_limited, c->cwnd_used,
		c->timing, c->tail_probe_next, c->tail_probe_old, c->passive, c->told, c->syn_sent,
		c->n_held, c->n_unacked, c->quick_acks, c->snd_wscale, c->rcv_wscale, c->mss,
		c->our_mss, c->peer_mss, c->path_mss, c->path_guess, c->path_failed, c->path_probe,
		c->path_probe_end, c->path_at_ms, c->sendq.len, c->recvq.len, c->cursor.offset,
		list_linked(&c->dirty), c->ranges != NULL};
	h = digest_bytes(h, numbers, sizeof(numbers));
	const uint32_t seqs[] = {c->rcv_nxt, c->rcv_adv, c->rcv_acked, c->ts_recent, c->ts_offset,
		c->snd_una, c->snd_nxt, c->snd_max, c->snd_wnd, c->max_snd_wnd, c->snd_wl1,
		c->snd_wl2, c->recover, c->cc.cwnd, c->cc.ssthresh, c->cc.acked, c->dsack.start,
		c->dsack.end, c->range_stamp, c->hole_mark, c->tail_end, c->fin_seq, c->iss, c->irs,
		c->rcv_mark, c->rcv_wnd, c->limited_seq, c->used_flight, c->used_ms};
	h = digest_bytes(h, seqs, sizeof(seqs));
	const struct tcp_hystart *hs = &c->cc.hystart;
	const struct tcp_cubic *q = &c->cc.cubic;
	const uint64_t control[] = {hs->round_end, hs->last_us, hs->least_us, hs->base_us,
		hs->n_samples, hs->n_slow_rounds, hs->begun, q->epoch_ns, q->last_ns, q->w_max,
		q->k_ms, q->w_est, q->est_acked, q->before};
	h = digest_bytes(h, control, sizeof(control));
	const uint64_t times[] = {c->heard_ns, c->progress_ns, c->srtt_ns, c->rttvar_ns, c->rto_ns,
		c->user_timeout_ns, c->challenge_ns, c->keepalive_ns, c->rcv_mark_ns, c->pace_ns,
		twheel_expires_ns(&c->timer)};
	h = digest_bytes(h, times, sizeof(times));
	h = digest_recovery(h, &plain);
	return digest_bytes(h, c->deadlines, sizeof(c->deadlines));
}
