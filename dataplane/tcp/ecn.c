// SPDX-License-Identifier: Apache-2.0
// Explicit congestion notification (RFC 3168): routers mark packets in place of dropping them, the
// receiver echoes that until the sender says that it sends less, and the sender reduces as RFC 8511
// has it, by less than for a loss. What there is to say stands in `rare`, so that the fast path
// knows nothing of it but the marks of what it sends.
#include "dataplane/tcp/tcp_internal.h"

static bool is_offered(const struct tcp_stack *s)
{
	return s->io.emit_ect;
}

// RFC 3168 6.1.1; after 6.1.1.1 a SYN that was lost is sent without.
uint8_t tcp_ecn_of_syn(const struct tcp_conn *c)
{
	if (c->state == TCP_SYN_RECEIVED)
		return c->ecn_on ? TCP_ECE : 0;
	return is_offered(c->stack) && !c->syn_sent ? TCP_ECE | TCP_CWR : 0;
}

// A SYN asks with both flags, a SYN-ACK agrees with ECE alone: some reflect what they don't know.
void tcp_ecn_take_syn(struct tcp_conn *c, const struct tcp_seg *syn)
{
	uint8_t wanted = syn->flags & TCP_ACK ? TCP_ECE : TCP_ECE | TCP_CWR;
	c->ecn_on = is_offered(c->stack) && (syn->flags & (TCP_ECE | TCP_CWR)) == wanted;
	if (c->ecn_on)
		tcp_count(c->stack, TCP_ecn_on);
}

// RFC 3168 6.1.3. A mark on what carries no data says nothing.
void tcp_ecn_data(struct tcp_conn *c, const struct tcp_seg *seg)
{
	if (!c->ecn_on || !seg->len)
		return;
	if (seg->flags & TCP_CWR)
		c->ecn_echo = false;
	if (!seg->marked)
		return;
	tcp_count(c->stack, TCP_ecn_marks_in);
	c->ecn_echo = true;
	c->ack_due = true; // the sender is to hear of it now
	tcp_conn_mark_dirty(c);
}

static void reduce(struct tcp_conn *c)
{
	c->reduced_ns = tcp_now(c->stack);
	c->reduced_by_mark = true;
	tcp_cc_ops(c)->on_ecn(&c->cc, c->mss, c->snd_max - c->snd_una);
	c->cwr_due = true;
	tcp_count(c->stack, TCP_ecn_reductions);
}

// RFC 3168 6.1.2: once a round trip, whatever reduced cwnd last. That answers this mark, too, and
// so stays, even if nothing was lost (RFC 4015 3.2).
void tcp_ecn_ack(struct tcp_conn *c, const struct tcp_seg *seg)
{
	if (!c->ecn_on || !(seg->flags & TCP_ECE) || seg->flags & TCP_SYN)
		return;
	uint64_t since = tcp_now(c->stack) - c->reduced_ns;
	if (c->in_recovery || c->in_loss || (c->reduced_ns && since < c->srtt_ns))
		c->marked_since = true;
	else if (seq_lt(c->snd_una, seg->ack))
		reduce(c);
}
