// SPDX-License-Identifier: Apache-2.0
// Where the workers' counts for load reports come from and go to (LRS; LR-*): it hands
// out the numbers of the counters (lb_link.loads) that localities, categories of drops and circuit
// breakers are counted under, and before each report adds what the workers counted meanwhile. A
// counter that nobody needs any more is read until its last request has ended (LR-09) and rests
// before it gets another meaning. Not here: the stream and what is on its way
// (ctrl/xds/load/lrs.h).
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

struct load_report_conf { // all borrowed, outlives it
	const struct xds_bootstrap *bootstrap;
	struct xds_transport_factory transport;
	const struct workers *workers;
	struct twheel *wheel;
	struct rand *rand; // jitter
	uint32_t max_counters; // 0 = LB_MAX_LOADS
	const char *user_agent_version; // "0.1.0"
	void (*log)(void *ctx, const char *line); // one line for the operator; NULL = silent
	void *log_ctx;
};

// NULL = out of memory. Nothing is sent before the first leaf.
struct load_report *load_report_new(const struct load_report_conf *);
void load_report_free(struct load_report *); // its leaves were freed before; NULL is fine
// A LB_EVENT_METRIC.
void load_report_event(struct load_report *, const struct lb_event *);

// What one leaf cluster counts under: one for each cluster whose resource wants reports
// (res_cluster.reports_load), several for the same names add up. server: who sent that resource
// (FE-09), one of the bootstrap's that stays; equal ones are told apart, as the xDS client names
// each distinct one by one object (FE-07). eds_service: "" = none. NULL = out of memory.
struct load_leaf *load_leaf_new(struct load_report *, const struct xds_server_conf *server,
	const char *cluster, const char *eds_service);
// Nobody picks by it any more; what its requests count until they end is still reported (LR-09).
// NULL is fine.
void load_leaf_free(struct load_leaf *);

// res_cluster.metrics: which values of backends' reports are sent on (A85). 0, or -ENOMEM: as
// before.
[[nodiscard]] int load_leaf_set_metrics(struct load_leaf *, const char *const *metrics, uint32_t n);
// For lb_leaf_config.metrics: the same object as long as these stay. Borrowed until the next call
// and free().
struct lb_metrics *load_leaf_metrics(const struct load_leaf *);

// An update of the leaf asks for all counters anew between begin() and end(); those that were not
// asked for are given up at end(). Is the update given up itself, then there is no end(): what the
// old state counts under stays.
void load_leaf_begin(struct load_leaf *);
// For lb_leaf_config.locality_loads: the same number as long as the locality stays, in whatever
// priority. "" where a field is not set; all of them for LOGICAL_DNS. 0 = not counted: out of
// memory, or all are in use (logged).
uint32_t load_leaf_locality(
	struct load_leaf *, const char *region, const char *zone, const char *sub_zone);
// For lb_leaf_config.loads: the same object as long as the names of the categories stay. Borrowed
// until the next call and free(). NULL = out of memory: drops are not counted.
struct lb_loads *load_leaf_drops(struct load_leaf *, const struct lb_drop_category *, uint32_t n);
void load_leaf_end(struct load_leaf *);

// For operators.
struct load_report_info {
	// To the first server that has clusters, else to the first; the numbers are of all. Texts
	// are valid until the next call.
	struct xds_lrs_info stream;
	uint32_t n_counters; // in use
	uint32_t n_leaving; // of these: nobody needs them any more but for their last requests
	uint64_t n_refused; // counters asked for when there was none left, or out of memory
	uint64_t n_stray_metrics; // values that came too late, or that no report can carry
};
void load_report_info(const struct load_report *, struct load_report_info *ret);
