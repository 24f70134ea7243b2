// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/leaf_endpoints.h"

#include "lb/base/check.h"

#include <stdlib.h>
#include <string.h>

// What the columns are to hold.
struct sizes {
	size_t priorities, spans, endpoints, used, addresses;
	size_t text; // of the spans' names
	bool has_weights, has_hostnames, has_keys, has_proxies;
};

static bool is_used(const struct lb_leaf_endpoint *e)
{
	return e->health == LB_LEAF_UNKNOWN || e->health == LB_LEAF_HEALTHY ||
	       e->health == LB_LEAF_DRAINING;
}

static struct sizes measure(const struct lb_leaf_priority *list, uint32_t n)
{
	struct sizes s = {.priorities = n};
	for (uint32_t i = 0; i < n; i++) {
		s.spans += list[i].n_localities;
		for (uint32_t j = 0; j < list[i].n_localities; j++) {
			const struct lb_leaf_locality *l = &list[i].localities[j];
			s.endpoints += l->n_endpoints;
			s.text += l->name.len + 1;
			for (uint32_t k = 0; k < l->n_endpoints; k++) {
				const struct lb_leaf_endpoint *e = &l->endpoints[k];
				s.used += is_used(e);
				s.addresses += e->n_addresses;
				s.has_weights |= e->weight != 1;
				s.has_hostnames |= e->hostname.len > 0;
				s.has_keys |= e->hash_key.len > 0;
				s.has_proxies |= e->proxy.port > 0;
			}
		}
	}
	return s;
}

// All that most have, in one piece. Those that some have are laid into the arena. NULL = out of
// memory.
static struct lb_leaf_endpoints *allocate(
	const struct sizes *s, uint32_t **ret_room, char **ret_text)
{
	size_t n = s->endpoints, n_firsts = s->addresses > n ? n + 1 : 0;
	size_t n_weights = s->has_weights ? n : 0;
	size_t n_room = lb_address_index_room((uint32_t)s->addresses);
	size_t n_words = s->priorities + n_weights + n_firsts + n_room;
	struct lb_leaf_endpoints *l =
		malloc(sizeof(*l) + s->spans * sizeof(*l->spans) + n_words * sizeof(uint32_t) +
			s->addresses * sizeof(*l->addresses) + n + s->text);
	if (!l)
		return NULL;
	*l = (struct lb_leaf_endpoints){.n_refs = 1,
		.n_all = (uint32_t)n,
		.n_addresses = (uint32_t)s->addresses,
		.spans = (struct lb_leaf_span *)(l + 1)};
	uint32_t *words = (uint32_t *)(l->spans + s->spans) + s->priorities;
	l->weights = n_weights ? words : NULL;
	l->firsts = n_firsts ? words + n_weights : NULL;
	words += n_weights + n_firsts;
	*ret_room = n_room ? words : NULL;
	l->addresses = (struct ip_port *)(words + n_room);
	l->health = (uint8_t *)(l->addresses + s->addresses);
	*ret_text = (char *)(l->health + n);
	if (n_firsts)
		l->firsts[0] = 0;
	return l;
}

static bool allocate_rare(struct lb_leaf_endpoints *l, const struct sizes *s)
{
	size_t n = s->endpoints;
	if (s->has_hostnames && !(l->hostnames = lb_arena_alloc(&l->arena, n, sizeof(char *))))
		return false;
	if (s->has_keys && !(l->hash_keys = lb_arena_alloc(&l->arena, n, sizeof(char *))))
		return false;
	return !s->has_proxies || (l->proxies = lb_arena_alloc(&l->arena, n, sizeof(*l->proxies)));
}

// Counts the span's; the unused ones begin at *unused, which moves on.
static void measure_span(struct lb_leaf_endpoints *l, struct lb_leaf_span *span,
	const struct lb_leaf_locality *from, uint32_t *unused)
{
	*span = (struct lb_leaf_span){
		.name = span->name, .weight = from->weight, .first = l->n, .first_unused = *unused};
	for (uint32_t i = 0; i < from->n_endpoints; i++) {
		enum lb_leaf_health health = from->endpoints[i].health;
		span->n_draining += health == LB_LEAF_DRAINING;
		span->n_serving += health == LB_LEAF_UNKNOWN || health == LB_LEAF_HEALTHY;
	}
	span->n_unused = from->n_endpoints - span->n_serving - span->n_draining;
	l->n += span->n_serving + span->n_draining;
	*unused += span->n_unused;
}

static bool put_text(struct lb_leaf_endpoints *l, struct str text, const char **ret)
{
	struct str copy = STR("");
	if (text.len && !lb_arena_copy(&l->arena, text, &copy))
		return false;
	*ret = copy.p;
	return true;
}

// All but the addresses of those of which some have several, whose places are not known yet.
static bool put_endpoint(
	struct lb_leaf_endpoints *l, uint32_t at, const struct lb_leaf_endpoint *from)
{
	if (l->weights)
		l->weights[at] = from->weight;
	if (l->proxies)
		l->proxies[at] = from->proxy;
	l->health[at] = (uint8_t)from->health;
	if (l->firsts)
		l->firsts[at + 1] = from->n_addresses;
	else
		l->addresses[at] = from->addresses[0];
	if (l->hostnames && !put_text(l, from->hostname, &l->hostnames[at]))
		return false;
	return !l->hash_keys || put_text(l, from->hash_key, &l->hash_keys[at]);
}

