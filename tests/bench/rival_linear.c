// SPDX-License-Identifier: Apache-2.0
// The list of routes as it is configured, one by one, each with all that a route can ask for; a
// regex is RE2's. What a load balancer does that has no index.
#include "lb/base/check.h"
#include "lb/route/req.h"
#include "lb/route/route.h"
#include "tests/bench/impl.h"

#include <stdlib.h>

struct entry {
	struct lb_route_conf conf;
	void *regex; // REGEX
};

struct linear {
	uint32_t n;
	struct entry entries[];
};

static void *linear_build(const struct workload *w)
{
	struct linear *l = calloc(1, sizeof(*l) + w->n_routes * sizeof(l->entries[0]));
	CHECK(l);
	l->n = w->n_routes;
	for (uint32_t i = 0; i < l->n; i++) {
		const struct bench_route *r = &w->routes[i];
		l->entries[i] = (struct entry){
			.conf = {.path_kind = r->is_regex ? LB_PATH_REGEX : LB_PATH_PREFIX,
				.path = r->text,
				.case_sensitive = true,
				.ppm = LB_PPM_ALWAYS},
			.regex = r->is_regex ? rival_re2_new(r->text) : NULL};
	}
	return l;
}

static bool path_matches(const struct entry *e, struct str path)
{
	const struct lb_route_conf *c = &e->conf;
	switch (c->path_kind) {
	case LB_PATH_PREFIX:
		if (path.len < c->path.len)
			return false;
		path.len = c->path.len;
		break;
	case LB_PATH_EXACT:
		break;
	case LB_PATH_REGEX:
		return rival_re2_full_match(e->regex, path);
	}
	return c->case_sensitive ? str_eq(path, c->path) : str_eq_fold(path, c->path);
}

static uint32_t linear_find(void *ctx, struct str path)
{
	const struct linear *l = ctx;
	for (uint32_t i = 0; i < l->n; i++) {
		const struct lb_route_conf *c = &l->entries[i].conf;
		if (path_matches(&l->entries[i], path) && c->n_headers == 0 && !c->grpc_only &&
			c->ppm >= LB_PPM_ALWAYS)
			return i;
	}
	return IMPL_NONE;
}

static double linear_bytes(void *ctx, const struct workload *w)
{
	const struct linear *l = ctx;
	if (w->n_regexes)
		return -1; // RE2 does not say
	return (double)(sizeof(*l) + l->n * sizeof(l->entries[0]) + w->n_text);
}

static void linear_free(void *ctx)
{
	struct linear *l = ctx;
	for (uint32_t i = 0; i < l->n; i++)
		if (l->entries[i].regex)
			rival_re2_free(l->entries[i].regex);
	free(l);
}

const struct impl impl_linear = {
	"linear", 100000, "", linear_build, linear_find, linear_bytes, linear_free};
