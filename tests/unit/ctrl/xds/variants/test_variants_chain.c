// SPDX-License-Identifier: Apache-2.0
// Server, caching proxy and clients, each with the same cache, one handing to the next what its
// subscriptions are told: however the server cuts a resource into variants, each client goes from
// one value to the next in one step and is never without (TP2-T08, TP2-S04, TP2-S05, TP2-P02 to
// TP2-P06).
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"
#include "tests/unit/ctrl/xds/variants/variants_world.h"

#include <errno.h>
#include <stdio.h>

#define PROD "{'constraint':{'key':'env','value':'prod'}}"
#define V1 "{'constraint':{'key':'version','value':'v1'}}"
#define NOT(x) "{'not_constraints':" x "}"
#define AND(x) "{'and_constraints':{'constraints':[" x "]}}"

#define N_CLIENTS 9
#define N_NAMES 2
#define N_STEPS 3000

// Ways to cut a resource: no two variants overlap, and one always matches.
static const char *const cuts[][5] = {
	{"{}"},
	{PROD, NOT(PROD)},
	{V1, NOT(V1)},
	{AND(PROD "," V1), AND(PROD "," NOT(V1)), NOT(PROD)},
	{AND(PROD "," V1), NOT(AND(PROD "," V1))},
	{AND(NOT(PROD) "," NOT(V1)), AND(PROD "," NOT(V1)), AND(NOT(PROD) "," V1),
		AND(PROD "," V1)},
};
#define N_CUTS (sizeof(cuts) / sizeof(cuts[0]))
static const char *const names[N_NAMES] = {"r", "s"};
static const char *const params_of_client[N_CLIENTS] = {"", "env=prod", "env=test", "version=v1",
	"env=prod version=v1", "env=prod version=v2", "env=test version=v1", "env=prod version=v1",
	"env=test zone=a"};

// Somebody's subscriptions to the one before.
struct downstream {
	struct world world; // its own cache
	struct xds_sub *upstream[N_CLIENTS * N_NAMES]; // in the cache before
	unsigned n_upstream;
};

struct chain {
	struct world server;
	struct downstream proxy, clients[N_CLIENTS];
	struct xds_sub *leaves[N_CLIENTS][N_NAMES];
	int last[N_CLIENTS][N_NAMES];
};

#define MAX_EVENTS 64
struct kept_event {
	struct xds_sub *sub;
	struct xds_variant *before, *after; // counted
};

static bool concerns(const struct downstream *d, const struct xds_sub *s)
{
	for (unsigned i = 0; i < d->n_upstream; i++)
		if (d->upstream[i] == s)
			return true;
	return false;
}

static bool still_sees(
	const struct downstream *d, const char *name, const struct xds_constraints *c)
{
	for (unsigned i = 0; i < d->n_upstream; i++) {
		const struct xds_sub *s = d->upstream[i];
		if (s->name == name && s->variant && xds_constraints_eq(s->variant->constraints, c))
			return true;
	}
	return false;
}

// One response: what the events mean for this one downstream, in any order.
static void respond(
	struct downstream *d, const struct kept_event *events, unsigned n, bool backwards)
{
	struct lb_err err;
	bool is_there = false;
	for (unsigned k = 0; k < n; k++) {
		const struct kept_event *e = &events[backwards ? n - 1 - k : k];
		if (!concerns(d, e->sub))
			continue;
		if (!is_there)
			xds_variants_begin(d->world.cache, XDS_CHANGE_LISTED);
		is_there = true;
		int rc = 0;
		// Two subscriptions may see the same: it is in the response once.
		if (e->after)
			rc = world_try_set_of(&d->world, e->sub->name, e->after->constraints,
				world_number(e->after), &err);
		assert_true(rc == 0 || rc == -EEXIST);
		rc = 0;
		if (e->before && !still_sees(d, e->sub->name, e->before->constraints))
			rc = xds_variants_remove(
				d->world.cache, e->sub->name, e->before->constraints, &err);
		assert_true(rc == 0 || rc == -EEXIST);
	}
	if (is_there)
		xds_variants_commit(d->world.cache);
}

// Passes the news of one cache on to those that subscribe there.
static void pass_on(struct world *from, struct downstream *to, unsigned n_to, struct rand *r)
{
	struct kept_event kept[MAX_EVENTS];
	struct xds_variants_event e;
	unsigned n = 0;
	while (xds_variants_drain(from->cache, &e)) {
		assert_true(n < MAX_EVENTS);
		assert_false(e.newly_ambiguous);
		kept[n++] = (struct kept_event){e.sub,
			xds_variant_get((struct xds_variant *)(uintptr_t)e.before),
			xds_variant_get((struct xds_variant *)(uintptr_t)e.after)};
	}
	for (unsigned i = 0; i < n_to; i++)
		respond(&to[i], kept, n, rand_below(r, 2));
	for (unsigned i = 0; i < n; i++) {
		xds_variant_put(kept[i].before);
		xds_variant_put(kept[i].after);
	}
}

static void subscribe(struct world *to, struct downstream *d, const char *name, const char *params)
{
	struct xds_sub *s = world_sub(to, name, params);
	d->upstream[d->n_upstream++] = s;
}

