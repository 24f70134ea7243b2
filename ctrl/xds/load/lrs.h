// SPDX-License-Identifier: Apache-2.0
// Load reports to one xDS server (LRS; gRFC A27, A64, LR-*): a stream of its own, up
// as long as there is a cluster to report on, and reports as often as the server wishes. A state
// machine: time comes from the wheel, messages from the transport.
//
// Counts add up until a report with them has left (on_sent): a stream that breaks before takes
// nothing away, and nothing is sent twice that had left. LRS knows no acknowledgement; what had
// left when the connection broke may be lost, as in gRPC.
// Not here: who counts. Reports have no endpoint granularity, whatever the server asks for, as in
// gRPC.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_node;
struct xds_server_conf;
struct xds_lrs;

struct xds_lrs_conf {
	const struct xds_server_conf *server; // borrowed, as all below
	struct xds_transport_factory transport;
	const struct xds_node *node;
	struct twheel *wheel;
	struct rand *rand; // jitter
	// A report is due: add what was counted since the last time, for each cluster that is held
	// (LR-11). Clusters are neither taken nor put inside.
	void (*harvest)(void *ctx);
	void (*log)(void *ctx, const char *line); // one line for the operator; NULL = silent
	void *ctx;
};

// NULL = out of memory. Nothing is sent before the first cluster.
struct xds_lrs *xds_lrs_new(const struct xds_lrs_conf *);
void xds_lrs_free(struct xds_lrs *); // handles that are left are not to be used any more

// A cluster under one name of its endpoints ("" = none). Counted: the first opens the stream
// (LR-01). NULL = out of memory.
struct xds_load_cluster *xds_lrs_cluster_get(
	struct xds_lrs *, const char *cluster, const char *eds_service);
// What it has counted is still reported once (LR-09). NULL is fine.
void xds_lrs_cluster_put(struct xds_lrs *, struct xds_load_cluster *);

struct xds_load_place { // "" where a field is not set; all of them for LOGICAL_DNS (A27-I10)
	const char *region, *zone, *sub_zone;
};
// A text that no other place has, from malloc. NULL = out of memory.
char *xds_load_place_key(const struct xds_load_place *);
size_t xds_load_place_size(const struct xds_load_place *); // of its texts
// The same, with its texts at `at`, where there is room for them.
struct xds_load_place xds_load_place_copy(const struct xds_load_place *, char *at);
struct xds_load_requests {
	uint64_t issued, ok, error; // since the last time
	uint64_t in_progress; // now; 0 outside harvest()
};
#define XDS_LOAD_MAX_METRICS 64 // named metrics of a locality in one report

// Each adds to what is there, any number of times (one worker after the other), also outside
// harvest(): what goes away adds its last counts. A locality is reported, with zeros if need be,
// as long as each harvest adds to it. 0, or -ENOMEM, and then nothing was added: the caller adds it
// next time.
[[nodiscard]] int xds_load_add_requests(
	struct xds_load_cluster *, const struct xds_load_place *, const struct xds_load_requests *);
// n requests that the category dropped, "" = none (circuit breaker; LR-07).
[[nodiscard]] int xds_load_add_drops(struct xds_load_cluster *, const char *category, uint64_t n);
// LR-10: n requests that ended with the metric, of which the values sum up to total. The names
// cpu_utilization, mem_utilization and application_utilization are those of A85's own fields; named
// metrics are called as the cluster wants them (A64: "k", A85: "named_metrics.k"). -ENOSPC: the
// locality has names enough, a backend makes them up.
[[nodiscard]] int xds_load_add_metric(struct xds_load_cluster *, const struct xds_load_place *,
	const char *name, uint64_t n, double total);

// For operators. Texts are valid until the next call.
struct xds_lrs_info {
	const char *uri;
	enum xds_server_state state;
	const char *error; // why the last stream ended, "" = none; cleared by a response
	uint64_t interval_ns; // 0 = the server has not said yet
	uint32_t n_clusters; // to report on
	uint64_t n_streams, n_responses, n_undecodable;
	uint64_t n_reports; // that have left
	uint64_t n_given_up; // clusters that were gone for so long that their counts were dropped
};
void xds_lrs_info(const struct xds_lrs *, struct xds_lrs_info *ret);
