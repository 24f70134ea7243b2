// SPDX-License-Identifier: Apache-2.0
// A server whose folder is cut anew at random, and delta clients that come, go, subscribe, refuse
// and return with what they hold. After each response that a client takes in, no two variants of a
// name that it holds match one of its subscriptions (TP2-S05, TP2-T08), and once the world is quiet
// each holds just what the server has for it.
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"
#include "tests/unit/shunt-xds/stream_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_PEERS 6
#define N_STEPS 20000
#define N_NAMES 3
#define N_PARAMS 4

static const char letters[] = "CELR";
static const char *const names[N_NAMES] = {"r", "s", "t"};
static const char *const params_words[N_PARAMS] = {
	"", "env=prod", "env=prod,version=v1", "env=test,version=v1"};
// Ways to cut a resource: no two variants overlap; some match nobody.
static const char *const cuts[][3] = {
	{""},
	{"{env=prod}", "{!env=prod}"},
	{"{env=prod}"},
	{"{env=prod&version=v1}", "{env=prod&!version=v1}"},
	{"{env=prod&version=v1}", "{env=prod&!version=v1}", "{!env=prod}"},
	{"{!env}", "{env}"},
	{"{version=v1}", "{!version=v1}"},
};
#define N_CUTS (sizeof(cuts) / sizeof(cuts[0]))

// What a client has subscribed to: names with parameters.
struct subscribed {
	bool named[N_RESOURCE_TYPES][N_NAMES][N_PARAMS];
};

struct world {
	struct server server;
	struct peer peers[N_PEERS];
	struct subscribed subscribed[N_PEERS];
	struct xds_params *params[N_PARAMS];
	struct rand rand;
	unsigned n_responses;
};

static void publish(struct world *w)
{
	char words[1024] = "";
	for (int t = 0; t < N_RESOURCE_TYPES; t++) {
		for (int n = 0; n < N_NAMES; n++) {
			const char *const *cut = cuts[rand_below(&w->rand, N_CUTS)];
			bool is_there = rand_below(&w->rand, 5) > 0;
			for (int i = 0; i < 3 && cut[i] && is_there; i++) {
				size_t len = strlen(words);
				snprintf(words + len, sizeof(words) - len, "%c:%s=%d%s ",
					letters[t], names[n], (int)rand_below(&w->rand, 3), cut[i]);
			}
		}
	}
	server_publish(&w->server, words);
}

// "+r{env=prod} -s".
static void add_change(char *text, size_t room, char sign, int name, int params)
{
	size_t len = strlen(text);
	snprintf(text + len, room - len, "%s%c%s%s%s%s", len > 0 ? " " : "", sign, names[name],
		params ? "{" : "", params_words[params], params ? "}" : "");
}

static bool held_matches(const struct held *h, const struct xds_params *params)
{
	struct xds_constraints *c = resource_version_constraints(h->version);
	bool matches = xds_constraints_match(c, params);
	xds_constraints_put(c);
	return matches;
}

// A client drops what it wants no more.
static void forget_unwanted(struct world *w, int i)
{
	struct peer *p = &w->peers[i];
	for (size_t k = 0; k < p->n_held;) {
		const struct held *h = &p->held[k];
		bool is_wanted = false;
		for (int n = 0; n < N_NAMES; n++)
			for (int q = 0; q < N_PARAMS && strcmp(h->name, names[n]) == 0; q++)
				is_wanted |= w->subscribed[i].named[h->type][n][q] &&
				             held_matches(h, w->params[q]);
		if (is_wanted)
			k++;
		else
			p->held[k] = p->held[--p->n_held];
	}
}

static void change_subscribed(struct world *w, int i)
{
	int t = (int)rand_below(&w->rand, N_RESOURCE_TYPES);
	int params = (int)rand_below(&w->rand, N_PARAMS);
	char text[256] = "";
	for (int n = 0; n < N_NAMES; n++) {
		bool *is_subscribed = &w->subscribed[i].named[t][n][params];
		if (rand_below(&w->rand, 2))
			continue;
		add_change(text, sizeof(text), *is_subscribed ? '-' : '+', n, params);
		*is_subscribed = !*is_subscribed;
	}
	if (text[0])
		peer_change(&w->peers[i], letters[t], text, "", false);
	forget_unwanted(w, i);
}

static bool is_sole(const struct peer *p, const struct held *h)
{
	for (size_t m = 0; m < p->n_held; m++)
		if (&p->held[m] != h && p->held[m].type == h->type &&
			strcmp(p->held[m].name, h->name) == 0)
			return false;
	return true;
}

// TP2-T10: of a name with several variants nothing can be said, so that they are let go.
static void forget_several(struct peer *p)
{
	struct held kept[HELD_MAX];
	size_t n = 0;
	for (size_t k = 0; k < p->n_held; k++)
		if (is_sole(p, &p->held[k]))
			kept[n++] = p->held[k];
	memcpy(p->held, kept, n * sizeof(*kept));
	p->n_held = n;
}

