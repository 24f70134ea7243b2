// SPDX-License-Identifier: Apache-2.0
// What has been counted for load reports, by cluster, locality, category and metric, each count in
// two halves: not sent yet, and on its way. lrs.c's and lrs_wire.c's; others use lrs.h.
// Thread: ctrl.
#pragma once

#include "ctrl/base/strmap.h"
#include "ctrl/xds/load/lrs.h"

#include <stdbool.h>
#include <stdint.h>

struct xds_load_count {
	uint64_t unsent, sending;
};

struct xds_load_drop {
	struct xds_load_drop *next;
	struct xds_load_count n;
	char category[];
};

struct xds_load_metric {
	struct xds_load_metric *next;
	struct xds_load_count n;
	double unsent_total, sending_total;
	char name[];
};

struct xds_load_locality {
	struct strmap_link link; // by key
	struct xds_load_locality *next; // in order of coming
	struct xds_load_count issued, ok, error;
	uint64_t in_progress;
	bool present; // the last harvest added to it
	struct xds_load_metric *metrics;
	struct xds_load_place place;
	char texts[]; // key and place
};

struct xds_load_cluster {
	struct strmap_link link; // by key
	struct xds_load_cluster *next, *prev; // in order of coming
	uint32_t n_refs; // 0 = gone, but not reported yet
	char *key, *name, *service;
	struct xds_load_locality *localities, **localities_end;
	// The one that was added to last: harvests ask for all in the same order each time.
	struct xds_load_locality *here; // NULL = none
	struct strmap by_place;
	struct xds_load_drop *drops;
	uint64_t since_ns; // what is not sent was counted since then
	uint64_t taken_ns; // sending: until then
	bool sending; // a report with it is on its way
};

struct xds_load {
	struct strmap by_key;
	struct xds_load_cluster *first, *last;
	uint32_t n, n_gone;
};

// Finds or makes; not referenced yet. NULL = out of memory.
struct xds_load_cluster *xds_load_cluster_add(
	struct xds_load *, const char *name, const char *service, uint64_t now_ns);
void xds_load_cluster_remove(struct xds_load *, struct xds_load_cluster *);
void xds_load_fini(struct xds_load *);

void xds_load_begin_harvest(struct xds_load *);

enum xds_load_move {
	XDS_LOAD_TAKE, // into a report
	XDS_LOAD_GIVE_BACK, // the report did not leave
	XDS_LOAD_DONE, // the report left
	XDS_LOAD_FORGET, // what is not sent, nobody asks for
};
void xds_load_move(struct xds_load_cluster *, enum xds_load_move);

// Nothing to tell in the report under way.
bool xds_load_is_zero(const struct xds_load_cluster *);
// Drops what is not there any more and has been told.
void xds_load_tidy(struct xds_load_cluster *);
// Nothing was counted that has not been told.
bool xds_load_is_told(const struct xds_load_cluster *);
