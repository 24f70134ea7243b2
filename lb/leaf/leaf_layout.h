// SPDX-License-Identifier: Apache-2.0
// A leaf's present configuration, with members instead of addresses: what its policies are given,
// including those made later. Each update makes a new one.
// Thread: ctrl.
#pragma once

#include "lb/leaf/leaf.h"
#include "lb/leaf/roster.h"
#include "lb/pick/leaf_endpoints.h"
#include "lb/policy/node.h"

struct lb_child_names;
struct lb_leaf_members;
struct lb_security;

#define LB_LEAF_CHILD_NAME_MAX 24

struct lb_leaf_layout {
	struct lb_leaf_endpoints *endpoints; // counted
	struct lb_roster *roster; // counted; of the endpoints that take part
	const struct lb_policy_spec *spec; // of all priorities
	// [endpoints->n], owned: 1 = no policy is given it (lb/leaf/subset.h); NULL = all are
	uint8_t *is_out;
	struct lb_security *security; // counted; NULL = plain text
	bool sni_is_hostname, uses_proxies;
	uint32_t n_priorities; // at least one, without endpoints if EDS has no priorities (A74-C08)
	struct lb_child_names *names; // owned
	// The rest lies in the same block.
	const char *note;
	const char **children; // [n_priorities], their names
	struct lb_leaf_child *by_name; // [n_priorities], the same sorted by name
};
struct lb_leaf_child {
	const char *name;
	uint32_t rank;
};

// Returns NULL if out of memory or out of member ids.
// Keeps members of the layout before; finds or makes the others with these functions.
struct lb_leaf_layout *lb_leaf_layout_new(struct lb_leaf_members *, const struct lb_leaf_config *,
	bool (*exists)(void *ctx, uint32_t number), void *ctx);
// As lb_member_env.security.
[[nodiscard]] int lb_leaf_layout_security(
	const struct lb_leaf_layout *, const struct ip_port *, struct lb_security **ret);
// What the member is connected to, if it is, is what the layout says of its addresses (TLS-161,
// HC-07).
bool lb_leaf_layout_fits(const struct lb_leaf_layout *, const struct lb_member *);
// Applies the order of addresses to the members. True = a member has another first address, which
// identifies it in rings (RH-01).
bool lb_leaf_layout_reorder(const struct lb_leaf_layout *);
// What policies are given of the serving endpoints is a few of them, and not this one.
static inline bool lb_leaf_layout_is_out(const struct lb_leaf_layout *l, uint32_t i)
{
	return l->is_out && l->is_out[i];
}
// All members, those that policies are given the first *ret_n. To be freed; NULL = out of memory.
struct lb_member **lb_leaf_layout_list(const struct lb_leaf_layout *, uint32_t *ret_n);
// Releases the members. NULL is fine.
void lb_leaf_layout_free(struct lb_leaf_layout *);
// True if the policies would get the same configuration (A74-C09).
bool lb_leaf_layout_same_configs(const struct lb_leaf_layout *, const struct lb_leaf_layout *);
// The configuration of this priority's policies; the caller frees it. NULL = out of memory.
struct lb_node_config *lb_leaf_layout_config(const struct lb_leaf_layout *, uint32_t rank);
// The localities of this priority.
const struct lb_leaf_span *lb_leaf_layout_spans(
	const struct lb_leaf_layout *, uint32_t rank, uint32_t *ret_n);
void lb_leaf_child_name(uint32_t number, char ret[LB_LEAF_CHILD_NAME_MAX]);
// The priority of this child; UINT32_MAX = none.
uint32_t lb_leaf_layout_find(const struct lb_leaf_layout *, const char *child);
// A75-O21: stores in loads, by member id, which load counter each member's locality has.
// of_localities as in lb_leaf_config.locality_loads. Both may be NULL.
void lb_leaf_layout_book(
	const struct lb_leaf_layout *, uint32_t *loads, const uint32_t *of_localities);