static bool put_addresses(
	struct lb_leaf_endpoints *l, uint32_t at, const struct lb_leaf_endpoint *from)
{
	memcpy(&l->addresses[l->firsts[at]], from->addresses,
		from->n_addresses * sizeof(from->addresses[0]));
	return true;
}

static bool fill_span(struct lb_leaf_endpoints *l, const struct lb_leaf_span *span,
	const struct lb_leaf_locality *from,
	bool (*put)(struct lb_leaf_endpoints *, uint32_t at, const struct lb_leaf_endpoint *))
{
	uint32_t serving = span->first, draining = serving + span->n_serving;
	uint32_t unused = span->first_unused;
	for (uint32_t i = 0; i < from->n_endpoints; i++) {
		const struct lb_leaf_endpoint *e = &from->endpoints[i];
		uint32_t *at = !is_used(e)                     ? &unused
		               : e->health == LB_LEAF_DRAINING ? &draining
		                                               : &serving;
		if (!put(l, (*at)++, e))
			return false;
	}
	return true;
}

static bool fill(struct lb_leaf_endpoints *l, const struct lb_leaf_priority *list,
	bool (*put)(struct lb_leaf_endpoints *, uint32_t at, const struct lb_leaf_endpoint *))
{
	const struct lb_leaf_span *span = l->spans;
	for (uint32_t i = 0; i < l->n_priorities; i++)
		for (uint32_t j = 0; j < list[i].n_localities; j++)
			if (!fill_span(l, span++, &list[i].localities[j], put))
				return false;
	return true;
}

// Their names go to `text`.
static void build_spans(struct lb_leaf_endpoints *l, const struct lb_leaf_priority *list,
	uint32_t n, const struct sizes *sizes, char *text)
{
	uint32_t unused = (uint32_t)sizes->used;
	uint32_t *ends = (uint32_t *)(l->spans + sizes->spans);
	for (; l->n_priorities < n; l->n_priorities++) {
		const struct lb_leaf_priority *p = &list[l->n_priorities];
		for (uint32_t j = 0; j < p->n_localities; j++) {
			struct lb_leaf_span *span = &l->spans[l->n_spans++];
			size_t len = p->localities[j].name.len;
			if (len)
				memcpy(text, p->localities[j].name.p, len);
			text[len] = '\0';
			span->name = (struct str){text, len};
			text += len + 1;
			measure_span(l, span, &p->localities[j], &unused);
		}
		ends[l->n_priorities] = l->n_spans;
	}
}

static bool put_endpoints(struct lb_leaf_endpoints *l, const struct lb_leaf_priority *list)
{
	if (!fill(l, list, put_endpoint))
		return false;
	if (!l->firsts)
		return true;
	for (uint32_t i = 0; i < l->n_all; i++)
		l->firsts[i + 1] += l->firsts[i];
	return fill(l, list, put_addresses);
}

struct lb_leaf_endpoints *lb_leaf_endpoints_new(
	const struct lb_leaf_priority *list, uint32_t n, const struct ip_port **ret_second)
{
	struct sizes sizes = measure(list, n);
	if (sizes.addresses > UINT32_MAX / 2 || sizes.spans > UINT32_MAX / 2)
		return NULL;
	uint32_t *room, second;
	char *text;
	struct lb_leaf_endpoints *l = allocate(&sizes, &room, &text);
	if (!l)
		return NULL;
	build_spans(l, list, n, &sizes, text);
	if (!allocate_rare(l, &sizes) || !put_endpoints(l, list) ||
		lb_address_index_init(&l->index, l->addresses, l->n_addresses, room, &second)) {
		lb_leaf_endpoints_put(l);
		return NULL;
	}
	*ret_second = second == UINT32_MAX ? NULL : &l->addresses[second];
	return l;
}

struct lb_leaf_endpoints *lb_leaf_endpoints_get(struct lb_leaf_endpoints *l)
{
	l->n_refs++;
	return l;
}

void lb_leaf_endpoints_put(struct lb_leaf_endpoints *l)
{
	if (!l)
		return;
	CHECK(l->n_refs > 0);
	if (--l->n_refs)
		return;
	lb_address_index_fini(&l->index);
	lb_arena_fini(&l->arena);
	free(l);
}

uint32_t lb_leaf_endpoints_owner(const struct lb_leaf_endpoints *l, uint32_t address)
{
	if (!l->firsts)
		return address;
	uint32_t low = 0, high = l->n_all;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (l->firsts[middle] <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint32_t lb_leaf_endpoints_find(const struct lb_leaf_endpoints *l, const struct ip_port *a)
{
	uint32_t address = lb_address_index_find(&l->index, a);
	return address == UINT32_MAX ? UINT32_MAX : lb_leaf_endpoints_owner(l, address);
}

bool lb_leaf_endpoints_same_addresses(
	const struct lb_leaf_endpoints *a, const struct lb_leaf_endpoints *b)
{
	if (a == b)
		return true;
	if (a->n != b->n || !a->firsts != !b->firsts)
		return false;
	if (a->firsts && memcmp(a->firsts, b->firsts, (a->n + 1) * sizeof(*a->firsts)) != 0)
		return false;
	uint32_t n = a->firsts ? a->firsts[a->n] : a->n;
	return memcmp(a->addresses, b->addresses, n * sizeof(*a->addresses)) == 0;
}
_Static_assert(sizeof(struct ip_port) == 18, "addresses without gaps compare by their bytes");
