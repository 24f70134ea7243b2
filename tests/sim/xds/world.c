// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/xds/world.h"

#include "ctrl/res/types.h"
#include "lb/base/check.h"
#include "tests/support/res_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLUSTER, ENDPOINTS, LISTENER, ROUTES }; // as in res_types

static const char LETTER[] = {'c', 'e', 'l', 'r'};

int world_count(unsigned type)
{
	static const int N[] = {N_CLUSTERS, N_ENDPOINTS, N_LISTENERS, N_ROUTES};
	return N[type];
}

int world_authority(const struct world_shape *s, int i)
{
	return s->federated && i % 2;
}

void world_name(const struct world_shape *s, unsigned type, int i, char ret_name[WORLD_NAME_SIZE])
{
	const char *message = strrchr(res_types[type]->url, '/') + 1;
	bool foreign = world_authority(s, i);
	snprintf(ret_name, WORLD_NAME_SIZE, "%s%s%s%c%d", foreign ? "xdstp://a/" : "",
		foreign ? message : "", foreign ? "/" : "", LETTER[type], i);
}

int world_find(unsigned type, const char *name)
{
	const char *slash = strrchr(name, '/'), *id = slash ? slash + 1 : name;
	return id[0] == LETTER[type] ? atoi(id + 1) : -1;
}

static int pick(struct rand *r, int n)
{
	return (int)rand_below(r, (uint64_t)n);
}

void world_host(int host, char ret_name[16])
{
	snprintf(ret_name, 16, "h%d", host);
}

void world_addresses(const struct world *w, int host, char ret_list[128])
{
	int len = 0;
	ret_list[0] = '\0';
	for (int i = 0; i < N_ADDRESSES; i++)
		if (w->addresses[host] >> i & 1)
			len += snprintf(ret_list + len, 128 - (size_t)len, "%s10.9.%d.%d",
				len ? " " : "", host, i);
}

void world_init(struct world *w, struct rand *r, struct world_shape shape)
{
	*w = (struct world){.shape = shape};
	for (int i = 0; i < 400; i++)
		world_change(w, r);
	world_heal(w);
}

void world_take(struct world *w, const struct world *from, int authority)
{
	for (int i = 0; i < N_CLUSTERS; i++) {
		if (world_authority(&w->shape, i) != authority)
			continue;
		w->clusters[i] = from->clusters[i];
		for (int t = 0; t < 4; t++) {
			w->gone[t][i] = from->gone[t][i];
			w->variants[t][i] = from->variants[t][i];
		}
		if (i < N_LISTENERS) {
			memcpy(w->inline_clusters[i], from->inline_clusters[i],
				sizeof(w->inline_clusters[i]));
			w->listener_routes[i] = from->listener_routes[i];
			w->listener_inline[i] = from->listener_inline[i];
		}
		if (i < N_ROUTES)
			memcpy(w->vhost_clusters[i], from->vhost_clusters[i],
				sizeof(w->vhost_clusters[i]));
		if (i < N_ENDPOINTS)
			w->endpoints_port[i] = from->endpoints_port[i];
	}
}

static void change_cluster(struct world *w, struct rand *r)
{
	int i = pick(r, N_CLUSTERS);
	struct world_cluster *c = &w->clusters[i];
	*c = (struct world_cluster){
		.kind = (enum world_kind)pick(r, 3),
		.endpoints = pick(r, N_ENDPOINTS),
		.host = pick(r, N_HOSTS),
		.n_children = 1 + pick(r, MAX_CHILDREN),
	};
	if (w->shape.deep && i + 1 < N_CLUSTERS && pick(r, 100)) {
		c->kind = WORLD_AGGREGATE;
		c->n_children = 1 + (pick(r, 20) == 0);
	}
	for (int k = 0; k < c->n_children; k++)
		c->children[k] = pick(r, N_CLUSTERS);
	if (w->shape.deep && i + 1 < N_CLUSTERS)
		c->children[0] = i + 1;
	else if (pick(r, 8) == 0) // a loop and nothing else
		*c = (struct world_cluster){WORLD_AGGREGATE, .children = {i}, .n_children = 1};
}

