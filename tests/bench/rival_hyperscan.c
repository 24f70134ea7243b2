// SPDX-License-Identifier: Apache-2.0
// One Hyperscan database for all routes, prefixes too.
#include "lb/base/check.h"
#include "tests/bench/impl.h"

#include <hs/hs.h>

#include <stdio.h>
#include <stdlib.h>

struct hyperscan {
	hs_database_t *db;
	hs_scratch_t *scratch;
};

static void hyperscan_free(void *ctx)
{
	struct hyperscan *h = ctx;
	hs_free_scratch(h->scratch);
	hs_free_database(h->db);
	free(h);
}

// Wrapped so that a regex has to cover the whole path; a prefix is literal text.
static char *expression(const struct bench_route *r)
{
	char *to = malloc(4 * r->text.len + 16);
	CHECK(to);
	if (r->is_regex) {
		sprintf(to, "\\A(?:%.*s)\\z", (int)r->text.len, r->text.p);
		return to;
	}
	char *p = to + sprintf(to, "\\A");
	for (size_t i = 0; i < r->text.len; i++)
		p += sprintf(p, "\\x%02x", (unsigned char)r->text.p[i]);
	return to;
}

static void *hyperscan_build(const struct workload *w)
{
	uint32_t n = w->n_routes;
	char **expressions = calloc(n, sizeof(char *));
	unsigned *flags = calloc(n, sizeof(*flags)), *ids = calloc(n, sizeof(*ids));
	struct hyperscan *h = calloc(1, sizeof(*h));
	CHECK(expressions && flags && ids && h);
	for (uint32_t i = 0; i < n; i++) {
		expressions[i] = expression(&w->routes[i]);
		flags[i] = HS_FLAG_SINGLEMATCH | HS_FLAG_ALLOWEMPTY;
		ids[i] = i;
	}
	hs_compile_error_t *error = NULL;
	hs_error_t code = hs_compile_multi((const char *const *)expressions, flags, ids, n,
		HS_MODE_BLOCK, NULL, &h->db, &error);
	for (uint32_t i = 0; i < n; i++)
		free(expressions[i]);
	free(expressions);
	free(flags);
	free(ids);
	if (error)
		hs_free_compile_error(error);
	if (code == HS_SUCCESS && hs_alloc_scratch(h->db, &h->scratch) == HS_SUCCESS)
		return h;
	hyperscan_free(h);
	return NULL;
}

static int on_hit(
	unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *ctx)
{
	uint32_t *smallest = ctx;
	if (id < *smallest)
		*smallest = id;
	return 0;
}

static uint32_t hyperscan_find(void *ctx, struct str path)
{
	struct hyperscan *h = ctx;
	uint32_t smallest = IMPL_NONE;
	hs_error_t code =
		hs_scan(h->db, path.p, (unsigned)path.len, 0, h->scratch, on_hit, &smallest);
	CHECK(code == HS_SUCCESS);
	return smallest;
}

static double hyperscan_bytes(void *ctx, const struct workload *w)
{
	struct hyperscan *h = ctx;
	size_t size = 0;
	return hs_database_size(h->db, &size) == HS_SUCCESS ? (double)size : -1;
}

const struct impl impl_hyperscan = {"hyperscan", 10000, "compiling takes minutes", hyperscan_build,
	hyperscan_find, hyperscan_bytes, hyperscan_free};
