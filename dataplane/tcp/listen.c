// SPDX-License-Identifier: Apache-2.0
// Passive opens. A half-open connection is a whole control block, so their number is bounded; over
// it, SYNs are dropped and the honest ones come again.
#include "dataplane/tcp/tcp_internal.h"

#include <errno.h>

static struct tcp_listener **bucket_of(struct tcp_stack *s, const struct ip_addr *ip, uint16_t port)
{
	// Not keyed: who listens is our own choice.
	uint32_t x = get32(ip->b + 12) * 0x9e3779b1 + port * 0x85ebca6b;
	return &s->listener_buckets[x >> 24];
}

_Static_assert(TCP_LISTENER_BUCKETS == 256, "bucket_of() gives eight bits");

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
	if (!l)
		return -ENOMEM;
	s->free_listeners = l->next;
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

void tcp_listener_syn(struct tcp_stack *s, const struct tcp_flow *flow, uint32_t hash,
	const struct tcp_seg *seg, const uint32_t *iss_floor)
{
	if (s->n_half_open >= s->conf.max_half_open) {
		tcp_count(s, TCP_DROP_HALF_OPEN_FULL);
		return;
	}
	struct tcp_conn *c = tcp_conn_new(s, flow, hash);
	if (!c) {
		tcp_count(s, TCP_DROP_CONNS_FULL);
		return;
	}
	c->state = TCP_SYN_RECEIVED;
	c->passive = true;
	s->n_half_open++;
	c->iss = tcp_isn(s, flow);
	if (iss_floor && seq_le(c->iss, *iss_floor))
		c->iss = *iss_floor + UINT16_MAX; // RFC 6191 2
	c->snd_una = c->recover = c->iss;
	c->snd_nxt = c->snd_max = c->iss + 1;
	tcp_conn_take_syn(c, seg);
	c->syn_due = true;
	tcp_table_add(c);
	tcp_conn_mark_dirty(c);
	tcp_timer_set(c, TCP_TIMER_HANDSHAKE, tcp_now(s) + TCP_HALF_OPEN_NS);
}

bool tcp_listener_accept(struct tcp_conn *c)
{
	struct tcp_stack *s = c->stack;
	const struct tcp_listener *l = tcp_listener_find(s, &c->flow.local, c->flow.local_port);
	const struct tcp_conn_ops *ops = l ? l->accept(l->arg, c, &c->user) : NULL;
	if (c->dead)
		return false;
	if (!ops) {
		tcp_count(s, TCP_ACCEPT_REFUSED);
		tcp_output_rst(c);
		tcp_conn_drop(c);
		return false;
	}
	c->ops = ops;
	tcp_count(s, TCP_ACCEPTED);
	return true;
}