static void change_variant(struct world *w, struct rand *r, unsigned type)
{
	int i = pick(r, world_count(type));
	bool is_prod = w->shape.has_params[world_authority(&w->shape, i)];
	enum variant v = (enum variant)pick(r, N_VARIANTS);
	if (is_prod && variant_matches(v, true))
		w->variants[type][i] = v;
}

void world_change(struct world *w, struct rand *r)
{
	int l = pick(r, N_LISTENERS), rc = pick(r, N_ROUTES), type = pick(r, 4);
	uint32_t *clusters;
	switch (pick(r, 11)) {
	case 0:
		w->listener_routes[l] = pick(r, 20) ? pick(r, N_ROUTES) : -1;
		w->listener_inline[l] = pick(r, 4) == 0;
		break;
	case 1:
	case 2:
		clusters = pick(r, 3) ? w->vhost_clusters[rc] : w->inline_clusters[l];
		clusters[pick(r, N_VHOSTS)] ^= 1u << pick(r, w->shape.deep ? 4 : N_CLUSTERS);
		break;
	case 3:
		change_cluster(w, r);
		break;
	case 4:
		w->gone[type][pick(r, world_count((unsigned)type))] = true;
		break;
	case 5:
		w->gone[type][pick(r, world_count((unsigned)type))] = false;
		break;
	case 6:
		w->addresses[pick(r, N_HOSTS)] = (uint32_t)pick(r, 1 << N_ADDRESSES);
		break;
	case 7:
		change_variant(w, r, (unsigned)type);
		break;
	default:
		w->endpoints_port[pick(r, N_ENDPOINTS)] = pick(r, 60000);
		break;
	}
}

void world_heal(struct world *w)
{
	memset(w->gone, 0, sizeof(w->gone));
	for (int l = 0; l < N_LISTENERS; l++)
		if (w->listener_routes[l] < 0)
			w->listener_routes[l] = l;
	for (int h = 0; h < N_HOSTS; h++)
		if (!w->addresses[h])
			w->addresses[h] = 1;
}

// The name as others write it.
static void print_name(const struct world *w, unsigned type, int i, FILE *f)
{
	char name[WORLD_NAME_SIZE];
	world_name(&w->shape, type, i, name);
	fprintf(f, "'%s'", name);
}

// The virtual hosts of one route configuration; the second one is that of the pinned frontend.
static void print_routes(
	const struct world *w, int rc, const uint32_t clusters[N_VHOSTS], bool bad, FILE *f)
{
	static const char *const DOMAINS[] = {"*", "b.example"};
	fprintf(f, "'name':");
	print_name(w, ROUTES, rc, f);
	fprintf(f, ",'virtualHosts':[");
	for (int v = 0; v < N_VHOSTS; v++) {
		fprintf(f, "%s{'name':'v%d','domains':['%s'],'routes':[", v ? "," : "", v,
			bad ? "" : DOMAINS[v]);
		bool first = true;
		for (int c = 0; c < N_CLUSTERS; c++) {
			if (!(clusters[v] >> c & 1))
				continue;
			fprintf(f,
				"%s{'match':{'prefix':'/%d'},'route':{'cluster':", first ? "" : ",",
				c);
			print_name(w, CLUSTER, c, f);
			fprintf(f, "}}");
			first = false;
		}
		fprintf(f, "]}");
	}
	fprintf(f, "]");
}

#define MANAGER                                                                                    \
	"{'@type':'type.googleapis.com/envoy.extensions.filters.network."                          \
	"http_connection_manager.v3.HttpConnectionManager',"
#define FILTERS                                                                                    \
	",'httpFilters':[{'name':'router','typedConfig':{'@type':"                                 \
	"'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}]"

