// SPDX-License-Identifier: Apache-2.0
// One pass of the dependency manager: everything that a listener reaches, by value or by name
// (DM-*), and whether that is enough for a configuration. Not what becomes of it. Part
// of the manager.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct depmgr;
struct node;
struct nodes;
struct res_route_config;
struct xds_config;

enum walk_outcome {
	WALK_WAITING, // something has neither a value nor an error yet
	WALK_FAILED, // no usable listener or routes
	WALK_OUT_OF_MEMORY, // out of memory: the last configuration stays in use
	WALK_COMPLETE,
};

// A cluster with subscribers.
struct depmgr_sub {
	struct depmgr_sub *next;
	struct depmgr *dm;
	uint32_t n_refs;
	char name[];
};

// The input.
struct walk {
	struct nodes *nodes;
	struct node *listener; // in nodes
	const char *authority; // NULL = not pinned
	const struct depmgr_sub *subs;
	bool (*in_use)(void *ctx, const char *cluster); // as depmgr_conf has it
	void *ctx;
	const struct xds_config *serves; // the configuration in use; NULL = none
};

struct walk_found {
	enum walk_outcome outcome; // never mind what is not resolved yet
	struct node *route_node; // in nodes; NULL = inline, or not known yet
	struct res_route_config *routes; // COMPLETE: borrowed from the nodes
	int32_t vhost; // COMPLETE: -1 = not pinned
	uint32_t n_held; // clusters that only requests need
	bool keeps; // clusters of the configuration in use that the next one does not need
	char *error; // FAILED: owned; NULL = out of memory
};

// Watches what is reached, and unwatches everything else; each node knows whether the configuration
// waits for it. found: the last walk's result, {0} before the first; it is replaced.
void walk(const struct walk *, struct walk_found *found);