static void come_back(struct world *w, int i)
{
	struct peer *p = &w->peers[i];
	forget_unwanted(w, i);
	forget_several(p);
	peer_reopen(p);
	for (int t = 0; t < N_RESOURCE_TYPES; t++) {
		char text[512] = "";
		for (int n = 0; n < N_NAMES; n++)
			for (int q = 0; q < N_PARAMS; q++)
				if (w->subscribed[i].named[t][n][q])
					add_change(text, sizeof(text), '+', n, q);
		if (text[0])
			peer_change(p, letters[t], text, "", false);
	}
}

// What the client holds for this subscription; NULL = nothing. Never two.
static const struct held *held_for(const struct world *w, int i, int t, int n, int q)
{
	const struct peer *p = &w->peers[i];
	const struct held *found = NULL;
	for (size_t k = 0; k < p->n_held; k++) {
		const struct held *h = &p->held[k];
		if ((int)h->type != t || strcmp(h->name, names[n]) != 0 ||
			!held_matches(h, w->params[q]))
			continue;
		assert_null(found);
		found = h;
	}
	return found;
}

static bool take_next(struct world *w, int i)
{
	struct peer *p = &w->peers[i];
	const char *text = peer_next(p);
	if (!text[0])
		return false;
	w->n_responses++;
	for (int n = 0; n < N_NAMES; n++)
		for (int q = 0; q < N_PARAMS; q++)
			if (w->subscribed[i].named[type_of(text[0])][n][q])
				(void)held_for(w, i, (int)type_of(text[0]), n, q);
	// Refused endpoints hold nothing up.
	bool refuses = text[0] == 'E' && rand_below(&w->rand, 8) == 0;
	if (rand_below(&w->rand, 4) > 0)
		peer_change(p, text[0], "", peer_nonce(p, text[0]), refuses);
	return true;
}

// Everybody answers, and time goes by.
static void settle(struct world *w)
{
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < N_PEERS; i++) {
			struct peer *p = &w->peers[i];
			while (take_next(w, i)) {
			}
			for (int t = 0; t < N_RESOURCE_TYPES; t++)
				if (p->nonce[t])
					peer_ack(p, letters[t], "");
		}
		w->server.now_ns += 2 * NS_PER_SECOND;
	}
}

static void check_settled(struct world *w)
{
	for (int i = 0; i < N_PEERS; i++) {
		assert_int_equal(ads_stream_due_ns(w->peers[i].stream), UINT64_MAX);
		for (int t = 0; t < N_RESOURCE_TYPES; t++) {
			for (int n = 0; n < N_NAMES; n++) {
				for (int q = 0; q < N_PARAMS; q++) {
					if (!w->subscribed[i].named[t][n][q])
						continue;
					const struct held *h = held_for(w, i, t, n, q);
					const struct xds_variant *v = xds_variants_match(
						w->server.catalog->types[t].cache, names[n],
						w->params[q], NULL);
					assert_int_equal(h != NULL, v != NULL);
					if (v)
						assert_string_equal(h->version, v->version);
				}
			}
		}
	}
}

static void clients_converge_to_the_server(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	rand_init(&w->rand, 20260107);
	server_init(&w->server, false);
	for (int q = 0; q < N_PARAMS; q++) {
		char text[64];
		snprintf(text, sizeof(text), "%s", params_words[q]);
		for (char *c = text; *c; c++)
			*c = *c == ',' ? ' ' : *c;
		w->params[q] = params_of(text);
	}
	for (int i = 0; i < N_PEERS; i++)
		peer_open(&w->peers[i], &w->server, ADS_DELTA);
	for (int step = 0; step < N_STEPS; step++) {
		int i = (int)rand_below(&w->rand, N_PEERS);
		uint64_t what = rand_below(&w->rand, 100);
		if (what < 10)
			publish(w);
		else if (what < 30)
			change_subscribed(w, i);
		else if (what < 33)
			come_back(w, i);
		else if (what < 90)
			(void)take_next(w, i);
		else
			w->server.now_ns += rand_below(&w->rand, NS_PER_SECOND);
		if (step % 100 == 99) {
			settle(w);
			check_settled(w);
		}
	}
	assert_true(w->n_responses > N_STEPS / 10);
	for (int i = 0; i < N_PEERS; i++)
		peer_close(&w->peers[i]);
	for (int q = 0; q < N_PARAMS; q++)
		xds_params_put(w->params[q]);
	server_fini(&w->server);
	free(w);
}

RUN_SUITE("shunt-xds/ads_random", cmocka_unit_test(clients_converge_to_the_server))