// A good one, of a server: no client can use it.
static void print_socket_listener(FILE *f)
{
	fprintf(f, "'address':{'socketAddress':{'address':'192.0.2.1','portValue':1}},"
		   "'defaultFilterChain':{'filters':[{'name':'manager','typedConfig':" MANAGER
		   "'routeConfig':{}" FILTERS "}}]}}");
}

static void print_listener(const struct world *w, int l, bool bad, FILE *f)
{
	fprintf(f, "{'name':");
	print_name(w, LISTENER, l, f);
	fprintf(f, ",");
	if (w->listener_routes[l] < 0 && !bad) {
		print_socket_listener(f);
		return;
	}
	fprintf(f, "'apiListener':{'apiListener':" MANAGER);
	if (w->listener_inline[l]) {
		fprintf(f, "'routeConfig':{");
		print_routes(w, w->listener_routes[l] < 0 ? 0 : w->listener_routes[l],
			w->inline_clusters[l], false, f);
		fprintf(f, "}");
	} else {
		fprintf(f, "'rds':{'configSource':{'ads':{}},'routeConfigName':");
		print_name(w, ROUTES, w->listener_routes[l], f);
		fprintf(f, "}");
	}
	if (!bad)
		fprintf(f, FILTERS);
	fprintf(f, "}}}");
}

static void print_cluster(const struct world *w, int i, bool bad, FILE *f)
{
	const struct world_cluster *c = &w->clusters[i];
	fprintf(f, "{'name':");
	print_name(w, CLUSTER, i, f);
	fprintf(f, ",");
	if (bad) {
		fprintf(f, "'type':'STATIC'}");
	} else if (c->kind == WORLD_EDS) {
		fprintf(f,
			"'type':'EDS','edsClusterConfig':{'edsConfig':{'ads':{}},'serviceName':");
		print_name(w, ENDPOINTS, c->endpoints, f);
		fprintf(f, "}}");
	} else if (c->kind == WORLD_NAME) {
		fprintf(f,
			"'type':'LOGICAL_DNS','loadAssignment':{'endpoints':[{'lbEndpoints':["
			"{'endpoint':{'address':{'socketAddress':{'address':'h%d','portValue':%d}}}"
			"}]}]}}",
			c->host, i + 1);
	} else {
		fprintf(f, "'clusterType':{'name':'x','typedConfig':{'@type':"
			   "'type.googleapis.com/envoy.extensions.clusters.aggregate.v3."
			   "ClusterConfig','clusters':[");
		for (int k = 0; k < c->n_children; k++) {
			fputs(k ? "," : "", f);
			print_name(w, CLUSTER, c->children[k], f);
		}
		fprintf(f, "]}}}");
	}
}

uint8_t *world_bytes(const struct world *w, unsigned type, int i, bool bad, size_t *ret_len)
{
	char *json;
	size_t len;
	FILE *f = open_memstream(&json, &len);
	CHECK(f);
	switch (type) {
	case LISTENER:
		print_listener(w, i, bad, f);
		break;
	case ROUTES:
		fprintf(f, "{");
		print_routes(w, i, w->vhost_clusters[i], bad, f);
		fprintf(f, "}");
		break;
	case CLUSTER:
		print_cluster(w, i, bad, f);
		break;
	default:
		fprintf(f, "{'clusterName':");
		print_name(w, ENDPOINTS, i, f);
		fprintf(f,
			",'endpoints':[{'locality':{},"
			"'loadBalancingWeight':1,'lbEndpoints':[{'endpoint':{'address':"
			"{'socketAddress':{'address':'10.0.0.1','portValue':%d}}}}]}]}",
			bad ? 0 : w->endpoints_port[i] + 1);
		break;
	}
	CHECK(fclose(f) == 0);
	uint8_t *bytes = res_bytes_from_json(res_types[type], json, ret_len);
	free(json);
	return bytes;
}
