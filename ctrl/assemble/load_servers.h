// SPDX-License-Identifier: Apache-2.0
// The servers that load reports go to: each has a stream from its first use on, and is idle while
// it has no clusters. There are not more of them than servers in the bootstrap.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/bootstrap/node.h"
#include "ctrl/xds/load/lrs.h"

struct load_report_conf;
struct load_server;

struct load_servers {
	const struct load_report_conf *conf; // borrowed
	struct xds_node node;
	struct load_server *first; // in order of first use
	// A report to this one is due: what was counted for it is to be added. ctx is the caller's.
	void (*harvest)(void *ctx, const struct load_server *);
	void *ctx;
};

struct load_server {
	struct load_server *next;
	struct load_servers *all;
	const struct xds_server_conf *conf;
	struct xds_lrs *lrs;
};

// conf, harvest and ctx are set. 0 or -ENOMEM; then fini() is due nevertheless.
[[nodiscard]] int load_servers_init(struct load_servers *);
void load_servers_fini(struct load_servers *);
// Finds or makes. NULL = out of memory.
struct load_server *load_servers_obtain(struct load_servers *, const struct xds_server_conf *);
// Of the first that has clusters, else of the first; the numbers are of all. Texts are valid until
// the next call.
void load_servers_info(const struct load_servers *, struct xds_lrs_info *ret);
