// SPDX-License-Identifier: Apache-2.0
// Everything that a remote host must not predict or aim at is a SipHash under the stack's secret:
// places in the connection table, initial sequence numbers, timestamps, source ports.
#include "dataplane/tcp/tcp_internal.h"
#include "dataplane/tcp/timewait.h"
#include "lb/base/siphash.h"

#define EPHEMERAL_MIN 32768u
#define EPHEMERAL_COUNT (61000u - EPHEMERAL_MIN)
// Of one attempt; the next one goes on behind it.
#define PORT_LOOKUPS 2048
#define PORT_QUESTIONS 8192 // whether a port is ours, which is cheaper

enum purpose { FOR_START = 1, FOR_PORT, FOR_COOKIE };

// The flow as a SipHash takes it: whole words, one instead of four for IPv4 (the lengths keep the
// families apart), and the ports. Returns how many words.
static inline size_t flow_words(const struct tcp_flow *f, uint64_t words[4], uint64_t *ret_ports)
{
	*ret_ports = (uint64_t)f->local_port | (uint64_t)f->remote_port << 16;
	if (ip_is_v4(&f->local) && ip_is_v4(&f->remote)) {
		uint32_t local, remote;
		memcpy(&local, f->local.b + 12, sizeof(local));
		memcpy(&remote, f->remote.b + 12, sizeof(remote));
		words[0] = (uint64_t)local << 32 | remote;
		return 1;
	}
	memcpy(words, f->local.b, 16);
	memcpy(words + 2, f->remote.b, 16);
	return 4;
}

// extra: mixed in for FOR_COOKIE only.
static uint64_t keyed_hash(
	const struct tcp_stack *s, const struct tcp_flow *f, enum purpose purpose, uint64_t extra)
{
	uint64_t words[5], last;
	size_t n = flow_words(f, words, &last);
	if (purpose == FOR_COOKIE)
		words[n++] = extra;
	last |= (uint64_t)purpose << 32;
	if (n == 1) // known here, gcc needs neither loop nor memory
		return siphash24(s->key, words, 1, last | UINT64_C(13) << 56);
	return siphash24(s->key, words, n, last | (8 * n + 5) << 56);
}

uint32_t tcp_flow_hash(const struct tcp_stack *s, const struct tcp_flow *f)
{
	uint64_t words[4], last;
	if (flow_words(f, words, &last) == 1) // as above
		return (uint32_t)siphash13(s->key, words, 1, last | UINT64_C(12) << 56);
	return (uint32_t)siphash13(s->key, words, 4, last | UINT64_C(36) << 56);
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

// Where to look before the table: a multiplication finds it instead of a SipHash, and what a
// stranger who hits upon it can do is that others are looked up in the table, as if it were not
// there.
static inline struct tcp_conn **recent_place(const struct tcp_stack *s, const struct tcp_flow *f)
{
	uint64_t remote; // its lower half: an IPv4 address stands above what the ports change
	memcpy(&remote, f->remote.b + 8, sizeof(remote));
	uint64_t x = remote ^ ((uint64_t)f->remote_port << 16 | f->local_port);
	return &s->recent[x * s->recent_key >> s->recent_shift];
}

struct tcp_conn *tcp_conn_find(
	const struct tcp_stack *s, const struct tcp_flow *flow, uint32_t *ret_hash)
{
	struct tcp_conn **recent = recent_place(s, flow), *c = *recent;
	if (c && tcp_flow_eq(&c->flow, flow)) {
		*ret_hash = c->hash;
		return c;
	}
	*ret_hash = tcp_flow_hash(s, flow);
	c = tcp_table_find(s, flow, *ret_hash);
	if (c)
		*recent = c;
	return c;
}

void tcp_table_add(struct tcp_conn *c)
{
	*recent_place(c->stack, &c->flow) = c;
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
	struct tcp_conn **recent = recent_place(c->stack, &c->flow);
	if (*recent == c)
		*recent = NULL;
}

struct tcp_start tcp_start_of(const struct tcp_stack *s, const struct tcp_flow *f)
{
	uint64_t hash = keyed_hash(s, f, FOR_START, 0);
	return (struct tcp_start){
		.isn = (uint32_t)(tcp_now(s) / 4000) + (uint32_t)hash, // RFC 9293 3.4.1: each 4 us
		.ts_offset = (uint32_t)(hash >> 32),
	};
}

uint32_t tcp_cookie_hash(
	const struct tcp_stack *s, const struct tcp_flow *f, uint32_t peer_isn, uint32_t what)
{
	return (uint32_t)keyed_hash(s, f, FOR_COOKIE, (uint64_t)peer_isn << 32 | what);
}

bool tcp_flow_is_free(const struct tcp_stack *s, const struct tcp_flow *f, uint32_t *ret_hash)
{
	*ret_hash = tcp_flow_hash(s, f);
	const struct tcp_tw *tw = tcp_tw_find(s, f, *ret_hash);
	return !tcp_table_find(s, f, *ret_hash) && (!tw || tcp_tw_may_go(s, tw));
}

void tcp_stack_set_ports(struct tcp_stack *s, uint32_t part, uint32_t n_parts)
{
	s->n_ports = EPHEMERAL_COUNT / n_parts;
	s->first_port = EPHEMERAL_MIN + part * s->n_ports;
}

bool tcp_pick_port(struct tcp_stack *s, struct tcp_flow *f, uint32_t *ret_hash)
{
	f->local_port = 0;
	uint64_t offset = keyed_hash(s, f, FOR_PORT, 0); // RFC 6056 3.3.3
	unsigned n_lookups = 0;
	// One in as many ports as there are stacks is ours.
	for (unsigned i = 0; i < PORT_QUESTIONS && n_lookups < PORT_LOOKUPS; i++) {
		f->local_port = (uint16_t)(s->first_port + (offset + s->next_port++) % s->n_ports);
		if (s->conf.is_ours && !s->conf.is_ours(s->conf.is_ours_ctx, f))
			continue;
		n_lookups++;
		if (tcp_flow_is_free(s, f, ret_hash))
			return true;
	}
	return false;
}
