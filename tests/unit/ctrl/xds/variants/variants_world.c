// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/xds/variants/variants_world.h"

#include "ctrl/base/text.h"
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/check.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct content {
	int number;
};

static long n_contents;

static void content_put(void *content)
{
	n_contents--;
	free(content);
}

static bool content_eq(const void *a, const void *b)
{
	return ((const struct content *)a)->number == ((const struct content *)b)->number;
}

void world_init(struct world *w, bool keeps_all, bool newest_wins)
{
	const struct xds_variants_conf conf = {
		.label = "routes",
		.keeps_all = keeps_all,
		.newest_wins = newest_wins,
		.content_put = content_put,
		.content_eq = content_eq,
	};
	*w = (struct world){.cache = xds_variants_new(&conf)};
	CHECK(w->cache);
}

void world_fini(struct world *w)
{
	xds_variants_free(w->cache);
	CHECK(n_contents == 0);
}

long world_n_contents(void)
{
	return n_contents;
}

int world_number(const struct xds_variant *v)
{
	return v ? ((const struct content *)v->content)->number : 0;
}

int world_try_set_of(struct world *w, const char *name, struct xds_constraints *c, int number,
	struct lb_err *err)
{
	struct content *content = malloc(sizeof(*content));
	char version[32];
	snprintf(version, sizeof(version), w->round ? "v%d.%d" : "v%d", number, w->round);
	if (!content)
		return -ENOMEM;
	content->number = number;
	n_contents++;
	return xds_variants_set(w->cache, name, c, version, content, err);
}

int world_try_set(
	struct world *w, const char *name, const char *json, int number, struct lb_err *err)
{
	struct xds_constraints *c = constraints_of(json);
	int rc = world_try_set_of(w, name, c, number, err);
	xds_constraints_put(c);
	return rc;
}

int world_try_remove(struct world *w, const char *name, const char *json, struct lb_err *err)
{
	struct xds_constraints *c = constraints_of(json);
	int rc = xds_variants_remove(w->cache, name, c, err);
	xds_constraints_put(c);
	return rc;
}

int world_try_keep(struct world *w, const char *name, const char *json, struct lb_err *err)
{
	struct xds_constraints *c = constraints_of(json);
	int rc = xds_variants_keep(w->cache, name, c, err);
	xds_constraints_put(c);
	return rc;
}

int world_try_sub(struct world *w, const char *name, const char *params, struct xds_sub **ret)
{
	struct xds_params *p = params_of(params);
	bool is_new;
	int rc = xds_sub_get(w->cache, name, p, ret, &is_new);
	xds_params_put(p);
	return rc;
}

void world_set(struct world *w, const char *name, const char *json, int number)
{
	CHECK(world_try_set(w, name, json, number, NULL) == 0);
}

void world_remove(struct world *w, const char *name, const char *json)
{
	CHECK(world_try_remove(w, name, json, NULL) == 0);
}

void world_keep(struct world *w, const char *name, const char *json)
{
	CHECK(world_try_keep(w, name, json, NULL) == 0);
}

struct xds_sub *world_sub(struct world *w, const char *name, const char *params)
{
	struct xds_sub *s;
	CHECK(world_try_sub(w, name, params, &s) == 0);
	return s;
}

static void add(struct xds_text *t, const char *separator, const char *a, const char *b)
{
	xds_text_add(t, t->len ? separator : "");
	xds_text_add(t, a);
	xds_text_add(t, b);
}

const char *world_news(struct world *w)
{
	struct xds_text t = xds_text_of(w->text, sizeof(w->text));
	struct xds_variants_event e;
	while (xds_variants_drain(w->cache, &e)) {
		char params[128], numbers[64];
		xds_params_print(e.sub->params, params, sizeof(params));
		add(&t, "; ", e.sub->name, params);
		snprintf(numbers, sizeof(numbers), ": %d > %d%s", world_number(e.before),
			world_number(e.after), e.newly_ambiguous ? "!" : "");
		xds_text_add(&t, numbers);
		CHECK(e.after == e.sub->variant);
	}
	return w->text;
}

static void dump_one(void *ctx, const char *name, const struct xds_variant *v)
{
	struct xds_text *t = ctx;
	char number[16], constraints[128];
	snprintf(number, sizeof(number), " %d ", world_number(v));
	xds_constraints_print(v->constraints, constraints, sizeof(constraints));
	add(t, "; ", name, number);
	xds_text_add(t, constraints);
}

const char *world_dump(struct world *w)
{
	struct xds_text t = xds_text_of(w->text, sizeof(w->text));
	xds_variants_each(w->cache, dump_one, &t);
	return w->text;
}
