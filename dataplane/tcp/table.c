// SPDX-License-Identifier: Apache-2.0
// Everything that a remote host must not predict or aim at is a SipHash under the stack's secret:
// places in the connection table, initial sequence numbers, timestamps, source ports.
#include "dataplane/tcp/tcp_internal.h"
#include "lb/base/siphash.h"

#define EPHEMERAL_MIN 32768u
#define EPHEMERAL_COUNT (61000u - EPHEMERAL_MIN)
// Of one attempt; the next one goes on behind it.
#define PORT_LOOKUPS 2048
#define PORT_QUESTIONS 8192 // whether a port is ours, which is cheaper

enum purpose { FOR_ISN = 1, FOR_TIMESTAMP, FOR_PORT, FOR_COOKIE };

// extra: mixed in for FOR_COOKIE only.
static uint64_t keyed_hash(
	const struct tcp_stack *s, const struct tcp_flow *f, enum purpose purpose, uint64_t extra)
{
	uint8_t in[48];
	size_t n = 0;
	// Three words instead of five for IPv4; the lengths keep the families apart.
	size_t skip = ip_is_v4(&f->local) && ip_is_v4(&f->remote) ? 12 : 0;
	memcpy(in, f->local.b + skip, 16 - skip);
	n += 16 - skip;
	memcpy(in + n, f->remote.b + skip, 16 - skip);
	n += 16 - skip;
	memcpy(in + n, &f->local_port, 2);
	memcpy(in + n + 2, &f->remote_port, 2);
	n += 4;
	in[n++] = (uint8_t)purpose;
	if (purpose == FOR_COOKIE) {
		memcpy(in + n, &extra, sizeof(extra));
		n += sizeof(extra);
	}
	return siphash24(s->conf.secret, in, n);
}

uint32_t tcp_flow_hash(const struct tcp_stack *s, const struct tcp_flow *f)
{
	uint64_t words[4];
	uint64_t ports = (uint64_t)f->local_port | (uint64_t)f->remote_port << 16;
	// Two words instead of five for IPv4; the lengths keep the families apart.
	if (ip_is_v4(&f->local) && ip_is_v4(&f->remote)) {
		words[0] = (uint64_t)ip_to_v4(&f->local) << 32 | ip_to_v4(&f->remote);
		return (uint32_t)siphash13(s->table_key, words, 1, ports | UINT64_C(12) << 56);
	}
	memcpy(words, f->local.b, 16);
	memcpy(words + 2, f->remote.b, 16);
	return (uint32_t)siphash13(s->table_key, words, 4, ports | UINT64_C(36) << 56);
}

bool tcp_flow_eq(const struct tcp_flow *a, const struct tcp_flow *b)
{
	return a->local_port == b->local_port && a->remote_port == b->remote_port &&
	       ip_eq(&a->remote, &b->remote) && ip_eq(&a->local, &b->local);
}

struct tcp_conn *tcp_table_find(
	const struct tcp_stack *s, const struct tcp_flow *flow, uint32_t hash)
{
	struct tcp_conn *c = s->table[hash & s->table_mask];
	while (c && !(c->hash == hash && tcp_flow_eq(&c->flow, flow)))
		c = c->hash_next;
	return c;
}

void tcp_table_add(struct tcp_conn *c)
{
	struct tcp_conn **bucket = &c->stack->table[c->hash & c->stack->table_mask];
	c->hash_next = *bucket;
	*bucket = c;
}

void tcp_table_remove(struct tcp_conn *c)
{
	struct tcp_conn **link = &c->stack->table[c->hash & c->stack->table_mask];
	while (*link != c)
		link = &(*link)->hash_next;
	*link = c->hash_next;
}

uint32_t tcp_isn(const struct tcp_stack *s, const struct tcp_flow *f)
{
	return (uint32_t)(tcp_now(s) / 4000) + (uint32_t)keyed_hash(s, f, FOR_ISN, 0);
}

uint32_t tcp_ts_offset(const struct tcp_stack *s, const struct tcp_flow *f)
{
	return (uint32_t)keyed_hash(s, f, FOR_TIMESTAMP, 0);
}

uint32_t tcp_cookie_hash(
	const struct tcp_stack *s, const struct tcp_flow *f, uint32_t peer_isn, uint32_t what)
{
	return (uint32_t)keyed_hash(s, f, FOR_COOKIE, (uint64_t)peer_isn << 32 | what);
}

uint16_t tcp_pick_port(struct tcp_stack *s, struct tcp_flow *f)
{
	f->local_port = 0;
	uint64_t offset = keyed_hash(s, f, FOR_PORT, 0); // RFC 6056 3.3.3
	unsigned n_lookups = 0;
	// One in as many ports as there are stacks is ours.
	for (unsigned i = 0; i < PORT_QUESTIONS && n_lookups < PORT_LOOKUPS; i++) {
		f->local_port =
			(uint16_t)(EPHEMERAL_MIN + (offset + s->next_port++) % EPHEMERAL_COUNT);
		if (s->conf.is_ours && !s->conf.is_ours(s->conf.is_ours_ctx, f))
			continue;
		n_lookups++;
		uint32_t hash = tcp_flow_hash(s, f);
		if (!tcp_table_find(s, f, hash) && !tcp_tw_find(s, f, hash))
			return f->local_port;
	}
	return 0;
}
