// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/affinity_map.h"

#include "lb/base/check.h"
#include "lb/pick/leaf_endpoints.h"

#include <stdlib.h>

#define NONE UINT32_MAX

struct lb_affinity_map *lb_affinity_map_new(struct lb_leaf_endpoints *endpoints,
	struct lb_leaf_endpoints *leaving, const struct lb_cells *cells)
{
	DCHECK(cells->n == endpoints->n + (leaving ? leaving->n : 0));
	struct lb_affinity_map *m = malloc(sizeof(*m));
	if (m)
		*m = (struct lb_affinity_map){.n_refs = 1,
			.filter = endpoints->index.filter,
			.endpoints = lb_leaf_endpoints_get(endpoints),
			.leaving = leaving ? lb_leaf_endpoints_get(leaving) : NULL,
			.cells = lb_cells_share(cells)};
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
	lb_leaf_endpoints_put(m->endpoints);
	lb_leaf_endpoints_put(m->leaving);
	lb_cells_fini(&m->cells);
	free(m);
}

// Whose address it is.
struct owner {
	uint32_t endpoint; // NONE = nobody's who takes part
	uint32_t address; // its number
};

static struct owner owner_of(const struct lb_leaf_endpoints *e, const struct ip_port *a)
{
	uint32_t address = lb_address_index_find(&e->index, a);
	uint32_t endpoint = address == NONE ? NONE : lb_leaf_endpoints_owner(e, address);
	return (struct owner){endpoint < e->n ? endpoint : NONE, address};
}

static void describe(const struct lb_leaf_endpoints *e, struct owner o, const struct lb_cell *state,
	struct lb_affinity_host *ret)
{
	*ret = (struct lb_affinity_host){
		.state = state,
		.hostname = lb_leaf_endpoints_hostname(e, o.endpoint),
		.member = state->member,
		.is_target = state->is_target,
	};
	ret->addresses = lb_leaf_endpoints_addresses(e, o.endpoint, &ret->n_addresses);
	ret->address = o.address - (uint32_t)(ret->addresses - e->addresses);
}

bool lb_affinity_map_find(
	const struct lb_affinity_map *m, const struct ip_port *a, struct lb_affinity_host *ret)
{
	if (!m)
		return false;
	struct owner o = owner_of(m->endpoints, a);
	if (o.endpoint != NONE) {
		describe(m->endpoints, o, lb_cells_at(&m->cells, o.endpoint), ret);
		return true;
	}
	if (!m->leaving || (o = owner_of(m->leaving, a)).endpoint == NONE)
		return false;
	describe(m->leaving, o, lb_cells_at(&m->cells, m->endpoints->n + o.endpoint), ret);
	return true;
}

size_t lb_affinity_print(const struct lb_affinity_host *h, char *out, size_t room)
{
	size_t len = 0;
	for (uint32_t i = 0; i < h->n_addresses; i++) {
		char text[IP_PORT_TEXT_MAX];
		uint32_t at = i == 0 ? h->address : i <= h->address ? i - 1 : i;
		size_t part = strlen(ip_port_print(&h->addresses[at], text));
		if (room - len < part + 1)
			return 0;
		if (i)
			out[len++] = ',';
		memcpy(out + len, text, part);
		len += part;
	}
	return len;
}

static enum lb_affinity_kind request_connect(
	const struct lb_affinity_map *m, struct owner o, struct lb_affinity_host *ret)
{
	describe(m->endpoints, o, lb_cells_at(&m->cells, o.endpoint), ret);
	return LB_AFFINITY_CONNECT;
}

// The address in use, whichever of its addresses the cookie has.
static enum lb_affinity_kind use(const struct lb_affinity_map *m, struct owner o,
	const struct lb_cell *state, struct lb_affinity_host *ret)
{
	describe(m->endpoints, o, state, ret);
	for (uint32_t i = 0; ret->n_addresses > 1 && i < ret->n_addresses; i++)
		if (ip_port_eq(&ret->addresses[i], &state->endpoint->addr))
			ret->address = i;
	return LB_AFFINITY_USE;
}

// The first that is READY, or else IDLE, or else CONNECTING, or else without a connection (A75-O05
// to A75-O08).
enum lb_affinity_kind lb_affinity_map_pick_known(const struct lb_affinity_map *m,
	const struct ip_port *addresses, uint32_t n, struct lb_affinity_host *ret)
{
	struct owner idle = {NONE, NONE}, none = {NONE, NONE};
	bool is_connecting = false;
	for (uint32_t i = 0; i < n; i++) {
		struct owner o = owner_of(m->endpoints, &addresses[i]);
		const struct lb_cell *c =
			o.endpoint == NONE ? NULL : lb_cells_at(&m->cells, o.endpoint);
		if (!c || !c->is_target || c->is_barred)
			continue;
		if (!c->has_connection)
			none = none.endpoint == NONE ? o : none;
		else if (c->state == LB_READY)
			return use(m, o, c, ret);
		else if (c->state == LB_IDLE)
			idle = idle.endpoint == NONE ? o : idle;
		else
			is_connecting |= c->state == LB_CONNECTING;
	}
	if (idle.endpoint != NONE)
		return request_connect(m, idle, ret);
	if (is_connecting)
		return LB_AFFINITY_QUEUE;
	return none.endpoint != NONE ? request_connect(m, none, ret) : LB_AFFINITY_CHILD;
}
