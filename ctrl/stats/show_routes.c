// SPDX-License-Identifier: Apache-2.0
// `show routes`: the configuration that serves, as the appendix of gRFC A28 prints a service
// config: an action map and a route list for each virtual host. Names of actions are one space for
// a frontend.
#include "ctrl/assemble/actions.h"
#include "ctrl/assemble/assemble.h"
#include "ctrl/base/printout.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_terms.h"
#include "ctrl/deps/config.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/stats/render.h"
#include "ctrl/stats/route_json.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *child_policy(const char *name, json_t *config)
{
	return json_pack("[{so}]", name, config);
}

static json_t *cds_policy(const char *cluster)
{
	json_t *config = json_object();
	show_set_text(config, "cluster", cluster);
	return child_policy("cds_experimental", config);
}

static json_t *action_json(const struct action *a)
{
	if (a->n_targets == 1)
		return json_pack("{so}", "childPolicy", cds_policy(a->targets[0].cluster));
	json_t *targets = json_object();
	for (uint32_t i = 0; i < a->n_targets; i++) {
		json_t *target = json_object();
		show_set_u64(target, "weight", a->targets[i].weight);
		json_object_set_new(target, "childPolicy", cds_policy(a->targets[i].cluster));
		json_t *key = render_string(a->targets[i].cluster); // in UTF-8, as keys must be
		json_object_set_new(targets, json_string_value(key), target);
		json_decref(key);
	}
	json_t *config = json_pack("{so}", "targets", targets);
	return json_pack(
		"{so}", "childPolicy", child_policy("weighted_target_experimental", config));
}

static json_t *route_json(
	const struct assembler_routes *of, uint32_t vhost, uint32_t index, json_t *actions)
{
	const struct res_route *r = &of->config->routes->vhosts[vhost].routes[index];
	int64_t at = actions_of(of->actions, vhost, index);
	json_t *o = json_object();
	route_json_matchers(o, r);
	if (at < 0) { // matches, and the request fails (gRFC A36)
		json_object_set_new(o, "action", json_null());
	} else {
		const struct action *a = actions_at(of->actions, (uint32_t)at);
		json_t *name = render_string(a->name);
		if (!json_object_get(actions, json_string_value(name)))
			json_object_set_new(actions, json_string_value(name), action_json(a));
		json_object_set_new(o, "action", name);
	}
	if (*r->name)
		show_set_text(o, "name", r->name);
	show_set_u64(o, "index", r->index);
	json_t *policy =
		route_json_policy(r->policy, xds_res_is_trusted(&of->config->routes->base));
	if (policy)
		json_object_set_new(o, "policy", policy);
	return o;
}

static json_t *ignored_json(const struct res_vhost *v)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < v->n_ignored; i++) {
		json_t *row = json_object();
		show_set_u64(row, "index", v->ignored[i].index);
		show_set_text(row, "name", v->ignored[i].name);
		show_set_text(row, "reason", v->ignored[i].reason);
		json_array_append_new(list, row);
	}
	return list;
}

static json_t *vhost_json(const struct assembler_routes *of, uint32_t index)
{
	const struct res_vhost *v = &of->config->routes->vhosts[index];
	json_t *o = json_object(), *domains = json_array();
	json_t *actions = json_object(), *routes = json_array();
	for (uint32_t i = 0; i < v->n_domains; i++)
		json_array_append_new(domains, render_string(v->domains[i]));
	for (uint32_t i = 0; i < v->n_routes; i++)
		json_array_append_new(routes, route_json(of, index, i, actions));
	show_set_text(o, "name", v->name);
	json_object_set_new(o, "domains", domains);
	json_object_set_new(o, "ignored_routes", ignored_json(v));
	if (v->overrides.n)
		json_object_set_new(
			o, "filters", route_json_filters(v->overrides.list, v->overrides.n));
	json_object_set_new(o, "loadBalancingConfig",
		json_pack("[{s{so so}}]", "xds_routing_experimental", "Action", actions, "Route",
			routes));
	return o;
}

