// SPDX-License-Identifier: Apache-2.0
// What a running daemon can tell of itself: the xDS servers, what was refused, frontends, clusters,
// endpoints, links, gateways, workers, pools, certificates, and what has been lost since a sample
// was taken. It is examined in steps, each of which is short.
// Thread: ctrl. It reads counters and lists, as `show` does.
#pragma once

#include "ctrl/doctor/report.h"
#include "lb/base/ip.h"
#include "lb/pick/cause.h"

#include <stdint.h>

struct access_log;
struct assembler;
struct certs;
struct config;
struct counts;
struct show_port;
struct socket_counts;
struct twheel;
struct workers;
struct xds_federation;
struct xds_keeper;

#define DOCTOR_MAX_LOSSES 32

// Counters that only grow, at one moment.
struct doctor_sample {
	uint64_t at_ns; // of the wheel
	uint64_t losses[DOCTOR_MAX_LOSSES];
	uint64_t ended[LB_N_CAUSES];
	uint64_t long_turns;
	uint64_t log_lost;
	uint64_t sockets_cut;
};

#define DOCTOR_N_NAMES 3 // endpoints of a cluster that are named

struct doctor_tally { // of a cluster's endpoints, those that were looked at so far
	uint32_t n, n_reachable; // the latter: connected
	uint32_t n_wrong; // each of them is one of these:
	uint32_t n_unreachable, n_ejected, n_unhealthy;
	char names[DOCTOR_N_NAMES * (IP_PORT_TEXT_MAX + 2)]; // of the first with something wrong
	char error[192]; // of the first that has one
};

// Where a check is that takes more than one step.
struct doctor_walk {
	char *cluster; // owned; NULL = before the first one
	struct doctor_tally tally;
};

struct doctor_live { // borrowed, but for the walk: doctor_live_fini()
	const struct config *config;
	const struct workers *workers;
	const struct assembler *assembler;
	const struct xds_federation *xds;
	const struct xds_keeper *keeper; // NULL = no state is kept
	const struct certs *certs; // NULL = none
	const struct access_log *access_log; // NULL = none
	const struct show_port *ports; // of the configuration
	const struct socket_counts *sockets;
	const struct twheel *wheel;
	int64_t now_s; // since 1970
	// As of show_conf.
	const char *(*waiting)(void *ctx, uint32_t frontend);
	const char *(*refused)(void *ctx, uint32_t frontend);
	void *ctx;
	struct doctor_sample before, now; // before: about a second ago
	struct counts *before_clusters; // of lately; NULL = nobody looked
	struct doctor_report *report;
	uint32_t at; // of the checks
	bool is_begun; // that one
	struct doctor_walk walk;
};

struct doctor_live_check {
	const char *id;
	const char *looks_at; // as docs/doctor.md says it
	enum doctor_severity worst;
	void (*look)(const struct doctor_live *);
	bool (*step)(struct doctor_live *); // in its place; false = that was the last one
};
extern const struct doctor_live_check doctor_live_checks[]; // ended by one without an id

void doctor_live_sample(const struct doctor_live *, struct doctor_sample *ret);
// Notes what clusters have counted, a step a cluster; its walk begins and ends here. False = all
// are noted, as far as there is memory.
bool doctor_live_note_step(struct doctor_live *, struct counts *to);
// A check, or a part of one, once both samples are taken. False = all are done.
bool doctor_live_step(struct doctor_live *);
void doctor_live_fini(struct doctor_live *); // zeroed is fine

// Those of live_traffic.c.
void live_check_gateway(const struct doctor_live *);
void live_check_worker(const struct doctor_live *);
void live_check_pools(const struct doctor_live *);
void live_check_losses(const struct doctor_live *);
void live_check_endings(const struct doctor_live *);
void live_check_log(const struct doctor_live *);
void live_check_reopening(const struct doctor_live *);
void live_check_socket(const struct doctor_live *);

// Those of live_clusters.c.
bool live_step_clusters(struct doctor_live *);
bool live_step_endpoints(struct doctor_live *);
bool live_step_answers(struct doctor_live *);
void doctor_walk_fini(struct doctor_walk *); // and to begin anew
