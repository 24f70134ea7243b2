// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/deps/deps_fixture.h"

#include "ctrl/dns/names.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/federation.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_update(void *ctx, struct xds_config *config)
{
	struct deps_fixture *f = ctx;
	f->config = config;
	f->n_updates++;
}

static void on_error(void *ctx, const char *text)
{
	struct deps_fixture *f = ctx;
	f->config = NULL;
	f->n_errors++;
	snprintf(f->error, sizeof(f->error), "%s", text);
}

static bool in_use(void *ctx, const char *cluster)
{
	const struct deps_fixture *f = ctx;
	char needle[80];
	snprintf(needle, sizeof(needle), " %s ", cluster);
	return f->in_use && strstr(f->in_use, needle);
}

static struct depmgr_conf conf_of(const struct deps_fixture *f, struct deps_fixture *hears)
{
	return (struct depmgr_conf){
		.client = f->client,
		.wheel = f->wheel,
		.listener_name = "web",
		.node_id = "me",
		.on_update = on_update,
		.on_error = on_error,
		.in_use = in_use,
		.ctx = hears,
	};
}

struct depmgr *deps_start(
	const struct deps_fixture *f, struct deps_fixture *hears, const char *authority, bool dns)
{
	struct depmgr_conf conf = conf_of(f, hears);
	conf.dns = dns ? f->resolver : NULL;
	conf.authority = authority;
	struct depmgr *dm = depmgr_new(&conf);
	assert_non_null(dm);
	return dm;
}

struct depmgr *deps_start_with(
	const struct deps_fixture *f, struct deps_fixture *hears, struct res_listener *l)
{
	struct depmgr_conf conf = conf_of(f, hears);
	conf.listener = l;
	struct depmgr *dm = depmgr_new(&conf);
	assert_non_null(dm);
	return dm;
}

void deps_init(struct deps_fixture *f, const char *features, const char *authority)
{
	*f = (struct deps_fixture){.now_ns = 1000 * S};
	char *json;
	assert_true(asprintf(&json,
			    "{\"xds_servers\":[{\"server_uri\":\"ads:1\",\"channel_creds\":"
			    "[{\"type\":\"insecure\"}],\"server_features\":[%s]}],"
			    "\"node\":{\"id\":\"me\"}}",
			    features) > 0);
	struct lb_err err;
	assert_int_equal(xds_bootstrap_parse(json, strlen(json), "test", &f->bootstrap, &err), 0);
	free(json);
	f->wheel = twheel_new(f->now_ns);
	rand_init(&f->rand, 1);
	f->client = xds_federation_new(&(struct xds_client_conf){
		.bootstrap = f->bootstrap,
		.types = res_types,
		.n_types = RES_N_TYPES,
		.transport = fake_ads_factory(&f->server),
		.wheel = f->wheel,
		.rand = &f->rand,
		.user_agent_version = "0",
	});
	fake_lookups_init(&f->name_servers);
	f->resolver = dns_names_new(&(struct dns_names_conf){
		.wheel = f->wheel, .rand = &f->rand, .lookups = &f->name_servers.base});
	assert_non_null(f->resolver);
	f->dm = deps_start(f, f, authority, true);
	deps_pass_time(f, 1);
}

// The server has nothing more to say, so that no event helps.
size_t deps_starve_each(struct deps_fixture *f, const char *authority)
{
	char expected[2048];
	size_t nth = 0;
	snprintf(expected, sizeof(expected), "%s", look(f));
	f->n_updates = 0;
	for (bool hit = true; hit; nth++) {
		struct deps_fixture second = {.config = NULL};
		second.dm = deps_start(f, &second, authority, true);
		f->now_ns += 2000000;
		alloc_fail_arm(nth);
		twheel_advance(f->wheel, f->now_ns); // the pass
		hit = alloc_fail_disarm();
		if (!hit)
			assert_int_equal(second.n_updates, 1);
		deps_pass_time(f, 2 * S);
		assert_int_equal(second.n_updates, 1);
		assert_int_equal(second.n_errors, 0);
		assert_string_equal(look(&second), expected);
		depmgr_free(second.dm);
	}
	assert_int_equal(f->n_updates, 0); // the first one did not notice
	return nth;
}

void deps_fini(struct deps_fixture *f)
{
	depmgr_free(f->dm);
	f->resolver->ops->free(f->resolver);
	fake_lookups_fini(&f->name_servers);
	xds_federation_free(f->client);
	fake_ads_fini(&f->server);
	twheel_free(f->wheel);
	xds_bootstrap_free(f->bootstrap);
	for (unsigned i = 0; i < f->n_held; i++)
		free(f->held[i].bytes);
}

static unsigned type_index(const struct xds_type *type)
{
	unsigned t = 0;
	while (res_types[t] != type)
		t++;
	return t;
}

