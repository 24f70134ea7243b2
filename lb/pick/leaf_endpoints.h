// SPDX-License-Identifier: Apache-2.0
// A leaf's endpoints as EDS describes them, stored in columns: immutable and counted, shared by the
// decoded resource, the leaf that balances, and the maps of session affinity. lb/leaf/leaf_layout.h
// turns endpoints into members.
// Thread: made and counted by ctrl; read on workers through the objects that count it.
#pragma once

#include "lb/base/arena.h"
#include "lb/base/str.h"
#include "lb/index/address_index.h"

// The numbers are envoy.config.core.v3.HealthStatus's.
enum lb_leaf_health {
	LB_LEAF_UNKNOWN = 0,
	LB_LEAF_HEALTHY = 1,
	LB_LEAF_UNHEALTHY = 2,
	LB_LEAF_DRAINING = 3,
	LB_LEAF_TIMEOUT = 4,
	LB_LEAF_DEGRADED = 5,
	LB_LEAF_OTHER = 6, // any other number
};

// Input to lb_leaf_endpoints_new(); borrowed for the call.
struct lb_leaf_endpoint {
	const struct ip_port *addresses; // in EDS order
	uint32_t n_addresses; // >= 1
	uint32_t weight; // >= 1
	enum lb_leaf_health health;
	struct str hostname; // "" = none (gRFC A81)
	struct str hash_key; // "" = the first address's text (gRFC A76, RH-01)
	struct ip_port proxy; // that its metadata names (gRFC A86); port 0 = none
};
struct lb_leaf_locality {
	struct str name; // unique in its priority
	uint32_t weight; // >= 1
	const struct lb_leaf_endpoint *endpoints;
	uint32_t n_endpoints;
};
struct lb_leaf_priority {
	const struct lb_leaf_locality *localities;
	uint32_t n_localities;
};

// The place of a locality's endpoints. They are in EDS order, except that draining ones come after
// serving ones (A55-O03), and the unused ones of all localities after all others.
struct lb_leaf_span {
	struct str name;
	uint32_t weight;
	uint32_t first, n_serving, n_draining;
	uint32_t first_unused, n_unused; // A55-V07: they take no part
};

struct lb_leaf_endpoints {
	uint32_t n_refs; // ctrl only
	uint32_t n; // endpoints that take part
	uint32_t n_all; // including the unused ones, which come last
	uint32_t n_addresses;
	uint32_t n_priorities;
	uint32_t n_spans;
	// Everything below except texts lies in the same block.
	struct lb_leaf_span *spans; // by priority, in EDS order
	uint32_t *weights; // [n_all]; NULL = all are 1
	// [n_all + 1], index of the first address of each; NULL = one address each
	uint32_t *firsts;
	struct ip_port *addresses; // endpoint by endpoint
	uint8_t *health; // [n_all]
	const char **hostnames; // [n_all], "" = none; NULL = all have none
	const char **hash_keys; // [n_all], likewise
	struct ip_port *proxies; // [n_all], port 0 = none; NULL = all have none
	struct lb_address_index index; // of all addresses
	struct lb_arena arena; // holds the texts above
};
// [n_priorities], counts of spans; after the spans.
static inline const uint32_t *lb_leaf_endpoints_ends(const struct lb_leaf_endpoints *l)
{
	return (const uint32_t *)(l->spans + l->n_spans);
}
static inline uint32_t lb_leaf_endpoints_weight(const struct lb_leaf_endpoints *l, uint32_t i)
{
	return l->weights ? l->weights[i] : 1;
}

// Count 1. *ret_second: the first address equal to an earlier one (lookups find the earlier one);
// NULL = all differ. Returns NULL if out of memory.
struct lb_leaf_endpoints *lb_leaf_endpoints_new(
	const struct lb_leaf_priority *, uint32_t n, const struct ip_port **ret_second);
struct lb_leaf_endpoints *lb_leaf_endpoints_get(struct lb_leaf_endpoints *);
void lb_leaf_endpoints_put(struct lb_leaf_endpoints *); // NULL is fine

// Which endpoint this address belongs to; the number is below n_addresses.
uint32_t lb_leaf_endpoints_owner(const struct lb_leaf_endpoints *, uint32_t address);
// Which endpoint has the address; UINT32_MAX = none.
uint32_t lb_leaf_endpoints_find(const struct lb_leaf_endpoints *, const struct ip_port *);
// True if the same endpoints take part in the same order, each with the same addresses in order.
bool lb_leaf_endpoints_same_addresses(
	const struct lb_leaf_endpoints *, const struct lb_leaf_endpoints *);

static inline const struct ip_port *lb_leaf_endpoints_addresses(
	const struct lb_leaf_endpoints *l, uint32_t i, uint32_t *ret_n)
{
	uint32_t first = l->firsts ? l->firsts[i] : i;
	*ret_n = l->firsts ? l->firsts[i + 1] - first : 1;
	return &l->addresses[first];
}
static inline struct str lb_leaf_endpoints_hostname(const struct lb_leaf_endpoints *l, uint32_t i)
{
	return l->hostnames ? str_from(l->hostnames[i]) : STR("");
}
// One endpoint in the input form; borrowed.
static inline struct lb_leaf_endpoint lb_leaf_endpoints_at(
	const struct lb_leaf_endpoints *l, uint32_t i)
{
	struct lb_leaf_endpoint e = {
		.weight = lb_leaf_endpoints_weight(l, i),
		.health = l->health[i],
		.hostname = lb_leaf_endpoints_hostname(l, i),
		.hash_key = l->hash_keys ? str_from(l->hash_keys[i]) : STR(""),
	};
	if (l->proxies)
		e.proxy = l->proxies[i];
	e.addresses = lb_leaf_endpoints_addresses(l, i, &e.n_addresses);
	return e;
}
