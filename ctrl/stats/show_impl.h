// SPDX-License-Identifier: Apache-2.0
// What the files behind the stats socket's commands share: show.c (dispatch, info, workers),
// show_metrics.c, show_pools.c, show_ports.c, show_reconnect.c, show_stat.c, show_tree.c,
// show_routes.c, show_xds.c, explain.c.
// Nobody else includes this.
// Thread: ctrl.
#pragma once

#include "ctrl/stats/show.h"
#include "lb/base/err.h"
#include "lb/pick/cause.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct lb_route_scratch;

struct show {
	struct show_conf conf;
	const char *state;
	uint64_t started_ns;
	struct lb_route_scratch *scratch; // owned; of lookups on ctrl
};

// What follows a command's own words.
struct show_args {
	char *const *words;
	unsigned n;
	bool json; // a builder may find it among its words
	struct lb_err err; // a builder that finds the words wrong says so here; "" = no memory
};

// The data of one command, NULL = args->err.
json_t *show_stat(const struct show *, struct show_args *);
json_t *show_clusters(const struct show *, struct show_args *);
json_t *show_tree(const struct show *, struct show_args *);
json_t *show_endpoints(const struct show *, struct show_args *);
json_t *show_routes(const struct show *, struct show_args *);
json_t *show_pools(const struct show *, struct show_args *);
json_t *show_ports(const struct show *, struct show_args *);
json_t *show_xds(const struct show *, struct show_args *);
json_t *show_metrics(const struct show *, struct show_args *);
json_t *show_explain(const struct show *, struct show_args *);
json_t *show_reconnect(const struct show *, struct show_args *);

// Why nobody can reach that frontend: the port with its address is down. "" = it is up.
const char *show_frontend_down(const struct show *, uint32_t frontend, char *text, size_t size);

// The number of the frontend that is called so, of the only one for NULL; or -EINVAL.
int show_find_frontend(const struct config *, const char *name, struct lb_err *reterr);

extern const char *const show_stat_columns[]; // of its CSV
char *show_routes_text(json_t *); // from malloc; NULL = no memory
char *show_tree_text(json_t *); // likewise
char *show_metrics_text(json_t *); // likewise

// The null of a failed allocation makes the whole fail in the end, not here.
void show_set_u64(json_t *object, const char *key, uint64_t value);
void show_set_text(json_t *object, const char *key, const char *value);
static inline double show_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}
json_t *show_causes(const uint64_t ended[LB_N_CAUSES]);
