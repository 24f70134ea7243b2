// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/show.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/drains.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/answer.h"
#include "ctrl/stats/host_look.h"
#include "ctrl/stats/inflight_ask.h"
#include "ctrl/stats/listing.h"
#include "ctrl/stats/render.h"
#include "ctrl/stats/row_query.h"
#include "ctrl/stats/show_inside.h"
#include "lb/base/log.h"
#include "lb/base/twheel.h"
#include "lb/base/words.h"
#include "lb/route/route.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Header lists longer than this are cut in lookups for operators: more than a command can hold.
#define MAX_TEXT ((size_t)2 * STATS_MAX_COMMAND)
// Of an unknown command: what is told of it, and of those that begin with its first word.
#define MAX_NAME 128
#define MAX_NEXT 1024

struct command {
	const char *name; // its words
	const char *usage; // what may follow; NULL = nothing
	const char *help;
	json_t *(*build)(const struct show *, struct show_args *);
	const char *const *csv; // columns of the text form
	char *(*text)(json_t *); // the text form; neither = render_text()
	bool has_rows; // conditions choose among them (ctrl/stats/row_query.h)
	struct listing_source *(*list)(
		const struct show *, struct show_args *); // in place of build
};

static bool is_ready(void *ctx)
{
	const struct show *s = ctx;
	for (uint32_t i = 0; i < s->conf.config->n_frontends; i++)
		if (config_serves(s->conf.config, i) && !s->conf.config->frontends[i].is_new &&
			assembler_frontend_error(s->conf.assembler, i)[0])
			return false;
	return strcmp(s->state, "ready") == 0 && !drains_any(s->conf.drains);
}

struct show *show_new(const struct show_conf *conf)
{
	struct show *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->conf = *conf;
	s->state = "starting";
	s->started_ns = twheel_now(conf->wheel);
	s->scrape = (struct scrape_conf){
		.config = conf->config,
		.workers = conf->workers,
		.assembler = conf->assembler,
		.xds = conf->xds,
		.keeper = conf->keeper,
		.drains = conf->drains,
		.wheel = conf->wheel,
		.ports = conf->ports,
		.is_ready = is_ready,
		.ctx = s,
		.started_s = conf->started_s,
		.certs = conf->certs,
		.credentials = conf->credentials,
		.access_log = conf->access_log,
		.traces = conf->traces,
		.wall_ns = conf->wall_ns,
	};
	s->scratch = lb_route_scratch_new(workers_count(conf->workers), MAX_TEXT);
	s->inflight = inflight_desk_new(conf->workers);
	s->ping = calloc(1, sizeof(*s->ping));
	s->host = conf->examiner ? host_look_new(conf->examiner, conf->config_path) : NULL;
	if (s->scratch && s->inflight && s->ping && (s->host || !conf->examiner))
		return s;
	show_free(s);
	return NULL;
}

void show_free(struct show *s)
{
	if (!s)
		return;
	lb_route_scratch_free(s->scratch);
	inflight_desk_free(s->inflight);
	free(s->ping);
	host_look_free(s->host);
	free(s);
}

const struct scrape_conf *show_scrape_conf(const struct show *s)
{
	return &s->scrape;
}

void show_set_ready_file(struct show *s, const char *path, const char *error)
{
	s->ready_file = path;
	s->ready_file_error = error;
}

struct socket_counts *show_sockets(struct show *s)
{
	return &s->sockets;
}

struct socket_counts *show_status_port(struct show *s)
{
	return &s->status_port;
}

void show_set_state(struct show *s, const char *state)
{
	s->state = state;
}

// The commands.