static void chain_init(struct chain *c)
{
	*c = (struct chain){0};
	world_init(&c->server, true, false);
	world_init(&c->proxy.world, false, false);
	for (int i = 0; i < N_CLIENTS; i++) {
		struct downstream *client = &c->clients[i];
		world_init(&client->world, false, false);
		for (int n = 0; n < N_NAMES; n++) {
			c->leaves[i][n] = world_sub(&client->world, names[n], params_of_client[i]);
			// The first of its kind makes the proxy subscribe (TP2-P04).
			struct xds_params *p = params_of(params_of_client[i]);
			if (!xds_sub_find(c->proxy.world.cache, names[n], p))
				subscribe(&c->server, &c->proxy, names[n], params_of_client[i]);
			xds_params_put(p);
			subscribe(&c->proxy.world, client, names[n], params_of_client[i]);
		}
	}
}

static void chain_fini(struct chain *c)
{
	for (int i = 0; i < N_CLIENTS; i++) {
		for (int n = 0; n < N_NAMES; n++)
			(void)xds_sub_put(c->clients[i].world.cache, c->leaves[i][n]);
		for (unsigned k = 0; k < c->clients[i].n_upstream; k++)
			(void)xds_sub_put(c->proxy.world.cache, c->clients[i].upstream[k]);
		xds_variants_free(c->clients[i].world.cache);
	}
	for (unsigned k = 0; k < c->proxy.n_upstream; k++)
		(void)xds_sub_put(c->server.cache, c->proxy.upstream[k]);
	xds_variants_free(c->proxy.world.cache);
	world_fini(&c->server);
}

// A folder that is read again: each resource cut anew, some with the content that they had.
static void reload(struct chain *c, struct rand *r)
{
	struct lb_err err = {""};
	xds_variants_begin(c->server.cache, XDS_CHANGE_FULL);
	for (int n = 0; n < N_NAMES; n++) {
		const char *const *cut = cuts[rand_below(r, N_CUTS)];
		for (; *cut; cut++)
			world_set(&c->server, names[n], *cut, 1 + (int)rand_below(r, 4));
	}
	assert_int_equal(xds_variants_check(c->server.cache, NULL, &err), 0);
	xds_variants_commit(c->server.cache);
}

static void check_client(struct chain *c, int i, unsigned *ret_n_updates)
{
	struct xds_variants_event e;
	unsigned n_events[N_NAMES] = {0};
	while (xds_variants_drain(c->clients[i].world.cache, &e)) {
		int n = e.sub == c->leaves[i][1];
		assert_ptr_equal(e.sub, c->leaves[i][n]);
		n_events[n]++;
		assert_non_null(e.after);
		assert_int_equal(world_number(e.before), c->last[i][n]);
		c->last[i][n] = world_number(e.after);
		++*ret_n_updates;
	}
	for (int n = 0; n < N_NAMES; n++) {
		assert_true(n_events[n] <= 1);
		const struct xds_variant *seen = c->leaves[i][n]->variant;
		uint32_t n_matches;
		const struct xds_variant *there = xds_variants_match(
			c->server.cache, names[n], c->leaves[i][n]->params, &n_matches);
		assert_int_equal(n_matches, 1);
		assert_true(xds_constraints_eq(seen->constraints, there->constraints));
		assert_int_equal(world_number(seen), world_number(there));
		assert_int_equal(c->last[i][n], world_number(there));
	}
	// A leaf holds one variant a name, and nothing of those it does not match.
	struct xds_variants_counts counts;
	xds_variants_counts(c->clients[i].world.cache, &counts);
	assert_int_equal(counts.n_variants, N_NAMES);
	assert_int_equal(counts.n_unwanted, 0);
}

// TP2-P02 to TP2-P06: TP2-P03 is that each proxy gives what its upstream sends to those of its
// subscriptions that the constraints match.
static void each_client_goes_from_value_to_value_in_one_step(void **state)
{
	struct chain c;
	struct rand r;
	unsigned n_updates = 0;
	rand_init(&r, 20260104);
	chain_init(&c);
	struct xds_variants_counts counts;
	xds_variants_counts(c.server.cache, &counts);
	assert_int_equal(counts.n_subs, (N_CLIENTS - 1) * N_NAMES); // two clients are alike
	for (int step = 0; step < N_STEPS; step++) {
		reload(&c, &r);
		pass_on(&c.server, &c.proxy, 1, &r);
		pass_on(&c.proxy.world, c.clients, N_CLIENTS, &r);
		for (int i = 0; i < N_CLIENTS; i++)
			check_client(&c, i, &n_updates);
		// The proxy holds what its clients see, and nothing that the server has not.
		xds_variants_counts(c.proxy.world.cache, &counts);
		assert_in_range(counts.n_variants, N_NAMES, 4 * N_NAMES);
		assert_int_equal(counts.n_unwanted, 0);
		assert_int_equal(counts.n_ambiguous, 0);
	}
	assert_in_range(n_updates, 10000, N_STEPS * N_CLIENTS * N_NAMES);
	chain_fini(&c);
}

RUN_SUITE("xds/variants_chain", cmocka_unit_test(each_client_goes_from_value_to_value_in_one_step))