// Reads what the client asked for since the last time.
static void read_requests(struct deps_fixture *f)
{
	const Envoy__Service__Discovery__V3__DiscoveryRequest *r;
	while ((r = fake_ads_next(&f->server))) {
		for (unsigned t = 0; t < RES_N_TYPES; t++) {
			if (strcmp(res_types[t]->url, r->type_url) != 0)
				continue;
			strcpy(f->asked[t], " ");
			for (size_t i = 0; i < r->n_resource_names; i++) {
				strcat(f->asked[t], r->resource_names[i]);
				strcat(f->asked[t], " ");
			}
		}
	}
}

void deps_pass_time(struct deps_fixture *f, uint64_t ns)
{
	f->now_ns += ns + NS_PER_MS;
	twheel_advance(f->wheel, f->now_ns);
	read_requests(f);
}

void drop(struct deps_fixture *f, const struct xds_type *type, const char *name)
{
	for (unsigned i = 0; i < f->n_held; i++) {
		struct held *h = &f->held[i];
		if (h->type != type || strcmp(h->name, name) != 0)
			continue;
		free(h->bytes);
		*h = f->held[--f->n_held];
		return;
	}
}

void hold(struct deps_fixture *f, const struct xds_type *type, const char *name, const char *json)
{
	drop(f, type, name);
	assert_true(f->n_held < DEPS_MAX_HELD);
	struct held *h = &f->held[f->n_held++];
	h->type = type;
	snprintf(h->name, sizeof(h->name), "%s", name);
	h->bytes = res_bytes_from_json(type, json, &h->len);
}

#define HCM                                                                                        \
	"'@type':'type.googleapis.com/"                                                            \
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'"
#define ROUTER                                                                                     \
	"'httpFilters':[{'name':'router','typedConfig':{'@type':"                                  \
	"'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}]"

void hold_listener(struct deps_fixture *f, const char *routes)
{
	char json[1024];
	snprintf(json, sizeof(json),
		"{'name':'web','apiListener':{'apiListener':{" HCM ",'rds':{'configSource':"
		"{'ads':{}},'routeConfigName':'%s'}," ROUTER "}}}",
		routes);
	hold(f, &res_type_listener, "web", json);
}

void hold_cluster(struct deps_fixture *f, const char *name, const char *endpoints)
{
	char json[512];
	snprintf(json, sizeof(json),
		"{'name':'%s','type':'EDS','edsClusterConfig':"
		"{'edsConfig':{'ads':{}},'serviceName':'%s'}}",
		name, endpoints);
	hold(f, &res_type_cluster, name, json);
}

void hold_endpoint(struct deps_fixture *f, const char *name, int n)
{
	char json[512];
	snprintf(json, sizeof(json),
		"{'clusterName':'%s','endpoints':[{'locality':{},'loadBalancingWeight':1,"
		"'lbEndpoints':[{'endpoint':{'address':{'socketAddress':"
		"{'address':'10.0.0.%d','portValue':80}}}}]}]}",
		name, n);
	hold(f, &res_type_endpoints, name, json);
}

void hold_leaf(struct deps_fixture *f, const char *name, int n)
{
	hold_cluster(f, name, name);
	hold_endpoint(f, name, n);
}

void hold_aggregate(struct deps_fixture *f, const char *name, const char *children)
{
	char json[2048], list[1024], *rest = list;
	int len = snprintf(json, sizeof(json),
		"{'name':'%s','lbPolicy':'CLUSTER_PROVIDED','clusterType':{'name':'x',"
		"'typedConfig':{'@type':'type.googleapis.com/envoy.extensions.clusters.aggregate."
		"v3.ClusterConfig','clusters':[",
		name);
	snprintf(list, sizeof(list), "%s", children);
	for (char *child; (child = strtok_r(rest, " ", &rest));)
		len += snprintf(json + len, sizeof(json) - (size_t)len, "%s'%s'",
			child == list ? "" : ",", child);
	snprintf(json + len, sizeof(json) - (size_t)len, "]}}}");
	hold(f, &res_type_cluster, name, json);
}

void hold_name(struct deps_fixture *f, const char *name, const char *host)
{
	char json[1024];
	snprintf(json, sizeof(json),
		"{'name':'%s','type':'LOGICAL_DNS','loadAssignment':{'endpoints':[{'lbEndpoints':["
		"{'endpoint':{'address':{'socketAddress':{'address':'%s','portValue':80}}}}]}]}}",
		name, host);
	hold(f, &res_type_cluster, name, json);
}

void hold_routes(struct deps_fixture *f, const char *name, const char *cluster, ...)
{
	char json[2048];
	int len = snprintf(json, sizeof(json),
		"{'name':'%s','virtualHosts':[{'name':'v','domains':['*'],'routes':[", name);
	const char *between = "";
	va_list args;
	va_start(args, cluster);
	for (const char *c = cluster; c; c = va_arg(args, const char *), between = ",")
		len += snprintf(json + len, sizeof(json) - (size_t)len,
			"%s{'match':{'prefix':'/%s'},'route':{'cluster':'%s'}}", between, c, c);
	va_end(args);
	snprintf(json + len, sizeof(json) - (size_t)len, "]}]}");
	hold(f, &res_type_route_config, name, json);
}

bool asked_for(struct deps_fixture *f, const struct xds_type *type, const char *name)
{
	char needle[128];
	read_requests(f);
	snprintf(needle, sizeof(needle), " %s ", name);
	return strstr(f->asked[type_index(type)], needle);
}