// What of the configuration is asked for: thousands of virtual hosts take the loop's time.
struct wanted {
	const char *frontend, *authority; // NULL = all
};

static int read_words(struct wanted *w, struct show_args *args)
{
	const struct {
		const char *name;
		const char **to;
	} options[] = {{"--frontend", &w->frontend}, {"--authority", &w->authority}};
	for (unsigned i = 0; i < args->n; i++) {
		if (strcmp(args->words[i], "json") == 0) {
			args->json = true;
			continue;
		}
		size_t k = strcmp(args->words[i], options[0].name) != 0;
		if (strcmp(args->words[i], options[k].name) != 0)
			return lb_err_set(
				&args->err, "unexpected argument '%s', try help", args->words[i]);
		if (*options[k].to)
			return lb_err_set(&args->err, "%s is given twice", options[k].name);
		if (++i == args->n)
			return lb_err_set(&args->err, "%s needs a value", options[k].name);
		*options[k].to = args->words[i];
	}
	return 0;
}

// From its first virtual host to before *ret_end: all that serve, or the one of the authority.
static uint32_t vhosts_wanted(
	const struct assembler_routes *of, const char *authority, uint32_t *ret_end)
{
	int only = of->config->vhost;
	*ret_end = of->config->routes->n_vhosts;
	if (only < 0 && !authority)
		return 0;
	if (only < 0)
		only = res_route_config_choose(of->config->routes, authority);
	*ret_end = only < 0 ? 0 : (uint32_t)only + 1;
	return only < 0 ? 0 : (uint32_t)only;
}

static json_t *frontend_json(const struct show *s, uint32_t index, const char *authority)
{
	const struct config_frontend *f = &s->conf.config->frontends[index];
	struct assembler_routes of;
	char text[32];
	json_t *o = json_object();
	show_set_text(o, "frontend", f->name);
	show_set_text(o, "target", f->target ? f->target : f->listener ? f->listener : "");
	if (!assembler_frontend_routes(s->conf.assembler, index, &of)) {
		show_set_text(o, "error", assembler_frontend_error(s->conf.assembler, index));
		return o;
	}
	show_set_text(o, "routes", of.config->routes->base.name);
	const struct lb_listener_timeouts *timeouts = &of.filters->timeouts;
	show_set_text(o, "max_stream_duration", route_text_duration(timeouts->max_ns, text));
	uint64_t idle_ns = timeouts->idle_ns[0];
	if (!idle_ns)
		idle_ns = config_terms(s->conf.config).stream_idle_ns;
	show_set_text(o, "idle_timeout", route_text_duration(idle_ns, text));
	show_set_text(o, "idle_timeout_grpc", route_text_duration(timeouts->idle_ns[1], text));
	json_object_set_new(o, "filters",
		route_json_filters(of.config->listener->filters, of.config->listener->n_filters));
	json_t *vhosts = json_array();
	uint32_t end;
	for (uint32_t i = vhosts_wanted(&of, authority, &end); i < end; i++)
		json_array_append_new(vhosts, vhost_json(&of, i));
	json_object_set_new(o, "virtual_hosts", vhosts);
	return o;
}

json_t *show_routes(const struct show *s, struct show_args *args)
{
	struct wanted w = {0};
	const struct config *c = s->conf.config;
	if (read_words(&w, args))
		return NULL;
	int only = w.frontend ? config_find_frontend(c, w.frontend, &args->err) : -1;
	if (w.frontend && only < 0)
		return NULL;
	json_t *frontends = json_array();
	for (uint32_t i = 0; frontends && i < c->n_frontends; i++)
		if (config_serves(c, i) && (only < 0 || i == (uint32_t)only))
			json_array_append_new(frontends, frontend_json(s, i, w.authority));
	return frontends;
}

