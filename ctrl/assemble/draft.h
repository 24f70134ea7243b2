// SPDX-License-Identifier: Apache-2.0
// The next snapshot: the serving one with what has changed since. Whoever changes something puts it
// into the draft; the assembler publishes once per turn of the loop.
// Thread: ctrl.
#pragma once

#include "lb/pick/terms.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_access_set;
struct lb_chain_set;
struct lb_cluster;
struct lb_credential;
struct lb_filter_chain;
struct lb_live_frontend;
struct lb_own_ranges;
struct lb_route_table;
struct lb_slot;
struct lb_snapshot;
struct lb_vips;

struct draft {
	struct lb_slot *slot; // borrowed
	struct lb_snapshot *next; // owned: the snapshot to be published; NULL = nothing changed
	bool has_frontends; // something of a frontend's is among it, its access logs aside
	bool is_lost; // out of memory while drafting: everything must be drafted anew
	struct lb_terms terms; // of all drafts; number 0 = none were set
	uint64_t held_since_ns; // 0 = no change is held back
	uint64_t n_published;
	uint64_t published_ns; // when the last one was
	unsigned n_live; // published snapshots that workers may still read
};

void draft_init(struct draft *, struct lb_slot *); // the slot contains an empty first snapshot
void draft_fini(struct draft *);
// Sets the cluster with this number; NULL = none. Takes its own reference.
void draft_set_cluster(struct draft *, uint32_t id, struct lb_cluster *);
// table NULL: no routes, for this reason. generation: of the filters (FLT-11).
void draft_set_frontend(struct draft *, uint32_t index, struct lb_route_table *table,
	const char *error, struct lb_filter_chain *filters, uint64_t generation);
// Of the frontend's listener; NULL = none.
void draft_set_access(struct draft *, uint32_t index, struct lb_access_set *);
// The version that the next snapshot has.
uint64_t draft_version(const struct draft *);
// NULL = none.
void draft_set_credential(struct draft *, uint32_t id, struct lb_credential *);
void draft_set_frontend_credential(struct draft *, uint32_t index, uint32_t id);
// True if a context stands at the id in the published snapshot.
bool draft_has_published(const struct draft *, uint32_t credential);
// NULL = the frontend is as workers were started with it.
void draft_set_live(struct draft *, uint32_t index, struct lb_live_frontend *);
void draft_set_vips(struct draft *, struct lb_vips *); // NULL = none
void draft_set_ranges(struct draft *, struct lb_own_ranges *); // NULL = as at the start
// Copied, but for the number, which is another one than before.
void draft_set_terms(struct draft *, const struct lb_terms *);
void draft_set_chains(struct draft *, uint32_t index, struct lb_chain_set *); // NULL = none
// Starts again from the serving snapshot.
void draft_reset(struct draft *);
// Frees snapshots that no worker reads any more; call every turn.
void draft_reclaim(struct draft *);
// Publishes the draft, if there is one and not too many old snapshots are in use.
void draft_publish(struct draft *, uint64_t now_ns);
