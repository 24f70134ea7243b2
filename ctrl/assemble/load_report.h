// SPDX-License-Identifier: Apache-2.0
// Load reports (LRS; LR-*): assigns the numbers of the workers' counters (lb_link.loads) for
// localities, drop categories and circuit breakers, and adds up what workers counted before each
// report. A counter that is no longer used is read until its last request has ended (LR-09), and
// rests before it is reused. ctrl/xds/load/lrs.h has the stream and the reports.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/load/lrs.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_drop_category;
struct lb_event;
struct lb_loads;
struct lb_metrics;
struct load_leaf;
struct load_report;
struct rand;
struct twheel;
struct workers;
struct xds_bootstrap;
struct xds_server_conf;

struct load_report_conf { // all borrowed, outlive it
	const struct xds_bootstrap *bootstrap;
	struct xds_transport_factory transport;
	const struct workers *workers;
	struct twheel *wheel;
	struct rand *rand; // jitter
	uint32_t max_counters; // 0 = LB_MAX_LOADS
	const char *user_agent_version; // "0.1.0"
	void (*log)(void *ctx, const char *line); // one log line; may be NULL
	void *log_ctx;
};

// Returns NULL if out of memory. Sends nothing before the first leaf.
struct load_report *load_report_new(const struct load_report_conf *);
void load_report_free(struct load_report *); // after its leaves are freed; NULL is fine
// The process ends and nobody counts any more: the last reports leave (LR-12). True = nothing is
// waited for; until then it is to be called again.
bool load_report_finish(struct load_report *);
// Handles LB_EVENT_METRIC.
void load_report_event(struct load_report *, const struct lb_event *);

// The counters of one leaf cluster whose resource wants reports (res_cluster.reports_load); several
// with the same names add up. server: the sender of that resource (FE-09), an entry of the
// bootstrap that outlives this; servers are compared by address, as the xDS client uses one object
// for each distinct server (FE-07). eds_service: "" = none. Returns NULL if out of memory.
struct load_leaf *load_leaf_new(struct load_report *, const struct xds_server_conf *server,
	const char *cluster, const char *eds_service);
// No picker uses it any more; the counts of its last requests are still reported (LR-09). NULL is
// fine.
void load_leaf_free(struct load_leaf *);

// Sets res_cluster.metrics: which values of backends' reports are forwarded (A85). Returns 0, or
// -ENOMEM with nothing changed.
[[nodiscard]] int load_leaf_set_metrics(struct load_leaf *, const char *const *metrics, uint32_t n);
// For lb_leaf_config.metrics: the same object as long as the set is unchanged. Borrowed until the
// next call and free().
struct lb_metrics *load_leaf_metrics(const struct load_leaf *);

// An update of the leaf requests all counters anew between begin() and end(); end() releases those
// that were not requested. If the update fails, do not call end(): the old counters stay.
void load_leaf_begin(struct load_leaf *);
// For lb_leaf_config.locality_loads: the same number as long as the locality stays, in any
// priority. "" for unset fields; all "" for LOGICAL_DNS. 0 = not counted: out of memory, or all
// numbers are in use (logged).
uint32_t load_leaf_locality(
	struct load_leaf *, const char *region, const char *zone, const char *sub_zone);
// For lb_leaf_config.loads: the same object as long as the category names are unchanged. Borrowed
// until the next call and free(). NULL = out of memory: drops are not counted.
struct lb_loads *load_leaf_drops(struct load_leaf *, const struct lb_drop_category *, uint32_t n);
void load_leaf_end(struct load_leaf *);

// For display.
struct load_report_info {
	// The stream to the first server that has clusters, or else the first; the numbers cover
	// all. Texts are valid until the next call.
	struct xds_lrs_info stream;
	uint32_t n_counters; // in use
	uint32_t n_leaving; // of these, those that wait for their last requests
	uint64_t n_refused; // requests for a counter that failed: none left, or out of memory
	uint64_t n_stray_metrics; // values that came too late, or that fit no report
};
void load_report_info(const struct load_report *, struct load_report_info *ret);
