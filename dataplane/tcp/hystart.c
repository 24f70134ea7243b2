// SPDX-License-Identifier: Apache-2.0
// RFC 9406 4.2, with the constants of 4.3.
#include "dataplane/tcp/hystart.h"

#include "dataplane/tcp/cc.h"
#include "lb/base/time.h"

#define MIN_SAMPLES 8
#define MIN_THRESHOLD_US 4000
#define MAX_THRESHOLD_US 16000
#define THRESHOLD_DIVISOR 8
#define SLOW_DIVISOR 4 // of growth in the conservative phase
#define SLOW_ROUNDS 5

static void begin_round(struct tcp_hystart *h, uint32_t end)
{
	h->last_us = h->least_us;
	h->least_us = 0;
	h->n_samples = 0;
	h->round_end = end;
	h->begun = true;
}

static void sample(struct tcp_hystart *h, uint64_t rtt_ns)
{
	uint64_t us = rtt_ns / NS_PER_US;
	uint32_t rtt_us = us > UINT32_MAX ? UINT32_MAX : us ? (uint32_t)us : 1;
	if (!h->least_us || rtt_us < h->least_us)
		h->least_us = rtt_us;
	if (h->n_samples < UINT8_MAX)
		h->n_samples++;
}

static uint32_t threshold_us(const struct tcp_hystart *h)
{
	uint32_t us = h->last_us / THRESHOLD_DIVISOR;
	return us < MIN_THRESHOLD_US   ? MIN_THRESHOLD_US
	       : us > MAX_THRESHOLD_US ? MAX_THRESHOLD_US
	                               : us;
}

static void judge(struct tcp_hystart *h)
{
	if (h->n_samples < MIN_SAMPLES)
		return;
	if (h->n_slow_rounds) {
		if (h->least_us < h->base_us)
			h->n_slow_rounds = 0;
	} else if (h->last_us && h->least_us >= h->last_us + threshold_us(h)) {
		h->base_us = h->least_us;
		h->n_slow_rounds = 1;
	}
}

uint32_t tcp_hystart_on_ack(struct tcp_hystart *h, const struct tcp_cc_ack *ack, bool *ret_done)
{
	uint32_t grow = h->n_slow_rounds ? ack->acked / SLOW_DIVISOR : ack->acked;
	*ret_done = false;
	if (!h->begun)
		begin_round(h, ack->nxt);
	if (ack->rtt_ns)
		sample(h, ack->rtt_ns);
	judge(h);
	if ((int32_t)(ack->una - h->round_end) >= 0) {
		begin_round(h, ack->nxt);
		if (h->n_slow_rounds)
			*ret_done = h->n_slow_rounds++ == SLOW_ROUNDS;
	}
	return grow;
}
