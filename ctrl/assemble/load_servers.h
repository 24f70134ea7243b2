// SPDX-License-Identifier: Apache-2.0
// The servers that get load reports: each has a stream from its first use on, which is idle while
// it has no clusters. Their number is bounded by the bootstrap's servers.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/bootstrap/node.h"
#include "ctrl/xds/load/lrs.h"

#include <stdbool.h>

struct load_report_conf;
struct load_server;

struct load_servers {
	const struct load_report_conf *conf; // borrowed
	struct xds_node node;
	struct load_server *first; // in order of first use
	// A report to this server is due: adds the latest counts. ctx is the caller's.
	void (*harvest)(void *ctx, const struct load_server *);
	void *ctx;
};

struct load_server {
	struct load_server *next;
	struct load_servers *all;
	const struct xds_server_conf *conf;
	struct xds_lrs *lrs;
};

// Call with conf, harvest and ctx set. Returns 0 or -ENOMEM; call fini() either way.
[[nodiscard]] int load_servers_init(struct load_servers *);
void load_servers_fini(struct load_servers *);
// As xds_lrs_finish(), of all.
bool load_servers_finish(struct load_servers *);
// Finds or makes it. Returns NULL if out of memory.
struct load_server *load_servers_obtain(struct load_servers *, const struct xds_server_conf *);
// Of the first server that has clusters, or else the first; the numbers cover all. Texts are valid
// until the next call.
void load_servers_info(const struct load_servers *, struct xds_lrs_info *ret);
