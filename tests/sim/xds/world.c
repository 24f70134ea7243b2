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

void world_name(unsigned type, int i, char ret_name[16])
{
	snprintf(ret_name, 16, "%c%d", LETTER[type], i);
}

int world_find(unsigned type, const char *name)
{
	return name[0] == LETTER[type] ? atoi(name + 1) : -1;
}

static int pick(struct rand *r, int n)
{
	return (int)rand_below(r, (uint64_t)n);
}

void world_init(struct world *w, struct rand *r)
{
	*w = (struct world){0};
	for (int i = 0; i < 200; i++)
		world_change(w, r);
	world_heal(w);
}

void world_change(struct world *w, struct rand *r)
{
	int l = pick(r, N_LISTENERS), rc = pick(r, N_ROUTES), type = pick(r, 4);
	switch (pick(r, 8)) {
	case 0:
		w->listener_routes[l] = pick(r, 20) ? pick(r, N_ROUTES) : -1;
		w->listener_inline[l] = pick(r, 4) == 0;
		break;
	case 1:
	case 2:
		w->vhost_clusters[rc][pick(r, N_VHOSTS)] ^= 1u << pick(r, N_CLUSTERS);
		break;
	case 3:
		w->cluster_endpoints[pick(r, N_CLUSTERS)] = pick(r, N_ENDPOINTS);
		break;
	case 4:
		w->gone[type][pick(r, world_count((unsigned)type))] = true;
		break;
	case 5:
		w->gone[type][pick(r, world_count((unsigned)type))] = false;
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
}

// The virtual hosts of one route configuration; the second one is that of the pinned frontend.
static void print_routes(const struct world *w, int rc, bool bad, FILE *f)
{
	static const char *const DOMAINS[] = {"*", "b.example"};
	fprintf(f, "'name':'r%d','virtualHosts':[", rc);
	for (int v = 0; v < N_VHOSTS; v++) {
		fprintf(f, "%s{'name':'v%d','domains':['%s'],'routes':[", v ? "," : "", v,
			bad ? "" : DOMAINS[v]);
		bool first = true;
		for (int c = 0; c < N_CLUSTERS; c++) {
			if (!(w->vhost_clusters[rc][v] >> c & 1))
				continue;
			fprintf(f, "%s{'match':{'prefix':'/%d'},'route':{'cluster':'c%d'}}",
				first ? "" : ",", c, c);
			first = false;
		}
		fprintf(f, "]}");
	}
	fprintf(f, "]");
}

static void print_listener(const struct world *w, int l, bool bad, FILE *f)
{
	fprintf(f, "{'name':'l%d',", l);
	if (w->listener_routes[l] < 0 && !bad) {
		fprintf(f, "'address':{'pipe':{'path':'x'}}}");
		return;
	}
	fprintf(f, "'apiListener':{'apiListener':{'@type':'type.googleapis.com/envoy.extensions."
		   "filters.network.http_connection_manager.v3.HttpConnectionManager',");
	if (w->listener_inline[l]) {
		fprintf(f, "'routeConfig':{");
		print_routes(w, w->listener_routes[l] < 0 ? 0 : w->listener_routes[l], false, f);
		fprintf(f, "}");
	} else {
		fprintf(f, "'rds':{'configSource':{'ads':{}},'routeConfigName':'r%d'}",
			w->listener_routes[l]);
	}
	if (!bad)
		fprintf(f, ",'httpFilters':[{'name':'router','typedConfig':{'@type':"
			   "'type.googleapis.com/envoy.extensions.filters.http.router.v3."
			   "Router'}}]");
	fprintf(f, "}}}");
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
		print_routes(w, i, bad, f);
		fprintf(f, "}");
		break;
	case CLUSTER:
		fprintf(f,
			"{'name':'c%d','type':'%s','edsClusterConfig':{'edsConfig':{'ads':{}},"
			"'serviceName':'e%d'}}",
			i, bad ? "STATIC" : "EDS", w->cluster_endpoints[i]);
		break;
	default:
		fprintf(f,
			"{'clusterName':'e%d','endpoints':[{'locality':{},"
			"'loadBalancingWeight':1,'lbEndpoints':[{'endpoint':{'address':"
			"{'socketAddress':{'address':'10.0.0.1','portValue':%d}}}}]}]}",
			i, bad ? 0 : w->endpoints_port[i] + 1);
		break;
	}
	CHECK(fclose(f) == 0);
	uint8_t *bytes = res_bytes_from_json(res_types[type], json, ret_len);
	free(json);
	return bytes;
}
