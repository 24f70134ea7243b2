// SPDX-License-Identifier: Apache-2.0
// The answers of the stats socket's commands (docs/stats.md).
// Thread: ctrl.
#pragma once

#include "ctrl/base/show_port.h"
#include "ctrl/base/slice.h"
#include "ctrl/stats/caller.h"

#include <jansson.h>

#include <stdint.h>
#include <stdio.h>

struct access_log;
struct assembler;
struct capture;
struct certs;
struct credentials;
struct doctor_live;
struct doctor_report;
struct events;
struct config;
struct drains;
struct show_listener;
struct socket_counts;
struct load_report;
struct reloader;
struct show;
struct stats_follow;
struct takeover;
struct trace_exporter;
struct twheel;
struct workers;
struct xds_federation;
struct xds_keeper;

struct show_conf { // all borrowed, outlives it
	struct config *config; // `reload` changes it
	const char *config_path;
	const struct reloader *reloader; // for `reload`
	struct workers *workers;
	struct assembler *assembler;
	const struct xds_federation *xds;
	const struct xds_keeper *keeper; // NULL = nothing is kept of it
	const struct takeover *takeover; // NULL = off
	struct drains *drains; // NULL = nothing drains
	const struct load_report *loads; // NULL = no load reports
	const struct certs *certs; // NULL = none
	const struct credentials *credentials; // likewise
	const struct access_log *access_log; // NULL = none
	struct capture *capture; // NULL = there are none
	const struct trace_exporter *traces; // NULL = nothing is traced
	struct events *events; // NULL = none are kept
	uint64_t (*wall_ns)(void); // since 1970; of certificates
	const struct twheel *wheel;
	// What a frontend's next configuration waits for; "" = nothing. Valid until the next call.
	const char *(*waiting)(void *ctx, uint32_t frontend);
	// Why its newest listener or routes were rejected; "" = they were not. Likewise.
	const char *(*refused)(void *ctx, uint32_t frontend);
	// Tells of each Listener that came by the wildcard (ctrl/listeners.h).
	void (*each_listener)(
		void *ctx, void (*fn)(void *fn_ctx, const struct show_listener *), void *fn_ctx);
	void *ctx;
	const struct show_port *ports; // of the configuration, with their present state
	// What steers frames of a port to their workers: "device", "software", or "none" with one
	// worker; a constant text.
	const char *(*steering)(void *ctx, uint32_t port);
	void *ctx_ports;
	double started_s; // Unix time of the start
	const char *examiner; // the program that examines the host for `doctor`; NULL = none
	struct slice slice; // how much of a long answer is made in a turn
};

struct scrape_conf;
struct show *show_new(const struct show_conf *); // NULL = out of memory
void show_free(struct show *); // NULL is fine
// "starting", "ready", "draining"; a constant text.
void show_set_state(struct show *, const char *state);
// Why the ready file is not as it has to be; NULL = it is. path: NULL = there is none to be. Both
// borrowed until the next call.
void show_set_ready_file(struct show *, const char *path, const char *error);
const char *show_state(const struct show *); // the same; "draining" while any frontend drains
// What metrics are read from; borrowed.
const struct scrape_conf *show_scrape_conf(const struct show *);
// What an examination of this daemon looks at, without its samples; the report is borrowed.
struct doctor_live show_doctor_live(const struct show *, struct doctor_report *);
// What the servers of its answers count; borrowed.
struct socket_counts *show_sockets(struct show *);
struct socket_counts *show_status_port(struct show *); // likewise the status port
// The data of a command that is all there at once, by its words: "show", "failures", "20". NULL =
// there is no such command, what follows it is wrong, or out of memory.
json_t *show_data(const struct show *, char *const *words, unsigned n);
// All commands, for the manual page of shuntctl: a section of help2man's.
void show_print_manual(FILE *);
// A stats_answer_fn (ctrl/stats/stats_server.h); ctx is the show.
char *show_answer(void *ctx, const struct stats_caller *, const char *command,
	struct stats_follow **ret_follow);
