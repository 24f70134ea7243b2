// SPDX-License-Identifier: Apache-2.0
// What one scrape has noted, for its files: scrape.c takes steps, scrape_note.c notes,
// scrape_tell.c tells one sample, and scrape_{requests,vhosts,balancing,process,certs}.c tell of
// what.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/assemble.h"
#include "ctrl/metrics/scrape.h"
#include "ctrl/metrics/xds_note.h"
#include "lb/pick/link.h"

struct scrape_endpoint {
	uint32_t cluster; // index
	char *leaf; // owned: the cluster itself, or a leaf of the aggregate
	char address[IP_PORT_TEXT_MAX];
	bool is_up, is_ejected, is_unhealthy;
	uint64_t connections, issued, failed;
};

struct scrape_cluster {
	char *name; // owned
	bool is_up;
	uint32_t n_endpoints, n_ready, n_failing, n_ejected, n_unhealthy, in_flight, max_requests;
	struct lb_leaf_counts counts;
	uint64_t connections;
	struct cluster_totals totals;
	struct lb_bodies bodies;
	uint64_t answers[LB_N_ANSWERS];
	struct lb_cluster_times *times; // owned; NULL = histograms are not told
};

struct scrape {
	struct scrape_conf conf;
	struct metric_sink *sink;
	bool endpoints_only, clusters_only;
	char **names; // owned: the clusters that are asked for, sorted
	uint32_t n_names;
	int (*step)(struct scrape *);
	// Notes.
	struct scrape_cluster *clusters; // owned
	uint32_t n_clusters, room;
	struct scrape_endpoint *endpoints; // owned
	uint32_t n_endpoints, endpoint_room;
	struct xds_note *xds; // owned; NULL = not noted yet
	uint32_t n_clusters_left_out, n_endpoints_left_out;
	struct lb_frontend_times frontend; // of the one being told
	// Where telling stands.
	uint32_t family, at;
};

int scrape_note_step(struct scrape *); // as scrape_step(): of notes alone
void scrape_note_free(struct scrape *);

#define LABELS(...) ((const char *const[]){__VA_ARGS__})
// A sample of the scrape's sink. Values of labels follow their names of the list, in order.
void scrape_tell(struct scrape *, enum metric_id, double value, const char *const *labels);
// label: value of the only label but "le".
void scrape_tell_histogram(
	struct scrape *, enum metric_id, const struct histogram *, const char *label);
void scrape_tell_answers(struct scrape *, enum metric_id, const uint64_t answers[LB_N_ANSWERS],
	const char *label, bool with_zeros);

// What metrics are told over, and how many there are of it now.
uint32_t scrape_over_once(const struct scrape *);
uint32_t scrape_over_frontends(const struct scrape *);
uint32_t scrape_over_clusters(const struct scrape *);
uint32_t scrape_over_endpoints(const struct scrape *);
uint32_t scrape_over_workers(const struct scrape *);
uint32_t scrape_over_ports(const struct scrape *);

// A metric and what tells it of the i-th thing.
struct scrape_family {
	enum metric_id id;
	uint32_t (*over)(const struct scrape *);
	void (*tell)(struct scrape *, enum metric_id, uint32_t i);
};
extern const struct scrape_family scrape_requests[]; // of frontends, clusters, endpoints
extern const uint32_t scrape_n_requests;
extern const struct scrape_family scrape_vhosts[];
extern const uint32_t scrape_n_vhosts;
extern const struct scrape_family scrape_balancing[]; // of clusters: how they balance
extern const uint32_t scrape_n_balancing;
extern const struct scrape_family scrape_process[]; // of the process and its xDS servers
extern const uint32_t scrape_n_process;
extern const struct scrape_family scrape_certs[];
extern const uint32_t scrape_n_certs;