static const struct command commands[] = {
	{"help", NULL, "this list", show_help, NULL, NULL, true},
	{"doctor", NULL, "what is wrong with this daemon and its host, and what mends it",
		show_doctor, NULL, NULL},
	{"show info", NULL, "version, state, frontends, xDS server", show_info, NULL, NULL},
	{"show listeners", NULL,
		"with listeners: wildcard, every socket Listener: state, addresses, chains, why it "
		"does not serve",
		show_listeners, NULL, NULL, true},
	{"show stat", NULL, "frontends, clusters and endpoints with counters, as HAProxy's CSV",
		show_stat, show_stat_columns, NULL, true},
	{"show clusters", NULL, "clusters and their endpoints: state, requests, last error",
		show_clusters, NULL, NULL, true},
	{"show tree", "[CLUSTER]", "how clusters balance: policies, states, priorities, ejections",
		show_tree, NULL, show_tree_text},
	{"show endpoints", "[CLUSTER]",
		"each endpoint: state, health, priority, locality, weights, counters, last error",
		NULL, NULL, NULL, true, show_endpoints},
	{"show load", NULL,
		"workers, frontends and clusters: requests, connections, how busy; in JSON also "
		"times and endings",
		NULL, NULL, NULL, true, show_load},
	{"show overrides", NULL, "what operators have set of endpoints, and whether it is applied",
		show_overrides, NULL, NULL, true},
	{"show http routes", "[--frontend F] [--authority A]",
		"each frontend's routes and actions, as gRFC A28 prints them", show_routes, NULL,
		show_routes_text},
	{"show routes", "[--frontend F] [--authority A]", "the same", show_routes, NULL,
		show_routes_text},
	{"explain",
		"--authority A --path P [-H 'NAME: VALUE']... [--frontend F] [--method M] "
		"[--grpc | --http]",
		"where a request would go, and why", show_explain, NULL, NULL},
	{"show requests",
		"[cluster=C] [frontend=F] [source=ADDRESS[/BITS]] [state=S] [older=SECONDS] "
		"[limit=N]",
		"requests in flight, the oldest first: state, route, endpoint, age, bytes",
		show_requests, NULL, NULL, true},
	{"show conns",
		"[cluster=C] [frontend=F] [source=ADDRESS[/BITS]] [state=S] [older=SECONDS] "
		"[limit=N]",
		"connections of clients and to backends, the oldest first: state, protocol, "
		"streams, bytes, round trip",
		show_conns, NULL, NULL, true},
	{"show tcp", "[cluster=C] [frontend=F] [source=ADDRESS[/BITS]] [older=SECONDS] [limit=N]",
		"the same connections as TCP sees them: state, queues, window, round trip, "
		"timeout, retransmissions",
		show_tcp, NULL, NULL, true},
	{"show failures", "[N] [cause=C] [cause!=C] [cluster=C] [frontend=F]",
		"the last requests that failed, and why", show_failures, NULL, NULL, true},
	{"show errors", "[N] [cause=C] [cause!=C] [cluster=C] [frontend=F]", "the same",
		show_failures, NULL, NULL, true},
	{"why", "ID",
		"all that is known of a request that failed, by its x-request-id: route, "
		"attempts, times, cause",
		show_why, NULL, NULL},
	{"show events", "[N] [-w]",
		"the last changes of endpoints, configuration, certificates, ports; -w: and what "
		"comes from now on",
		show_events, NULL, show_events_text, true},
	{"log", "[N] [-f] [cause=C] [cluster=C] [frontend=F] [path=PREFIX] [status=LEAST]",
		"the last lines of the access log; -f: and what comes from now on", show_log, NULL,
		show_log_text},
	{"show xds", NULL,
		"the xDS server, how many resources are in which state, and every resource: state, "
		"version, age, error",
		show_xds, NULL, NULL, true},
	{"show certs", NULL,
		"certificate providers: version, last error, every certificate with its dates",
		show_certs, NULL, NULL, true},
	{"show metrics", NULL, "what the metrics' port tells, as Prometheus reads it", show_metrics,
		NULL, show_metrics_text},
	{"show workers", NULL, "each worker: load, requests by ending, counters of every layer",
		show_workers, NULL, NULL},
	{"show pools", NULL, "each worker's pools: objects in all, free, in use, most ever in use",
		show_pools, NULL, NULL, true},
	{"show capture", NULL,
		"the packet capture at hand, or the last one: file, frames, drops, why it ended",
		show_capture, NULL, NULL},
	{"show ports", NULL, "each port: device, link, steering, frames of all workers", show_ports,
		NULL, NULL, true},
	{"show addresses", "[address=ADDRESS[/BITS]] [limit=N]",
		"the addresses of ports, vips and listeners, whether they are answered for, and "
		"who else claims one",
		show_addresses, NULL, NULL, true},
	{"show neighbors", "[address=ADDRESS[/BITS]] [limit=N]",
		"each worker's neighbors on its links: port, address, MAC address, state, age",
		show_neighbors, NULL, NULL, true},
	{"show neighbours", "[address=ADDRESS[/BITS]] [limit=N]", "the same", show_neighbors, NULL,
		NULL, true},
	{"complete", "WORD...", "what the last of the words may be, for shells: one a line",
		show_complete, NULL, show_complete_text},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

bool show_usage_at(size_t i, struct show_usage *ret)
{
	if (i < N_COMMANDS) {
		const struct command *c = &commands[i];
		*ret = (struct show_usage){
			c->name, c->usage ? c->usage : "", c->help, STATS_USER, c->has_rows};
		return true;
	}
	const struct show_action *a = show_actions;
	for (i -= N_COMMANDS; i && a->name; i--)
		a++;
	if (!a->name)
		return false;
	*ret = (struct show_usage){
		a->name, a->usage ? a->usage : "", a->help, a->level, a->has_rows};
	return true;
}

// Dispatch.

// How many words the command's name has, if the line starts with it; else 0.
static unsigned words_of(const char *command, const struct show_args *line)
{
	char name[64];
	char *save = NULL;
	unsigned n = 0;
	snprintf(name, sizeof(name), "%s", command);
	for (char *w = strtok_r(name, " ", &save); w; w = strtok_r(NULL, " ", &save), n++)
		if (n == line->n || strcmp(line->words[n], w) != 0)
			return 0;
	return n;
}

// Instead of data: an answer that comes later, what is wrong, or nothing.
static char *no_answer(const struct show_args *args)
{
	if (args->follow)
		return strdup("");
	return args->err.text[0] ? answer_error("%s", args->err.text) : NULL;
}

// Words that no builder has taken, for commands that take none.
static bool has_rest(const char *usage, const struct show_args *args)
{
	return !usage && args->n;
}

static void take_json(struct show_args *args)
{
	if (!args->n || strcmp(args->words[args->n - 1], "json") != 0)
		return;
	args->json = true;
	args->n--;
}

// Some commands have conditions of their own, which their usage names: `[cluster=C]`.
static bool is_own(const char *usage, const char *word)
{
	size_t len = strcspn(word, "=");
	char own[32];
	if (!usage || word[len] != '=' || len + sizeof("[=") > sizeof(own))
		return false;
	snprintf(own, sizeof(own), "[%.*s=", (int)len, word);
	return strstr(usage, own);
}

// Moves conditions from the words, of which `rest` gets the others, to args->query. False =
// args->err, or no memory.
static bool take_conditions(const char *usage, struct show_args *args, char *rest[WORDS_MAX])
{
	unsigned n = 0;
	for (unsigned i = 0; i < args->n; i++) {
		char *word = args->words[i];
		if (!row_query_is_condition(word) || is_own(usage, word)) {
			rest[n++] = word;
			continue;
		}
		if (!args->query)
			args->query = row_query_new();
		if (!args->query || row_query_add(args->query, word, &args->err) != 0)
			return false;
	}
	args->words = rest;
	args->n = n;
	return true;
}

static char *text_of(const struct command *c, const struct show_args *args, json_t *tree)
{
	return args->json ? answer_json(tree)
	       : c->csv   ? render_csv(tree, c->csv)
	       : c->text  ? c->text(tree)
	                  : answer_tree(tree, false, args->human);
}

static char *answer(const struct show *s, const struct command *c, struct show_args *args)
{
	char *rest[WORDS_MAX];
	if (c->has_rows && !take_conditions(c->usage, args, rest))
		return no_answer(args);
	if (!c->usage)
		take_json(args);
	if (has_rest(c->usage, args))
		return answer_error("unexpected argument '%s', try help", args->words[0]);
	if (c->list) {
		struct listing_source *source = c->list(s, args);
		return source ? listing_answer(s, args, source) : no_answer(args);
	}
	json_t *tree = c->build(s, args);
	if (!tree)
		return no_answer(args);
	bool is_chosen = !args->query || row_query_apply(args->query, &tree, &args->err) == 0;
	char *text = is_chosen ? text_of(c, args, tree) : no_answer(args);
	json_decref(tree);
	return text;
}

static char *act(
	const struct show *s, const struct show_action *a, struct show_args *args, const char *line)
{
	if (args->caller->level < a->level) {
		lb_err_set(&args->err,
			"'%s' needs the level %s, and yours is %s (stats.operators and "
			"stats.admins in shunt.yaml say who has which)",
			a->name, stats_level_name(a->level), stats_level_name(args->caller->level));
		return no_answer(args);
	}
	char *rest[WORDS_MAX];
	take_json(args);
	if (a->has_rows && !take_conditions(a->usage, args, rest))
		return no_answer(args);
	if (has_rest(a->usage, args))
		return answer_error("unexpected argument '%s', try help", args->words[0]);
	json_t *tree = a->build(s, args);
	if (a->changes && (tree || args->follow))
		stats_caller_tell(args->caller, line);
	if (!tree)
		return no_answer(args);
	char *text = answer_tree(tree, args->json, args->human);
	json_decref(tree);
	return text;
}

// Takes the command's name, if the words begin with it.
static bool take_name(const char *command, struct show_args *args)
{
	unsigned n = words_of(command, args);
	args->words += n;
	args->n -= n;
	return n > 0;
}

// What follows the word in names of commands, with commas between; "" = none begins with it.
static void list_next(const char *word, char *text, size_t size)
{
	struct show_usage u;
	size_t len = strlen(word), at = 0;
	text[0] = 0;
	for (size_t i = 0; show_usage_at(i, &u) && at < size; i++)
		if (strncmp(u.name, word, len) == 0 && u.name[len] == ' ')
			at += (size_t)snprintf(
				text + at, size - at, "%s%s", at ? ", " : "", u.name + len + 1);
}

// The word that asks for JSON is no part of its name.
static char *unknown(const struct show_args *args, const char *line)
{
	static const char json[] = " json";
	char next[MAX_NEXT], text[MAX_NEXT + 2 * MAX_NAME];
	size_t len = strlen(line), tail = sizeof(json) - 1;
	if (len > tail && strcmp(line + len - tail, json) == 0)
		len -= tail;
	const char *first = args->n ? args->words[0] : "";
	bool is_long = len > MAX_NAME;
	list_next(first, next, sizeof(next));
	snprintf(text, sizeof(text), "unknown command '%.*s%s', %s%s%s",
		is_long ? MAX_NAME : (int)len, line, is_long ? "..." : "",
		next[0] ? first : "try help", next[0] ? " may be followed by " : "", next);
	return answer_error("%s", text);
}

static char *dispatch(const struct show *s, struct show_args *args, const char *line)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (take_name(commands[i].name, args))
			return answer(s, &commands[i], args);
	for (const struct show_action *a = show_actions; a->name; a++)
		if (take_name(a->name, args))
			return act(s, a, args, line);
	return unknown(args, line);
}

