// SPDX-License-Identifier: Apache-2.0
// What a look has noted, for its files: look.c takes steps, note.c notes, and
// write_{top,traffic,recent,xds,machine}.c write one part of the page each.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/overrides.h"
#include "ctrl/doctor/counts.h"
#include "ctrl/doctor/live.h"
#include "ctrl/metrics/xds_note.h"
#include "ctrl/page/html.h"
#include "ctrl/page/look.h"
#include "ctrl/page/worst.h"
#include "ctrl/stats/load_walk.h"
#include "lb/base/ip.h"

#include <stdio.h>

struct look_past {
	uint64_t at_ns;
	struct counts counts[LOAD_N_KINDS];
	struct doctor_sample sample;
};

// A worker, a frontend or a cluster.
struct look_load {
	int badness; // 0 = all is well
	char *name; // owned, as the error
	char *error;
	const char *state;
	uint32_t number, n_endpoints, n_ready, n_failing;
	uint64_t active, queued, connections, n_clients, n_failed, n_bad;
	double busy_share, requests_s, failed_s; // rates: -1 = not known yet
};

struct look_endpoint {
	int badness;
	char *cluster, *error, *check; // owned; check: of its health, "" = it is not checked
	char address[IP_PORT_TEXT_MAX];
	char override[OVERRIDE_TEXT_MAX];
	const char *state;
	bool is_ejected, is_unhealthy, is_failing;
	uint64_t ejected_ns, active, requests, failed, connections;
};

struct look_resource {
	int badness;
	char *name, *error; // owned
	const char *type, *state;
	bool serves;
	uint64_t at_ns; // of the error, else of the value; 0 = never
};

struct look {
	const struct show *show;
	const struct scrape_conf *from;
	char *cluster; // owned; NULL = all
	int (*step)(struct look *);
	uint32_t at; // of the parts of the page
	struct load_walk *walk; // owned
	struct look_past *before; // borrowed; NULL = none
	struct look_past *past; // owned
	struct worst loads[LOAD_N_KINDS], endpoints, resources;
	uint64_t n_bad[LOAD_N_KINDS]; // with a badness
	double requests_s, failed_s; // of all frontends; -1 = not known yet
	uint64_t n_active; // likewise
	bool is_known; // the cluster, if only one is asked for
	struct xds_note *xds; // owned
	struct doctor_report report;
	struct doctor_live live;
	bool failed; // out of memory
	FILE *out; // owned, to text
	char *text, *title; // owned
	size_t len;
};

// From malloc, else NULL, and look->failed.
char *look_copy(struct look *, const char *text);
// By the wheel; -1 for 0.
double look_age_s(const struct look *, uint64_t ns);

bool look_note_init(struct look *); // false = out of memory
void look_note_fini(struct look *);
extern const struct load_reader look_load_reader; // its ctx is the look
void look_note_resources(struct look *);

// The parts of the page, in order.
void look_write_top(struct look *);
void look_write_findings(struct look *);
void look_write_frontends(struct look *);
void look_write_clusters(struct look *);
void look_write_endpoints(struct look *);
void look_write_failures(struct look *);
void look_write_failed_answers(struct look *);
void look_write_events(struct look *);
void look_write_servers(struct look *);
void look_write_resources(struct look *);
void look_write_workers(struct look *);
void look_write_pools(struct look *);
void look_write_certificates(struct look *);
void look_write_end(struct look *);

// Shared by them: "<section …><h2>", and a line of how many rows are left out.
void look_section_begin(struct look *, const char *id, const char *title);
void look_section_end(struct look *, uint64_t n_left_out, const char *more);
// A table of an array of columns.
#define LOOK_TABLE(t, l, caption, columns)                                                         \
	html_table_begin(t, (l)->out, caption, columns, sizeof(columns) / sizeof((columns)[0]))
// A paragraph in place of a table.
void look_note(struct look *, const char *text);