// Text.

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static void print_action(FILE *out, const char *name, const json_t *action)
{
	const json_t *policy = json_array_get(json_object_get(action, "childPolicy"), 0);
	json_t *targets =
		json_object_get(json_object_get(policy, "weighted_target_experimental"), "targets");
	const char *cluster;
	json_t *target;
	const char *before = ": ";
	fputs("      ", out);
	render_print(out, name);
	json_object_foreach(targets, cluster, target)
	{
		fputs(before, out);
		render_print(out, cluster);
		fprintf(out, " %" JSON_INTEGER_FORMAT,
			json_integer_value(json_object_get(target, "weight")));
		before = ", ";
	}
	fputc('\n', out);
}

static void print_route(FILE *out, const json_t *route)
{
	const char *action = json_string_value(json_object_get(route, "action"));
	fprintf(out, "      %" JSON_INTEGER_FORMAT " ",
		json_integer_value(json_object_get(route, "index")));
	char *matchers = route_text_matchers(route);
	render_print(out, matchers ? matchers : "?");
	free(matchers);
	fputs(" -> ", out);
	render_print(out, action ? action : "fails, its action is not supported");
	if (*text_of(route, "name")) {
		fputs(" (", out);
		render_print(out, text_of(route, "name"));
		fputc(')', out);
	}
	fputc('\n', out);
	json_t *policy = json_object_get(route, "policy");
	char *line = policy ? json_dumps(policy, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	if (line) {
		fputs("          ", out);
		render_print(out, line);
		fputc('\n', out);
	}
	free(line);
}

static void print_filters(FILE *out, const json_t *filters, const char *indent)
{
	size_t i;
	const json_t *filter;
	json_array_foreach(filters, i, filter)
	{
		char *line = json_dumps(filter, JSON_COMPACT);
		fprintf(out, "%sfilter ", indent);
		render_print(out, line ? line : "?");
		fputc('\n', out);
		free(line);
	}
}

static void print_vhost(FILE *out, json_t *vhost)
{
	size_t i;
	const char *name;
	json_t *value;
	json_t *config =
		json_object_get(json_array_get(json_object_get(vhost, "loadBalancingConfig"), 0),
			"xds_routing_experimental");
	fputs("  virtual host ", out);
	render_print(out, text_of(vhost, "name"));
	fputc(':', out);
	json_array_foreach(json_object_get(vhost, "domains"), i, value)
	{
		fputs(i ? ", " : " ", out);
		render_print(out, json_string_value(value));
	}
	fputc('\n', out);
	print_filters(out, json_object_get(vhost, "filters"), "    ");
	fputs("    actions\n", out);
	json_object_foreach(json_object_get(config, "Action"), name, value)
		print_action(out, name, value);
	fputs("    routes\n", out);
	json_array_foreach(json_object_get(config, "Route"), i, value) print_route(out, value);
	json_t *ignored = json_object_get(vhost, "ignored_routes");
	if (json_array_size(ignored))
		fprintf(out, "    ignored routes: %zu\n", json_array_size(ignored));
	json_array_foreach(ignored, i, value)
	{
		fprintf(out, "      %" JSON_INTEGER_FORMAT " ",
			json_integer_value(json_object_get(value, "index")));
		render_print(out, text_of(value, "reason"));
		fputc('\n', out);
	}
}

char *show_routes_text(json_t *frontends)
{
	size_t i, k;
	json_t *frontend, *vhost;
	struct printout p;
	FILE *out = printout_begin(&p);
	if (!out)
		return NULL;
	json_array_foreach(frontends, i, frontend)
	{
		bool serves = json_object_get(frontend, "routes");
		fputs("frontend ", out);
		render_print(out, text_of(frontend, "frontend"));
		fputs(serves ? ": routes " : ": no routes: ", out);
		render_print(out, text_of(frontend, serves ? "routes" : "error"));
		fputc('\n', out);
		print_filters(out, json_object_get(frontend, "filters"), "  ");
		json_array_foreach(json_object_get(frontend, "virtual_hosts"), k, vhost)
			print_vhost(out, vhost);
	}
	return printout_end(&p);
}