json_t *show_data(const struct show *s, char *const *words, unsigned n)
{
	struct show_args args = {.words = words, .n = n};
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (commands[i].build && take_name(commands[i].name, &args))
			return commands[i].usage || !args.n ? commands[i].build(s, &args) : NULL;
	return NULL;
}

// Units for people are asked for in front of the command, as it stands there: they are no part of
// what is done. Returns the command.
static const char *take_human(const char *line, bool *ret_human)
{
	static const char blanks[] = " \t";
	const char *word = line + strspn(line, blanks);
	size_t len = strcspn(word, blanks);
	*ret_human = len == strlen(STATS_HUMAN) && memcmp(word, STATS_HUMAN, len) == 0;
	return *ret_human ? word + len + strspn(word + len, blanks) : line;
}

char *show_answer(void *ctx, const struct stats_caller *caller, const char *line,
	struct stats_follow **ret_follow)
{
	char copy[STATS_MAX_COMMAND + 1];
	struct words words;
	struct show_args args = {.caller = caller};
	line = take_human(line, &args.human);
	snprintf(copy, sizeof(copy), "%s", line);
	const char *wrong = words_split(copy, &words);
	if (wrong)
		return answer_error("%s", wrong);
	args.words = words.list;
	args.n = words.n;
	char *text = dispatch(ctx, &args, line);
	row_query_free(args.query);
	*ret_follow = args.follow;
	return text;
}
