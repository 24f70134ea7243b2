// SPDX-License-Identifier: Apache-2.0
// One reading of all metrics, in small steps: first what clusters, endpoints and resources are like
// is noted, then each metric is told over these notes, so that the samples of one stand together.
// Between steps clusters may come and go.
// Thread: ctrl.
#pragma once

#include "ctrl/metrics/metric.h"

#include <stdbool.h>
#include <stdint.h>

struct access_log;
struct assembler;
struct certs;
struct config;
struct credentials;
struct drains;
struct scrape;
struct show_port;
struct trace_exporter;
struct twheel;
struct workers;
struct xds_federation;
struct xds_keeper;

// Bounds of one reading (OPS-11); what is above is counted in shunt_metrics_left_out. Clusters have
// one of LB_MAX_CLUSTERS, frontends one of LB_MAX_FRONTENDS.
#define SCRAPE_MAX_CLUSTER_TIMES 512 // clusters with histograms, those with the lowest ids
#define SCRAPE_MAX_FRONTEND_TIMES 128 // the first frontends that serve
#define SCRAPE_MAX_VHOST_TIMES 512 // virtual hosts with the lowest numbers
#define SCRAPE_MAX_ENDPOINTS 20000
#define SCRAPE_MAX_NAMES 64 // clusters that one asks for

struct scrape_conf { // all borrowed, outlives the scrapes
	const struct config *config;
	const struct workers *workers;
	const struct assembler *assembler;
	const struct xds_federation *xds; // NULL = its metrics are not told
	const struct xds_keeper *keeper; // NULL = nothing is kept of it
	const struct drains *drains; // NULL = nothing drains
	const struct certs *certs; // NULL = none
	const struct credentials *credentials; // likewise
	const struct access_log *access_log; // NULL = none
	const struct trace_exporter *traces; // likewise
	const struct twheel *wheel;
	const struct show_port *ports; // of the configuration, with their present state
	// Whether the daemon serves and does not drain.
	bool (*is_ready)(void *ctx);
	void *ctx;
	double started_s; // Unix time of the start
	uint64_t (*wall_ns)(void); // since 1970
};

struct scrape_ask {
	// Endpoints are told, and nothing else.
	bool endpoints;
	// Clusters that are told, with their histograms whatever their ids, and nothing else; each
	// at most once. n = 0: all.
	const char *names[SCRAPE_MAX_NAMES];
	uint32_t n_names;
};

// The names are copied. NULL = out of memory.
struct scrape *scrape_new(
	const struct scrape_conf *, const struct scrape_ask *, struct metric_sink *);
void scrape_free(struct scrape *); // NULL is fine
// Does a step. 1: there is more to do; 0: all is told; -ENOMEM.
[[nodiscard]] int scrape_step(struct scrape *);
