// SPDX-License-Identifier: Apache-2.0
// The clusters that workers know or may still hold, each with a name, a dense id and a policy tree.
// A cluster that no configuration names any more is `leaving` until its last request ends; if it is
// named again before, it is the same object and no connection is closed (A31-C02).
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/workers.h"
#include "ctrl/base/strmap.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct cluster_tree;
struct cluster_tree_env;

struct cluster_before {
	struct cluster_totals totals;
	struct lb_cluster_times times;
};

struct cluster {
	struct strmap_link by_name; // in the set
	uint32_t id;
	uint32_t n_users; // configurations of frontends that route to it; 0 = leaving
	// While it is: the version of the first snapshot that does not route to it.
	uint64_t left_by;
	// Two bits per frontend, of it and of its next one: the cluster could not apply what that
	// one's configuration says of it.
	uint64_t *refused;
	struct cluster_tree *tree; // owned
	// The workers' counters for this id when it was assigned; owned; NULL = all zero.
	struct cluster_before *before;
	char name[];
};

struct cluster_set;

// The env is borrowed and outlives it. Returns NULL if out of memory.
struct cluster_set *cluster_set_new(const struct cluster_tree_env *, uint32_t n_frontends);
void cluster_set_free(struct cluster_set *); // NULL is fine

uint32_t cluster_set_count(const struct cluster_set *);
struct cluster *cluster_set_at(const struct cluster_set *, uint32_t index); // in order of name
// Index of the first one whose name comes after this one.
uint32_t cluster_set_after(const struct cluster_set *, const char *name);
struct cluster *cluster_set_find(const struct cluster_set *, const char *name);
// Finds or makes it. Returns NULL if out of memory or at LB_MAX_CLUSTERS (reterr).
struct cluster *cluster_set_obtain(struct cluster_set *, const char *name, struct lb_err *reterr);
// Frees a cluster without users and its id.
void cluster_set_drop(struct cluster_set *, struct cluster *);
