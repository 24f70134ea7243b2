// SPDX-License-Identifier: Apache-2.0
// Addresses that are served because a Listener of xDS has them (A36-65), each with its filter
// chains: one table for all workers, whose places keep their numbers from one table to the next.
// Immutable.
// Thread: built, counted and freed on ctrl; workers read.
#pragma once

#include "lb/base/ip.h"

#include <stddef.h>
#include <stdint.h>

#define LB_MAX_VIPS 1024 // addresses with a port

struct lb_chain_set;

struct lb_vip {
	struct ip_port at;
	struct lb_chain_set *chains; // counted; NULL = nothing is at this place
};

struct lb_vips {
	uint32_t n_refs; // ctrl only
	uint32_t n;
	uint64_t version; // of no two tables the same, and not 0
	struct lb_vip list[];
};

// Copies the list and takes references. Count 1. NULL = out of memory.
struct lb_vips *lb_vips_new(const struct lb_vip *, uint32_t n, uint64_t version);
struct lb_vips *lb_vips_get(struct lb_vips *); // NULL stays NULL
void lb_vips_put(struct lb_vips *); // NULL is fine

// What is at a place; NULL = nothing, or no table.
static inline const struct lb_vip *lb_vips_at(const struct lb_vips *v, uint32_t place)
{
	return v && place < v->n && v->list[place].chains ? &v->list[place]
	                                                  : (const struct lb_vip *)NULL;
}
// The chains of a place if it has this address; NULL = it has not.
static inline const struct lb_chain_set *lb_vips_chains(
	const struct lb_vips *v, uint32_t place, const struct ip_port *at)
{
	const struct lb_vip *vip = lb_vips_at(v, place);
	return vip && ip_port_eq(&vip->at, at) ? vip->chains : (const struct lb_chain_set *)NULL;
}