void say(struct deps_fixture *f, const struct xds_type *type)
{
	struct fake_resource list[DEPS_MAX_HELD];
	size_t n = 0;
	read_requests(f);
	for (unsigned i = 0; i < f->n_held; i++)
		if (f->held[i].type == type &&
			(asked_for(f, type, f->held[i].name) || asked_for(f, type, "*")))
			list[n++] = (struct fake_resource){
				.bytes = f->held[i].bytes, .len = f->held[i].len};
	char tag[16];
	snprintf(tag, sizeof(tag), "%u", ++f->n_said);
	fake_ads_respond(&f->server, type->url, tag, tag, list, n);
	read_requests(f);
}

void say_all(struct deps_fixture *f)
{
	say(f, &res_type_listener);
	if (f->asked[type_index(&res_type_route_config)][0])
		say(f, &res_type_route_config);
	char *asked = f->asked[type_index(&res_type_cluster)], before[DEPS_MAX_ASKED] = "";
	while (strcmp(before, asked) != 0) { // aggregates lead to more
		strcpy(before, asked);
		say(f, &res_type_cluster);
	}
	if (f->asked[type_index(&res_type_endpoints)][0])
		say(f, &res_type_endpoints);
}

static void look_at_endpoint(const struct lb_leaf_endpoints *list, FILE *out)
{
	char ip[IP_PORT_TEXT_MAX];
	const struct lb_leaf_endpoint e = lb_leaf_endpoints_at(list, 0);
	for (uint32_t i = 0; i < e.n_addresses; i++)
		fprintf(out, "%s%s", i ? "+" : "", ip_print(&e.addresses[i].ip, ip));
}

static void look_at_leaves(
	const struct xds_config *c, const struct xds_cluster_config *k, FILE *out)
{
	assert_null(k->endpoints);
	assert_true(k->n_leaves > 0);
	for (uint32_t i = 0; i < k->n_leaves; i++) {
		const struct xds_cluster_config *leaf = xds_config_find_cluster(c, k->leaves[i]);
		assert_non_null(leaf);
		assert_non_null(leaf->cluster);
		assert_null(leaf->leaves);
		fprintf(out, "%s%s", i ? " " : "[", k->leaves[i]);
	}
	fputc(']', out);
}

static void look_at(const struct xds_config *c, const struct xds_cluster_config *k, FILE *out)
{
	assert_ptr_equal(xds_config_find_cluster(c, k->name), k);
	assert_true(!k->cluster == !!*k->error);
	assert_true(*k->resolution_note);
	fprintf(out, " %s%s", k->is_root ? "" : "~", k->name);
	if (!k->cluster) {
		assert_null(k->endpoints);
		assert_null(k->leaves);
		fputc('!', out);
		return;
	}
	assert_true((k->cluster->kind == RES_CLUSTER_AGGREGATE) == !!k->leaves);
	if (k->leaves) {
		look_at_leaves(c, k, out);
		return;
	}
	fprintf(out, "=%s",
		k->cluster->kind == RES_CLUSTER_EDS ? k->cluster->eds_name : k->cluster->dns.host);
	if (!k->endpoints) {
		fputc('?', out);
	} else if (k->endpoints->list->n_priorities == 0) {
		fprintf(out, "/none");
	} else {
		fputc('/', out);
		look_at_endpoint(k->endpoints->list, out);
	}
}

const char *look(struct deps_fixture *f)
{
	static char text[2048];
	const struct xds_config *c = f->config;
	if (!c)
		return "!";
	FILE *out = fmemopen(text, sizeof(text), "w");
	assert_non_null(out);
	fprintf(out, "%s:", c->routes->base.name);
	for (uint32_t i = 0; i < c->n_clusters; i++)
		look_at(c, &c->clusters[i], out);
	fclose(out);
	return text;
}

static const struct xds_cluster_config *entry(struct deps_fixture *f, const char *name)
{
	assert_non_null(f->config);
	const struct xds_cluster_config *k = xds_config_find_cluster(f->config, name);
	assert_non_null(k);
	return k;
}

const char *error_of(struct deps_fixture *f, const char *name)
{
	return entry(f, name)->error;
}

const char *note_of(struct deps_fixture *f, const char *name)
{
	return entry(f, name)->resolution_note;
}

void expect_updates(struct deps_fixture *f, unsigned n_updates, unsigned n_errors)
{
	assert_int_equal(f->n_updates, n_updates);
	assert_int_equal(f->n_errors, n_errors);
	f->n_updates = f->n_errors = 0;
}

void deps_init_blue(struct deps_fixture *f, const char *features)
{
	deps_init(f, features, NULL);
	hold_listener(f, "rc");
	hold_routes(f, "rc", "blue", NULL);
	hold_cluster(f, "blue", "e-blue");
	hold_endpoint(f, "e-blue", 1);
	say_all(f);
	assert_string_equal(look(f), "rc: blue=e-blue/10.0.0.1");
	expect_updates(f, 1, 0);
}
