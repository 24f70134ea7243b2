// SPDX-License-Identifier: Apache-2.0
#include "lb/affinity_map.h"

#include "lb/arena.h"
#include "lb/base/check.h"
#include "lb/hash.h"

#include <stdlib.h>

struct slot {
	struct ip_port address;
	uint32_t host; // index + 1; 0 = free
	struct str addresses;
};

struct host {
	struct str hostname, locality;
	uint32_t member;
	bool is_target;
};

struct lb_affinity_index {
	uint32_t n_refs; // ctrl only
	uint32_t n;
	uint32_t mask;
	struct host *hosts; // [n]
	struct slot *slots; // [mask + 1]: open addressing, at most half full
	struct lb_arena arena; // all of it
};

struct lb_affinity_map {
	uint32_t n_refs; // ctrl only
	struct lb_affinity_index *index; // counted
	struct lb_affinity_state *states; // owned; [index->n]
};

static struct slot *place_of(const struct lb_affinity_index *x, const struct ip_port *a)
{
	uint8_t key[sizeof(a->ip.b) + 2]; // without the padding of struct ip_port
	memcpy(key, a->ip.b, sizeof(a->ip.b));
	memcpy(key + sizeof(a->ip.b), &a->port, 2);
	uint32_t at = (uint32_t)lb_hash(key, sizeof(key)) & x->mask;
	while (x->slots[at].host && !ip_port_eq(&x->slots[at].address, a))
		at = (at + 1) & x->mask;
	return &x->slots[at];
}

// The text of address `first` and then the others.
static bool add_list(struct lb_affinity_index *x, const struct lb_affinity_conf *c, uint32_t first,
	struct str *ret)
{
	char *text = lb_arena_alloc(&x->arena, c->n_addresses, IP_PORT_TEXT_MAX);
	if (!text)
		return false;
	size_t len = 0;
	for (uint32_t i = 0; i < c->n_addresses; i++) {
		uint32_t at = i == 0 ? first : i <= first ? i - 1 : i;
		if (i)
			text[len++] = ',';
		len += strlen(ip_port_print(&c->addresses[at], text + len));
	}
	*ret = (struct str){text, len};
	return true;
}

static bool add(struct lb_affinity_index *x, const struct lb_affinity_conf *c)
{
	struct host *h = &x->hosts[x->n++];
	h->member = c->member;
	h->is_target = c->is_target;
	if (!lb_arena_copy(&x->arena, c->hostname, &h->hostname) ||
		!lb_arena_copy(&x->arena, c->locality, &h->locality))
		return false;
	for (uint32_t i = 0; i < c->n_addresses; i++) {
		struct slot *s = place_of(x, &c->addresses[i]);
		if (s->host)
			continue;
		if (!add_list(x, c, i, &s->addresses))
			return false;
		s->address = c->addresses[i];
		s->host = x->n;
	}
	return true;
}

struct lb_affinity_index *lb_affinity_index_new(const struct lb_affinity_conf *list, uint32_t n)
{
	struct lb_affinity_index *x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	size_t n_addresses = 0, n_slots = 2;
	for (uint32_t i = 0; i < n; i++)
		n_addresses += list[i].n_addresses;
	while (n_slots < 2 * n_addresses)
		n_slots *= 2;
	x->n_refs = 1;
	x->mask = (uint32_t)n_slots - 1;
	x->hosts = lb_arena_alloc(&x->arena, n, sizeof(*x->hosts));
	x->slots = lb_arena_alloc(&x->arena, n_slots, sizeof(*x->slots));
	bool is_complete = x->hosts && x->slots;
	for (uint32_t i = 0; is_complete && i < n; i++)
		is_complete = add(x, &list[i]);
	if (is_complete)
		return x;
	lb_affinity_index_put(x);
	return NULL;
}

void lb_affinity_index_put(struct lb_affinity_index *x)
{
	if (!x)
		return;
	CHECK(x->n_refs > 0);
	if (--x->n_refs)
		return;
	lb_arena_fini(&x->arena);
	free(x);
}

struct lb_affinity_map *lb_affinity_map_new(
	struct lb_affinity_index *x, struct lb_affinity_state *states)
{
	struct lb_affinity_map *m = malloc(sizeof(*m));
	if (!m) {
		free(states);
		return NULL;
	}
	*m = (struct lb_affinity_map){1, x, states};
	x->n_refs++;
	for (uint32_t i = 0; i < x->n; i++)
		if (states[i].endpoint)
			lb_endpoint_get_again(states[i].endpoint);
	return m;
}

struct lb_affinity_map *lb_affinity_map_get(struct lb_affinity_map *m)
{
	m->n_refs++;
	return m;
}

void lb_affinity_map_put(struct lb_affinity_map *m)
{
	if (!m)
		return;
	CHECK(m->n_refs > 0);
	if (--m->n_refs)
		return;
	for (uint32_t i = 0; i < m->index->n; i++)
		if (m->states[i].endpoint)
			lb_endpoint_put(m->states[i].endpoint->table, m->states[i].endpoint);
	lb_affinity_index_put(m->index);
	free(m->states);
	free(m);
}

bool lb_affinity_map_find(
	const struct lb_affinity_map *m, const struct ip_port *a, struct lb_affinity_host *ret)
{
	const struct slot *s = m ? place_of(m->index, a) : NULL;
	if (!s || !s->host)
		return false;
	const struct host *h = &m->index->hosts[s->host - 1];
	*ret = (struct lb_affinity_host){
		.state = &m->states[s->host - 1],
		.hostname = h->hostname,
		.locality = h->locality,
		.addresses = s->addresses,
		.member = h->member,
		.is_target = h->is_target,
	};
	return true;
}

struct lb_affinity_pick lb_affinity_map_pick(
	const struct lb_affinity_map *m, const struct ip_port *addresses, uint32_t n)
{
	struct lb_affinity_pick idle = {0}, none = {0};
	bool is_connecting = false;
	for (uint32_t i = 0; i < n; i++) {
		struct lb_affinity_host h;
		if (!lb_affinity_map_find(m, &addresses[i], &h) || !h.is_target ||
			h.state->is_barred)
			continue;
		if (!h.state->has_connection) {
			if (none.kind == LB_AFFINITY_CHILD)
				none = (struct lb_affinity_pick){LB_AFFINITY_WISH, h};
		} else if (h.state->state == LB_READY) {
			// The address in use, whichever of its addresses the cookie has.
			lb_affinity_map_find(m, &h.state->endpoint->addr, &h);
			return (struct lb_affinity_pick){LB_AFFINITY_USE, h};
		} else if (h.state->state == LB_IDLE && idle.kind == LB_AFFINITY_CHILD) {
			idle = (struct lb_affinity_pick){LB_AFFINITY_WISH, h};
		}
		is_connecting |= h.state->has_connection && h.state->state == LB_CONNECTING;
	}
	if (idle.kind != LB_AFFINITY_CHILD)
		return idle;
	if (is_connecting)
		return (struct lb_affinity_pick){.kind = LB_AFFINITY_QUEUE};
	return none;
}
