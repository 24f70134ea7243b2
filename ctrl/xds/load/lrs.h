// SPDX-License-Identifier: Apache-2.0
// Load reports to one xDS server (LRS; gRFC A27, A64, LR-*): a stream of its own, open as long as
// there is a cluster to report on, with reports at the interval that the server asks for. A state
// machine: time comes from the wheel, messages from the transport.
// Counts are kept until a report with them was sent (on_sent): a stream that breaks earlier loses
// nothing, and nothing is sent twice. LRS has no acknowledgement; what was sent when the connection
// broke may be lost, as in gRPC. Reports have no endpoint granularity, even if the server asks for
// it, as in gRPC. Counting is the caller's.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_node;
struct xds_server_conf;
struct xds_lrs;

struct xds_lrs_conf {
	const struct xds_server_conf *server; // borrowed, like all below
	struct xds_transport_factory transport;
	const struct xds_node *node;
	struct twheel *wheel;
	struct rand *rand; // jitter
	// A report is due: add what was counted since the last call, for each cluster held (LR-11).
	// Must not get or put clusters.
	void (*harvest)(void *ctx);
	void (*log)(void *ctx, const char *line); // one log line; may be NULL
	void *ctx;
};

// Returns NULL if out of memory. Sends nothing before the first cluster.
struct xds_lrs *xds_lrs_new(const struct xds_lrs_conf *);
void xds_lrs_free(struct xds_lrs *); // remaining handles become invalid
// The process ends (LR-12): with the first call what was counted is reported at once, and after
// that nothing more. True = nothing is waited for: the server has ended the stream, and so has read
// all; or a second has passed, or there is no stream, and what it was not told is logged.
bool xds_lrs_finish(struct xds_lrs *);

// Gets a cluster with one EDS service name ("" = none). Counted: the first one opens the stream
// (LR-01). Returns NULL if out of memory.
struct xds_load_cluster *xds_lrs_cluster_get(
	struct xds_lrs *, const char *cluster, const char *eds_service);
// Its counts are still reported once (LR-09). NULL is fine.
void xds_lrs_cluster_put(struct xds_lrs *, struct xds_load_cluster *);

struct xds_load_place { // "" for unset fields; all "" for LOGICAL_DNS (A27-I10)
	const char *region, *zone, *sub_zone;
};
// A text that is unique for each place, from malloc. NULL = out of memory.
char *xds_load_place_key(const struct xds_load_place *);
size_t xds_load_place_size(const struct xds_load_place *); // of its texts
// Returns a copy with its texts at `at`, which has room for them.
struct xds_load_place xds_load_place_copy(const struct xds_load_place *, char *at);
struct xds_load_requests {
	uint64_t issued, ok, error; // since the last call
	uint64_t in_progress; // now; 0 outside harvest()
};
#define XDS_LOAD_MAX_METRICS 64 // named metrics of a locality in one report

// Each adds to the present counts, any number of times (such as once per worker), also outside
// harvest(): an object that is removed adds its last counts. A locality is reported, perhaps with
// zeros, as long as each harvest adds to it. Returns 0, or -ENOMEM with nothing added: the caller
// adds it next time.
[[nodiscard]] int xds_load_add_requests(
	struct xds_load_cluster *, const struct xds_load_place *, const struct xds_load_requests *);
// n requests that the category dropped, "" = none (circuit breaker; LR-07).
[[nodiscard]] int xds_load_add_drops(struct xds_load_cluster *, const char *category, uint64_t n);
// LR-10: n requests that ended with the metric, whose values sum up to total. cpu_utilization,
// mem_utilization and application_utilization are A85's own fields; named metrics have the name
// that the cluster asks for (A64: "k", A85: "named_metrics.k"). -ENOSPC: the locality has too many
// names, since a backend can invent them.
[[nodiscard]] int xds_load_add_metric(struct xds_load_cluster *, const struct xds_load_place *,
	const char *name, uint64_t n, double total);

// For display. Texts are valid until the next call.
struct xds_lrs_info {
	const char *uri;
	enum xds_server_state state;
	const char *error; // why the last stream ended; "" = none; a response clears it
	uint64_t interval_ns; // 0 = the server has not sent it yet
	uint32_t n_clusters; // to report on
	uint64_t n_streams, n_responses, n_undecodable;
	uint64_t n_reports; // sent
	uint64_t n_given_up; // removed clusters whose counts were dropped after a long time
};
void xds_lrs_info(const struct xds_lrs *, struct xds_lrs_info *ret);
