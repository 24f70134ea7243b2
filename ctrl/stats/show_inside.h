// SPDX-License-Identifier: Apache-2.0
// The commands of the stats socket, for show.c, which dispatches, and for the files with one or two
// commands each: show_*.c and explain.c; and what they tell of, for haproxy*.c. Private to them.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/drains.h"
#include "ctrl/base/socket_counts.h"
#include "ctrl/metrics/scrape.h"
#include "ctrl/stats/caller.h"
#include "ctrl/stats/show.h"
#include "lb/base/err.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct host_look;
struct inflight_desk;
struct lb_route_scratch;
struct listing_source;
struct ping_wait;
struct row_query;
struct stats_follow;

struct ping_desk {
	const struct ping_wait *owner; // whose answer the worker's is; NULL = nobody waits
};

struct show {
	struct show_conf conf;
	const char *state;
	uint64_t started_ns;
	struct scrape_conf scrape;
	struct lb_route_scratch *scratch; // owned; of lookups on ctrl
	struct inflight_desk *inflight; // owned; who asks the workers
	struct ping_desk *ping; // owned
	struct host_look *host; // owned; NULL = the host is not examined
	struct socket_counts sockets, status_port;
	const char *ready_file, *ready_file_error; // as show_set_ready_file() has them
};

// The arguments of a command.
struct show_args {
	char *const *words;
	unsigned n;
	const struct stats_caller *caller;
	bool json; // JSON is wanted; a builder may find the word itself
	bool human; // numbers with units
	// Conditions of rows; NULL = none. Owned; who answers later takes it, and leaves NULL.
	struct row_query *query;
	// A builder's, of what is to come; NULL = nothing is. Without data the answer is that
	// alone.
	struct stats_follow *follow;
	struct lb_err err; // a builder's error in the arguments; "" = out of memory
};

// A command that does something: most change what the daemon does, and need a level for it.
struct show_action {
	const char *name; // its words
	const char *usage; // what may follow; NULL = nothing
	const char *help;
	enum stats_level level; // that a caller needs at least
	bool changes; // something: who did it is told in the log, and so by `show events`
	json_t *(*build)(const struct show *, struct show_args *); // as of other commands
	bool has_rows; // conditions choose among what it is done to
};
extern const struct show_action show_actions[]; // ended by one without a name

// Builds the data of one command; NULL = see args->err.
json_t *show_info(const struct show *, struct show_args *);
json_t *show_workers(const struct show *, struct show_args *);
json_t *show_listeners(const struct show *, struct show_args *);
json_t *show_stat(const struct show *, struct show_args *);
json_t *show_clusters(const struct show *, struct show_args *);
json_t *show_tree(const struct show *, struct show_args *);
json_t *show_routes(const struct show *, struct show_args *);
json_t *show_pools(const struct show *, struct show_args *);
json_t *show_ports(const struct show *, struct show_args *);
json_t *show_failures(const struct show *, struct show_args *);
json_t *show_events(const struct show *, struct show_args *);
json_t *show_log(const struct show *, struct show_args *);
json_t *show_why(const struct show *, struct show_args *);
json_t *show_requests(const struct show *, struct show_args *);
json_t *show_conns(const struct show *, struct show_args *);
json_t *show_tcp(const struct show *, struct show_args *);
json_t *show_xds(const struct show *, struct show_args *);
json_t *show_certs(const struct show *, struct show_args *);
json_t *show_metrics(const struct show *, struct show_args *);
json_t *show_explain(const struct show *, struct show_args *);
json_t *show_reconnect(const struct show *, struct show_args *);
json_t *show_drain(const struct show *, struct show_args *);
json_t *show_undrain(const struct show *, struct show_args *);
json_t *show_wait(const struct show *, struct show_args *);
json_t *show_set_endpoint(const struct show *, struct show_args *);
json_t *show_unset_endpoint(const struct show *, struct show_args *);
json_t *show_overrides(const struct show *, struct show_args *);
json_t *show_clear_counters(const struct show *, struct show_args *);
json_t *show_set_log_level(const struct show *, struct show_args *);
json_t *show_neighbors(const struct show *, struct show_args *);
json_t *show_addresses(const struct show *, struct show_args *);
json_t *show_ping(const struct show *, struct show_args *);
json_t *show_kill_request(const struct show *, struct show_args *);
json_t *show_kill_conn(const struct show *, struct show_args *);
json_t *show_capture(const struct show *, struct show_args *);
json_t *show_capture_start(const struct show *, struct show_args *);
json_t *show_capture_stop(const struct show *, struct show_args *);
json_t *show_doctor(const struct show *, struct show_args *);
json_t *show_reload(const struct show *, struct show_args *);

// Rows for listing_answer(); likewise.
struct listing_source *show_endpoints(const struct show *, struct show_args *);
struct listing_source *show_load(const struct show *, struct show_args *);

// Seconds since a time of a worker's, whose clock may be ahead of the loop's.
double show_age_s(const struct show *, uint64_t at_ns);
// How long maxima are kept: since the start, or `clear counters`.
json_t *show_maxima_s(const struct show *);

// A line of `help`.
struct show_usage {
	const char *name, *usage, *help; // usage: "" = nothing may follow
	enum stats_level level; // that it needs
	bool has_rows; // conditions may follow (ctrl/stats/row_query.h)
};
// Any of all commands. False = there are not so many.
bool show_usage_at(size_t i, struct show_usage *ret);
json_t *show_help(const struct show *, struct show_args *);
json_t *show_complete(const struct show *, struct show_args *);

// Whether words[at] says what an earlier one has said, of words[first], words[first + step] and so
// on: KEY=VALUE the KEY, a number a number, another word itself. Then args->err names it, since
// only one of both could count.
bool show_comes_twice(struct show_args *, unsigned first, unsigned step, unsigned at);

// Whether a cause has this name; of_ok is that of LB_CAUSE_OK here. Else args->err lists all names.
bool show_is_cause(struct show_args *, const char *name, const char *of_ok);

// For `[CLUSTER] [json]`. False = args->err says what is wrong.
bool show_cluster_word(const struct show *, struct show_args *, const char **ret_cluster);

// What becomes of a frontend of shunt.yaml, and what an operator does with it.
struct show_frontend_state {
	const char *name; // "serving", "failing", "down", or the phase of its drain
	const char *error; // why it does not serve; "" = it does
	struct drain_info drain;
	char down[256]; // why it is unreachable; "" = it is not
};
void show_frontend_state(const struct show *, uint32_t frontend, struct show_frontend_state *ret);

// Why the frontend is unreachable: the port with its address is down. "" = it is up.
const char *show_frontend_down(const struct show *, uint32_t frontend, char *text, size_t size);

extern const char *const show_stat_columns[]; // of its CSV
char *show_routes_text(json_t *); // from malloc; NULL = out of memory
char *show_tree_text(json_t *); // likewise
char *show_events_text(json_t *); // likewise
char *show_log_text(json_t *); // likewise
char *show_metrics_text(json_t *); // likewise
char *show_complete_text(json_t *); // likewise
