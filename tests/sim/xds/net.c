// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/xds/net.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROD "\"dynamic_parameters\":{\"env\":\"prod\"},"

static void serve(struct net *n, int authority, struct server *first, struct server *second)
{
	n->lists[authority][0] = first;
	n->lists[authority][1] = second;
	for (int i = 0; i < 2; i++) {
		struct server *s = n->lists[authority][i];
		if (!s)
			continue;
		s->serves[authority] = true;
		s->may_be_forgotten |= second != NULL;
	}
}

static void print_servers(const struct net *n, int authority, bool drops, FILE *f)
{
	fprintf(f, "\"xds_servers\":[");
	for (int i = 0; i < 2 && n->lists[authority][i]; i++)
		fprintf(f,
			"%s{\"server_uri\":\"s%d\",\"channel_creds\":[{\"type\":\"insecure\"}]%s}",
			i ? "," : "", (int)(n->lists[authority][i] - n->servers),
			drops ? ",\"server_features\":[\"fail_on_data_errors\"]" : "");
	fprintf(f, "],");
}

static struct xds_bootstrap *bootstrap_of(const struct net *n, bool drops)
{
	const struct world_shape *shape = &n->world.shape;
	char *json;
	size_t len;
	struct xds_bootstrap *b;
	struct lb_err err;
	FILE *f = open_memstream(&json, &len);
	CHECK(f);
	fprintf(f, "{");
	print_servers(n, 0, drops, f);
	if (shape->has_params[0])
		fprintf(f, PROD);
	if (shape->federated) {
		fprintf(f, "\"authorities\":{\"a\":{");
		print_servers(n, 1, drops, f);
		if (shape->has_params[1])
			fprintf(f, PROD);
		fprintf(f, "\"client_listener_resource_name_template\":\"xdstp://a/%%s\"}},");
	}
	fprintf(f, "\"node\":{\"id\":\"sim\"}}");
	CHECK(fclose(f) == 0);
	CHECK(xds_bootstrap_parse(json, len, "sim", &b, &err) == 0);
	free(json);
	return b;
}

void net_init(struct net *n, struct rand *r, uint64_t seed)
{
	struct world_shape shape = {
		.deep = seed % 4 == 1,
		.federated = seed % 3 != 0,
		.has_params = {seed % 2 == 0, seed % 5 < 3},
	};
	*n = (struct net){.has_fallback = seed % 8 > 2};
	world_init(&n->world, r, shape);
	world_init(&n->other, r, shape);
	struct server *s = n->servers;
	for (int i = 0; i < N_SERVERS; i++)
		server_init(&s[i], i == 1 ? &n->other : &n->world, r);
	serve(n, 0, &s[0], n->has_fallback ? &s[1] : NULL);
	if (shape.federated && seed % 7 == 0)
		serve(n, 1, &s[0], NULL);
	else if (shape.federated)
		serve(n, 1, &s[2], seed % 7 < 4 ? &s[0] : NULL);
	n->bootstrap = bootstrap_of(n, seed % 3 == 0);
}

void net_fini(struct net *n)
{
	for (int i = 0; i < N_SERVERS; i++)
		fake_ads_fini(&n->servers[i].ads);
	xds_bootstrap_free(n->bootstrap);
}

static int connect_by_uri(void *ctx, const struct xds_server_conf *conf, struct xds_transport **ret,
	struct lb_err *err)
{
	struct net *n = ctx;
	struct xds_transport_factory f = fake_ads_factory(&n->servers[conf->uri[1] - '0'].ads);
	return f.connect(f.ctx, conf, ret, err);
}

struct xds_transport_factory net_transport(struct net *n)
{
	return (struct xds_transport_factory){connect_by_uri, n};
}

void net_change_world(struct net *n, struct rand *r)
{
	world_change(rand_below(r, 4) ? &n->world : &n->other, r);
}

struct server *net_pick(struct net *n, struct rand *r)
{
	return &n->servers[rand_below(r, N_SERVERS)];
}

void net_calm(struct net *n, const struct server *but)
{
	world_heal(&n->world);
	world_heal(&n->other);
	for (int i = 0; i < N_SERVERS; i++)
		if (n->servers[i].is_down != (&n->servers[i] == but))
			server_toggle(&n->servers[i]);
}

void net_truth(const struct net *n, struct world *ret, bool ret_known[2])
{
	*ret = n->world;
	for (int a = 0; a < 2; a++) {
		const struct server *s = NULL;
		for (int i = 1; i >= 0; i--)
			if (n->lists[a][i] && !n->lists[a][i]->is_down)
				s = n->lists[a][i];
		ret_known[a] = s;
		if (s)
			world_take(ret, s->world, a);
	}
}
