// SPDX-License-Identifier: Apache-2.0
// The immutable tree that workers read: frontends → route tables → cluster ids → clusters →
// pickers. Parts are shared between snapshots by counts that only the control thread touches; a
// snapshot is freed after a grace period (lb/slot.h), which then drops its references.
// Thread: built and freed by ctrl; read by workers, within one turn only (docs/threads.md).
#pragma once

#include "lb/pick/credential.h"
#include "lb/pick/limits.h"
#include "lb/pick/terms.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_access_set;
struct lb_chain_set;
struct lb_cluster;
struct lb_filter_chain;
struct lb_live_frontend;
struct lb_own_ranges;
struct lb_route_table;
struct lb_vips;

struct lb_frontend {
	struct lb_route_table
		*routes; // counted; NULL = no usable config: requests fail with `error`
	char *error; // owned; "" while there are routes
	struct lb_filter_chain *filters; // counted; NULL = none, and no limit from the listener
	struct lb_access_set *access; // counted; the listener's access logs; NULL = none
	// 0 = no listener so far. Grows with each different listener, but not with new routes.
	// Connections accepted under an earlier number, except 0, must be drained (FLT-11).
	uint64_t generation;
	// Counted; NULL = none. With chains a connection belongs to the frontend that they say,
	// which is one of those behind shunt.yaml's, and this one has no routes.
	struct lb_chain_set *chains;
	uint32_t credential; // id; LB_PLAIN_TEXT = no TLS
	struct lb_live_frontend *live; // counted; NULL = it is as workers were started with it
};
_Static_assert(sizeof(struct lb_frontend) == 64, "workers find one by a shift");

// Frontends and clusters lie in pages, and the next snapshot shares the unchanged ones: making it
// costs only what changed, and leaves the cache lines that workers read alone.
#define LB_FRONTENDS_PER_PAGE 64
struct lb_frontend_page {
	struct lb_frontend frontends[LB_FRONTENDS_PER_PAGE];
	uint32_t n_refs; // ctrl only
};

#define LB_CLUSTERS_PER_PAGE 64 // by id
struct lb_cluster_page {
	struct lb_cluster *clusters[LB_CLUSTERS_PER_PAGE]; // counted; NULL = no such cluster
	uint32_t n_refs; // ctrl only
};

struct lb_snapshot {
	uint64_t version; // grows by one each publish
	uint64_t n_generations; // grows with the generation of any frontend
	uint64_t n_live; // grows with `live` of any frontend
	// Those of shunt.yaml in its order and places for more, then places for chains.
	uint32_t n_frontends;
	uint32_t n_pages; // length of pages
	struct lb_frontend_page **frontend_pages; // owned array of counted pointers
	struct lb_cluster_page **pages; // owned array of counted pointers; NULL = an empty page
	struct lb_credentials *credentials; // counted; NULL = there are none
	struct lb_vips *vips; // counted; NULL = Listeners have no address of their own
	struct lb_own_ranges *ranges; // counted; NULL = those that workers were started with
	struct lb_terms terms; // number 0 = those that workers were started with
	// lb/slot.c's, after another snapshot was published.
	struct {
		struct lb_snapshot *newer; // ctrl only
		void *rcu[2];
		bool passed; // w: liburcu's thread (release), r: ctrl (acquire)
	} retire;
};

// Makes an empty one: every frontend has `error`. Returns NULL if out of memory.
struct lb_snapshot *lb_snapshot_new(uint32_t n_frontends, const char *error);
// Returns a new snapshot with the same content, counted, and version + 1, to be changed and
// published. NULL = out of memory.
struct lb_snapshot *lb_snapshot_copy(const struct lb_snapshot *);
// Change a snapshot that is not published yet. They take their own references. Return 0 or -ENOMEM.
int lb_snapshot_set_frontend(
	struct lb_snapshot *, uint32_t index, struct lb_route_table *, const char *error);
// filters NULL = none.
int lb_snapshot_set_filters(
	struct lb_snapshot *, uint32_t index, struct lb_filter_chain *, uint64_t generation);
int lb_snapshot_set_access(struct lb_snapshot *, uint32_t index, struct lb_access_set *);
int lb_snapshot_set_chains(struct lb_snapshot *, uint32_t index, struct lb_chain_set *);
int lb_snapshot_set_live(struct lb_snapshot *, uint32_t index, struct lb_live_frontend *);
void lb_snapshot_set_vips(struct lb_snapshot *, struct lb_vips *);
void lb_snapshot_set_ranges(struct lb_snapshot *, struct lb_own_ranges *);
int lb_snapshot_set_frontend_credential(struct lb_snapshot *, uint32_t index, uint32_t id);
int lb_snapshot_set_cluster(struct lb_snapshot *, uint32_t id, struct lb_cluster *); // NULL removes
// What stands at the id; NULL = none (yet): who needs it is refused.
int lb_snapshot_set_credential(struct lb_snapshot *, uint32_t id, struct lb_credential *);
void lb_snapshot_free(struct lb_snapshot *); // NULL is fine

static inline const struct lb_frontend *lb_snapshot_frontend(
	const struct lb_snapshot *s, uint32_t index)
{
	return &s->frontend_pages[index / LB_FRONTENDS_PER_PAGE]
	                ->frontends[index % LB_FRONTENDS_PER_PAGE];
}

static inline const struct lb_cluster *lb_snapshot_cluster(const struct lb_snapshot *s, uint32_t id)
{
	uint32_t page = id / LB_CLUSTERS_PER_PAGE;
	if (page >= s->n_pages || !s->pages[page])
		return (const struct lb_cluster *)0;
	return s->pages[page]->clusters[id % LB_CLUSTERS_PER_PAGE];
}

// NULL = none stands there (yet).
static inline const struct lb_credential *lb_snapshot_credential(
	const struct lb_snapshot *s, uint32_t id)
{
	return lb_credentials_at(s->credentials, id);
}
