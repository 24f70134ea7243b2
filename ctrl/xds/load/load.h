// SPDX-License-Identifier: Apache-2.0
// The counts for load reports, by cluster, locality, category and metric; each count has two parts:
// unsent, and being sent. Private to lrs.c and lrs_wire.c; others use lrs.h.
// Thread: ctrl.
#pragma once

#include "ctrl/base/strmap.h"
#include "ctrl/xds/load/lrs.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

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
	struct xds_load_locality *next; // in order of addition
	struct xds_load_count issued, ok, error;
	uint64_t in_progress;
	bool present; // the last harvest added to it
	struct xds_load_metric *metrics;
	struct xds_load_place place;
	char texts[]; // key and place
};

struct xds_load_cluster {
	struct strmap_link link; // by key
	TAILQ_ENTRY(xds_load_cluster) order;
	uint32_t n_refs; // 0 = removed, but not reported yet
	char *key, *name, *service;
	struct xds_load_locality *localities, **localities_end;
	// The locality last added to: each harvest asks for all of them in the same order.
	struct xds_load_locality *here; // NULL = none
	struct strmap by_place;
	struct xds_load_drop *drops;
	uint64_t since_ns; // start of the unsent counts
	uint64_t taken_ns; // sending: end of the counts being sent
	bool sending; // part of the report under way
	bool leaving; // likewise, of its message under way
};

struct xds_load {
	struct strmap by_key;
	TAILQ_HEAD(xds_load_clusters, xds_load_cluster) clusters; // in order of addition
	uint32_t n, n_gone;
};

// Finds or makes it, without a reference. Returns NULL if out of memory.
struct xds_load_cluster *xds_load_cluster_add(
	struct xds_load *, const char *name, const char *service, uint64_t now_ns);
void xds_load_cluster_remove(struct xds_load *, struct xds_load_cluster *);
void xds_load_init(struct xds_load *);
void xds_load_fini(struct xds_load *);

void xds_load_begin_harvest(struct xds_load *);

enum xds_load_move {
	XDS_LOAD_TAKE, // move counts into a report
	XDS_LOAD_GIVE_BACK, // the report was not sent
	XDS_LOAD_DONE, // the report was sent
	XDS_LOAD_FORGET, // drop unsent counts that nobody asks for
};
void xds_load_move(struct xds_load_cluster *, enum xds_load_move);

// True if the report under way has nothing for it.
bool xds_load_is_zero(const struct xds_load_cluster *);
// Frees what was removed and has been reported.
void xds_load_tidy(struct xds_load_cluster *);
// True if no counts are unreported.
bool xds_load_is_told(const struct xds_load_cluster *);
// Requests whose end, or drop, is unreported.
uint64_t xds_load_n_untold(const struct xds_load *);
