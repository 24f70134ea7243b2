// SPDX-License-Identifier: Apache-2.0
// What a running daemon can tell of itself: the xDS servers, what was refused, frontends, links,
// gateways, workers, pools, certificates, and what has been lost since a sample was taken.
// Thread: ctrl. It reads counters and lists, as `show` does.
#pragma once

#include "ctrl/doctor/report.h"
#include "lb/pick/cause.h"

#include <stdint.h>

struct access_log;
struct assembler;
struct certs;
struct config;
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

struct doctor_live { // all borrowed
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
	struct doctor_report *report;
};

struct doctor_live_check {
	const char *id;
	const char *looks_at; // as docs/doctor.md says it
	enum doctor_severity worst;
	void (*look)(const struct doctor_live *);
};
extern const struct doctor_live_check doctor_live_checks[]; // ended by one without an id

void doctor_live_sample(const struct doctor_live *, struct doctor_sample *ret);
// Runs all checks, once both samples are taken.
void doctor_live_examine(const struct doctor_live *);

// Those of live_traffic.c.
void live_check_gateway(const struct doctor_live *);
void live_check_worker(const struct doctor_live *);
void live_check_pools(const struct doctor_live *);
void live_check_losses(const struct doctor_live *);
void live_check_endings(const struct doctor_live *);
void live_check_log(const struct doctor_live *);
void live_check_reopening(const struct doctor_live *);
void live_check_socket(const struct doctor_live *);
