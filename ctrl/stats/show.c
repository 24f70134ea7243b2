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
#include "ctrl/stats/render.h"
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

struct command {
	const char *name; // its words
	const char *usage; // what may follow; NULL = nothing
	const char *help;
	json_t *(*build)(const struct show *, struct show_args *);
	const char *const *csv; // columns of the text form
	char *(*text)(json_t *); // the text form; neither = render_text()
};

static bool is_ready(void *ctx)
{
	const struct show *s = ctx;
	for (uint32_t i = 0; i < s->conf.config->n_frontends; i++)
		if (assembler_frontend_error(s->conf.assembler, i)[0])
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
		.wall_ns = conf->wall_ns,
	};
	s->scratch = lb_route_scratch_new(workers_count(conf->workers), MAX_TEXT);
	s->inflight = inflight_desk_new(conf->workers);
	s->host = conf->examiner ? host_look_new(conf->examiner, conf->config_path) : NULL;
	if (s->scratch && s->inflight && (s->host || !conf->examiner))
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
	host_look_free(s->host);
	free(s);
}

const struct scrape_conf *show_scrape_conf(const struct show *s)
{
	return &s->scrape;
}

void show_set_state(struct show *s, const char *state)
{
	s->state = state;
}

// help and dispatch

static json_t *build_help(const struct show *, struct show_args *);

