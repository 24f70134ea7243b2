// SPDX-License-Identifier: Apache-2.0
// The next snapshot in the making: the one that serves, with what has changed since. Whoever
// changes something drafts it; the assembler publishes the whole once a turn of the loop.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_cluster;
struct lb_filter_chain;
struct lb_route_table;
struct lb_slot;
struct lb_snapshot;

struct draft {
	struct lb_slot *slot; // borrowed
	struct lb_snapshot *next; // owned: what the next publish shows; NULL = nothing changed
	bool is_lost; // memory ran out over it: everything is to be drafted anew
	uint64_t held_since_ns; // 0 = no change waits
	uint64_t n_published;
	unsigned n_live; // published, and workers may still read them
};

void draft_init(struct draft *, struct lb_slot *); // which holds an empty first snapshot
void draft_fini(struct draft *);
// A cluster, or NULL for none, by its number. Takes its own reference.
void draft_set_cluster(struct draft *, uint32_t id, struct lb_cluster *);
// table NULL: no routes, for this reason. The generation: of the filters (FLT-11).
void draft_set_frontend(struct draft *, uint32_t index, struct lb_route_table *table,
	const char *error, struct lb_filter_chain *filters, uint64_t generation);
// Starts from the snapshot that serves once more.
void draft_reset(struct draft *);
// Frees snapshots that no worker reads any more; every turn.
void draft_reclaim(struct draft *);
// Publishes what was drafted, if anything was, and if no snapshots are to be waited for.
void draft_publish(struct draft *, uint64_t now_ns);
