// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/mss.h"

#include "dataplane/tcp/tcp_internal.h"

#define GUESSED_AFTER 2 // timeouts in a row before the one that makes segments shorter
#define LESS_AFTER 4 // … and shorter yet
#define GUESS4 1024
#define LESS4 512
#define GUESS6 TCP_MSS_DEFAULT6 // of 1280, which every link has (RFC 8200 5)
#define AGAIN_MS 600000 // RFC 8899 5.1.1: PMTU_RAISE_TIMER

// MTUs of links, and of links within tunnels.
static const uint16_t common[] = {1280, 1400, 1480, 1492, 1500, 4352, 9000};
#define N_COMMON (sizeof(common) / sizeof(common[0]))

static uint32_t headers(const struct tcp_flow *flow)
{
	return TCP_HEADER_LEN + (ip_is_v4(&flow->remote) ? 20 : 40);
}

static uint32_t options(const struct tcp_conn *c)
{
	return c->ts_on ? TCP_OPT_TS_LEN : 0;
}

uint16_t tcp_mss_default(const struct tcp_flow *flow)
{
	return ip_is_v4(&flow->remote) ? TCP_MSS_DEFAULT : TCP_MSS_DEFAULT6;
}

uint16_t tcp_mss_of_flow(const struct tcp_stack *s, const struct tcp_flow *flow)
{
	uint32_t mtu = s->io.mtu(s->io.ctx, flow);
	return (uint16_t)(mtu > TCP_MSS_DEFAULT + headers(flow) ? mtu - headers(flow)
								: TCP_MSS_DEFAULT);
}

uint16_t tcp_mss_to_announce(const struct tcp_stack *s, const struct tcp_flow *flow)
{
	uint32_t mss = tcp_mss_of_flow(s, flow);
	return (uint16_t)(mss > TCP_MSS_DEFAULT + s->overhead ? mss - s->overhead
							      : TCP_MSS_DEFAULT);
}

void tcp_mss_set(struct tcp_conn *c, uint16_t link_mss)
{
	uint16_t mss = c->peer_mss < link_mss ? c->peer_mss : link_mss;
	if (c->path_mss && c->path_mss < mss)
		mss = c->path_mss;
	if (c->path_guess && c->path_guess < mss)
		mss = c->path_guess;
	c->mss = (uint16_t)(mss - options(c)); // RFC 6691
}

void tcp_mss_refresh(struct tcp_conn *c)
{
	tcp_mss_set(c, tcp_mss_of_flow(c->stack, &c->flow));
}

// Without a guess.
static uint32_t whole(const struct tcp_conn *c)
{
	uint32_t mss = min_u32(c->peer_mss, tcp_mss_of_flow(c->stack, &c->flow));
	return c->path_mss ? min_u32(mss, c->path_mss) : mss;
}

static uint32_t now_ms(const struct tcp_conn *c)
{
	return (uint32_t)(tcp_now(c->stack) / NS_PER_MS);
}

void tcp_mss_timed_out(struct tcp_conn *c)
{
	if (!c->n_backoff && c->snd_una == c->path_probe_end - c->path_probe)
		tcp_mss_resent(c, c->snd_una); // it alone is missing
	c->path_probe = 0; // else it tells nothing: all is silent
	c->path_at_ms = now_ms(c); // as soon as segments pass again
	bool v4 = ip_is_v4(&c->flow.remote);
	uint32_t guess = v4 ? GUESS4 : GUESS6;
	if (c->n_backoff >= LESS_AFTER && c->path_guess && v4)
		guess = LESS4;
	else if (c->n_backoff < GUESSED_AFTER)
		return;
	if (guess >= c->mss + options(c) || c->snd_max - c->snd_una <= guess - options(c))
		return;
	if (!c->path_guess)
		tcp_count(c->stack, TCP_path_guesses);
	c->path_guess = (uint16_t)guess;
	c->path_failed = 0;
	c->guessed_path = true;
	tcp_mss_refresh(c);
}

void tcp_mss_learn(struct tcp_conn *c)
{
	if (!c->path_probe || !seq_le(c->path_probe_end, c->snd_una))
		return;
	c->path_guess = (uint16_t)(c->path_probe + options(c));
	c->path_probe = 0;
	if (c->path_guess >= whole(c)) {
		c->path_guess = c->path_failed = 0;
		c->guessed_path = false;
	}
	tcp_mss_refresh(c);
	// RFC 5681 3.1: both count segments, and losses may have left less than one of these.
	c->cc.cwnd = max_u32(c->cc.cwnd, c->mss);
	c->cc.ssthresh = max_u32(c->cc.ssthresh, 2 * c->mss);
}

// 0 = no longer one is left to be tried.
static uint32_t next_size(const struct tcp_conn *c)
{
	uint32_t most = whole(c);
	if (!c->path_failed)
		return most;
	for (size_t i = 0; i < N_COMMON; i++) {
		uint32_t mss = common[i] - headers(&c->flow);
		if (mss > c->path_guess)
			return mss < c->path_failed && mss < most ? mss : 0;
	}
	return 0;
}

uint32_t tcp_mss_piece(struct tcp_conn *c, uint32_t room)
{
	bool quiet = !c->path_probe && !c->in_recovery && !c->has_reports && !c->in_loss &&
	             !c->n_backoff;
	if (!c->guessed_path || !quiet || c->snd_nxt != c->snd_max ||
		seq_lt(now_ms(c), c->path_at_ms))
		return c->mss;
	uint32_t size = next_size(c);
	if (!size) {
		c->path_failed = 0;
		c->path_at_ms = now_ms(c) + AGAIN_MS;
		return c->mss;
	}
	size -= options(c);
	// What follows it, or is under way, tells soon whether it arrived.
	uint32_t unsent = (uint32_t)c->sendq.len - (c->snd_nxt - c->snd_una);
	return size <= c->mss || size > room || unsent < size ? c->mss : size;
}

void tcp_mss_probed(struct tcp_conn *c, uint32_t len, uint32_t end)
{
	tcp_count(c->stack, TCP_path_probes);
	c->path_probe = (uint16_t)len;
	c->path_probe_end = end;
}

void tcp_mss_resent(struct tcp_conn *c, uint32_t seq)
{
	if (!c->path_probe || !seq_lt(seq, c->path_probe_end) ||
		seq_lt(seq, c->path_probe_end - c->path_probe))
		return;
	c->path_failed = (uint16_t)(c->path_probe + options(c));
	c->path_probe = 0;
}