static const struct command commands[] = {
	{"help", NULL, "this list", build_help, NULL, NULL},
	{"doctor", NULL, "what is wrong with this daemon and its host, and what mends it",
		show_doctor, NULL, NULL},
	{"show info", NULL, "version, state, frontends, xDS server", show_info, NULL, NULL},
	{"show listeners", NULL,
		"with listeners: wildcard, every socket Listener: state, addresses, chains, why it "
		"does not serve",
		show_listeners, NULL, NULL},
	{"show stat", NULL, "frontends, clusters and endpoints with counters, as HAProxy's CSV",
		show_stat, show_stat_columns, NULL},
	{"show clusters", NULL, "clusters and their endpoints: state, requests, last error",
		show_clusters, NULL, NULL},
	{"show tree", "[CLUSTER]", "how clusters balance: policies, states, priorities, ejections",
		show_tree, NULL, show_tree_text},
	{"show endpoints", "[CLUSTER]",
		"each endpoint: state, health, priority, locality, weights, counters, last error",
		show_endpoints, NULL, NULL},
	{"show overrides", NULL, "what operators have set of endpoints, and whether it is applied",
		show_overrides, NULL, NULL},
	{"show routes", "[--frontend F] [--authority A]",
		"each frontend's routes and actions, as gRFC A28 prints them", show_routes, NULL,
		show_routes_text},
	{"explain",
		"--authority A --path P [-H 'NAME: VALUE']... [--frontend F] [--method M] "
		"[--grpc | --http]",
		"where a request would go, and why", show_explain, NULL, NULL},
	{"show requests",
		"[cluster=C] [frontend=F] [source=ADDRESS[/BITS]] [state=S] [older=SECONDS] "
		"[limit=N]",
		"requests in flight, the oldest first: state, route, endpoint, age, bytes",
		show_requests, NULL, NULL},
	{"show conns",
		"[cluster=C] [frontend=F] [source=ADDRESS[/BITS]] [state=S] [older=SECONDS] "
		"[limit=N]",
		"connections of clients and to backends, the oldest first: state, protocol, "
		"streams, bytes, round trip",
		show_conns, NULL, NULL},
	{"show failures", "[N] [cause=C] [cluster=C] [frontend=F]",
		"the last requests that shuntd answered or cut itself, and why", show_failures,
		NULL, NULL},
	{"show errors", "[N] [cause=C] [cluster=C] [frontend=F]", "the same", show_failures, NULL,
		NULL},
	{"why", "ID",
		"all that is known of a request that failed, by its x-request-id: route, "
		"attempts, times, cause",
		show_why, NULL, NULL},
	{"show events", "[N] [-w]",
		"the last changes of endpoints, configuration, certificates, ports; -w: and what "
		"comes from now on",
		show_events, NULL, show_events_text},
	{"log", "[N] [-f] [cause=C] [cluster=C] [frontend=F] [path=PREFIX] [status=LEAST]",
		"the last lines of the access log; -f: and what comes from now on", show_log, NULL,
		show_log_text},
	{"show xds", NULL,
		"the xDS server, how many resources are in which state, and every resource: state, "
		"version, age, error",
		show_xds, NULL, NULL},
	{"show certs", NULL,
		"certificate providers: version, last error, every certificate with its dates",
		show_certs, NULL, NULL},
	{"show metrics", NULL, "what the metrics' port tells, as Prometheus reads it", show_metrics,
		NULL, show_metrics_text},
	{"show workers", NULL, "each worker: load, requests by ending, counters of every layer",
		show_workers, NULL, NULL},
	{"show pools", NULL, "each worker's pools: objects in all, free, in use, most ever in use",
		show_pools, NULL, NULL},
	{"show capture", NULL,
		"the packet capture at hand, or the last one: file, frames, drops, why it ended",
		show_capture, NULL, NULL},
	{"show ports", NULL, "each port: device, link, steering, frames of all workers", show_ports,
		NULL, NULL},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void add_help(
	json_t *rows, const char *name, const char *usage, const char *help, enum stats_level level)
{
	char text[256];
	snprintf(text, sizeof(text), "%s%s%s", help, usage ? ": " : "", usage ? usage : "");
	json_array_append_new(rows, json_pack("{ss ss ss}", "command", name, "level",
					    stats_level_name(level), "help", text));
}

static json_t *build_help(const struct show *s, struct show_args *args)
{
	json_t *rows = json_array();
	for (size_t i = 0; rows && i < N_COMMANDS; i++)
		add_help(rows, commands[i].name, commands[i].usage, commands[i].help, STATS_USER);
	for (const struct show_action *a = show_actions; rows && a->name; a++)
		add_help(rows, a->name, a->usage, a->help, a->level);
	return rows;
}

// How many words the command's name has, if the line starts with it; else 0.
static unsigned words_of(const char *command, const struct words *line)
{
	char name[64];
	char *save = NULL;
	unsigned n = 0;
	snprintf(name, sizeof(name), "%s", command);
	for (char *w = strtok_r(name, " ", &save); w; w = strtok_r(NULL, " ", &save), n++)
		if (n == line->n || strcmp(line->list[n], w) != 0)
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

static char *answer(const struct show *s, const struct command *c, struct show_args *args)
{
	if (!c->usage)
		take_json(args);
	if (has_rest(c->usage, args))
		return answer_error("unexpected argument '%s', try help", args->words[0]);
	json_t *tree = c->build(s, args);
	if (!tree)
		return no_answer(args);
	char *text = args->json ? answer_json(tree)
	             : c->csv   ? render_csv(tree, c->csv)
	             : c->text  ? c->text(tree)
	                        : answer_tree(tree, false);
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
	take_json(args);
	if (has_rest(a->usage, args))
		return answer_error("unexpected argument '%s', try help", args->words[0]);
	json_t *tree = a->build(s, args);
	if (a->changes && (tree || args->follow))
		stats_caller_tell(args->caller, line);
	if (!tree)
		return no_answer(args);
	char *text = answer_tree(tree, args->json);
	json_decref(tree);
	return text;
}

static char *dispatch(
	const struct show *s, const struct words *words, struct show_args *args, const char *line)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		unsigned n = words_of(commands[i].name, words);
		if (!n)
			continue;
		args->words = words->list + n;
		args->n = words->n - n;
		return answer(s, &commands[i], args);
	}
	for (const struct show_action *a = show_actions; a->name; a++) {
		unsigned n = words_of(a->name, words);
		if (!n)
			continue;
		args->words = words->list + n;
		args->n = words->n - n;
		return act(s, a, args, line);
	}
	return answer_error("unknown command '%s', try help", line);
}

char *show_answer(void *ctx, const struct stats_caller *caller, const char *line,
	struct stats_follow **ret_follow)
{
	char copy[STATS_MAX_COMMAND + 1];
	struct words words;
	struct show_args args = {.caller = caller};
	snprintf(copy, sizeof(copy), "%s", line);
	const char *wrong = words_split(copy, &words);
	if (wrong)
		return answer_error("%s", wrong);
	char *text = dispatch(ctx, &words, &args, line);
	*ret_follow = args.follow;
	return text;
}
