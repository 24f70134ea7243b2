// SPDX-License-Identifier: Apache-2.0
// A server that changes at random, a caching proxy that loses it now and then, which speaks either
// protocol with it, and delta clients
// that come, go, subscribe by name and to all, and return with what they hold. Once the world is
// quiet, each holds just what the server has for it, and the server sees each (name, parameters)
// that somebody wants once, and none that nobody has wanted for the grace (TP2-P01 to TP2-P06).
#include "ctrl/xds/client.h"
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"
#include "tests/unit/shunt-xds/proxy_world.h"
#include "tools/shunt-xds/ads_stream_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_PEERS 5
#define N_STEPS 10000
#define N_NAMES 4 // the last is "*"
#define N_PARAMS 3

static const char letters[] = "CELR";
static const char *const names[N_NAMES] = {"r", "s", "t", "*"};
static const char *const params_words[N_PARAMS] = {"", "env=prod", "env=prod,version=v1"};
static const char *const cuts[][3] = {
	{""},
	{"{env=prod}", "{!env=prod}"},
	{"{env=prod}"},
	{"{env=prod&version=v1}", "{env=prod&!version=v1}", "{!env=prod}"},
	{"{version=v1}", "{!version=v1}"},
};
#define N_CUTS (sizeof(cuts) / sizeof(cuts[0]))

struct world {
	struct proxy_world proxy;
	struct peer peers[N_PEERS];
	bool subscribed[N_PEERS][N_RESOURCE_TYPES][N_NAMES][N_PARAMS];
	struct xds_params *params[N_PARAMS];
	struct rand rand;
	unsigned n_responses, n_cuts;
};

static void publish(struct world *w)
{
	char words[1024] = "";
	for (int t = 0; t < N_RESOURCE_TYPES; t++) {
		for (int n = 0; n < N_NAMES - 1; n++) {
			const char *const *cut = cuts[rand_below(&w->rand, N_CUTS)];
			bool is_there = rand_below(&w->rand, 5) > 0;
			for (int i = 0; i < 3 && cut[i] && is_there; i++) {
				size_t len = strlen(words);
				snprintf(words + len, sizeof(words) - len, "%c:%s=%d%s ",
					letters[t], names[n], (int)rand_below(&w->rand, 3), cut[i]);
			}
		}
	}
	server_publish(&w->proxy.above, words);
}

static void add_change(char *text, size_t room, char sign, int name, int params)
{
	size_t len = strlen(text);
	snprintf(text + len, room - len, "%s%c%s%s%s%s", len > 0 ? " " : "", sign, names[name],
		params ? "{" : "", params_words[params], params ? "}" : "");
}

static bool matches(const char *version, const struct xds_params *params)
{
	struct xds_constraints *c = resource_version_constraints(version);
	bool is_its = xds_constraints_match(c, params);
	xds_constraints_put(c);
	return is_its;
}

static bool wants(const struct world *w, int i, int t, const char *name, int q)
{
	for (int n = 0; n < N_NAMES; n++)
		if (w->subscribed[i][t][n][q] &&
			(strcmp(names[n], name) == 0 || strcmp(names[n], "*") == 0))
			return true;
	return false;
}

static void forget_unwanted(struct world *w, int i)
{
	struct peer *p = &w->peers[i];
	for (size_t k = 0; k < p->n_held;) {
		const struct held *h = &p->held[k];
		bool is_wanted = false;
		for (int q = 0; q < N_PARAMS; q++)
			is_wanted |= wants(w, i, (int)h->type, h->name, q) &&
			             matches(h->version, w->params[q]);
		if (is_wanted)
			k++;
		else
			p->held[k] = p->held[--p->n_held];
	}
}

static void change_subscribed(struct world *w, int i)
{
	int t = (int)rand_below(&w->rand, N_RESOURCE_TYPES);
	int q = (int)rand_below(&w->rand, N_PARAMS);
	char text[256] = "";
	for (int n = 0; n < N_NAMES; n++) {
		bool *is_subscribed = &w->subscribed[i][t][n][q];
		if (rand_below(&w->rand, n == N_NAMES - 1 ? 8 : 2))
			continue;
		add_change(text, sizeof(text), *is_subscribed ? '-' : '+', n, q);
		*is_subscribed = !*is_subscribed;
	}
	// The first request of listeners or clusters is no empty one: it would be a wildcard.
	if (text[0])
		peer_change(&w->peers[i], letters[t], text, "", false);
	forget_unwanted(w, i);
}

// TP2-T10: of a name with several variants nothing can be said.
static void forget_several(struct peer *p)
{
	struct held kept[HELD_MAX];
	size_t n = 0;
	for (size_t k = 0; k < p->n_held; k++) {
		bool is_sole = true;
		for (size_t m = 0; m < p->n_held; m++)
			is_sole &= m == k || p->held[m].type != p->held[k].type ||
			           strcmp(p->held[m].name, p->held[k].name) != 0;
		if (is_sole)
			kept[n++] = p->held[k];
	}
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
				if (w->subscribed[i][t][n][q])
					add_change(text, sizeof(text), '+', n, q);
		if (text[0])
			peer_change(p, letters[t], text, "", false);
	}
}

static bool take_next(struct world *w, int i)
{
	struct peer *p = &w->peers[i];
	const char *text = peer_next(p);
	if (!text[0])
		return false;
	w->n_responses++;
	if (rand_below(&w->rand, 4) > 0)
		peer_change(p, text[0], "", peer_nonce(p, text[0]), false);
	return true;
}

static void settle(struct world *w)
{
	proxy_mend(&w->proxy);
	for (int round = 0; round < 8; round++) {
		proxy_pass(&w->proxy, 2 * NS_PER_SECOND);
		for (int i = 0; i < N_PEERS; i++) {
			while (take_next(w, i)) {
			}
			for (int t = 0; t < N_RESOURCE_TYPES; t++)
				if (w->peers[i].nonce[t])
					peer_ack(&w->peers[i], letters[t], "");
		}
	}
	proxy_pass(&w->proxy, 2 * GRACE);
}

static const struct held *held_for(const struct world *w, int i, int t, int n, int q)
{
	const struct peer *p = &w->peers[i];
	const struct held *found = NULL;
	for (size_t k = 0; k < p->n_held; k++) {
		const struct held *h = &p->held[k];
		if ((int)h->type != t || strcmp(h->name, names[n]) != 0 ||
			!matches(h->version, w->params[q]))
			continue;
		assert_null(found);
		found = h;
	}
	return found;
}

// Where SotW does not say what is gone (TP2-T12), the proxy goes on telling clients what was there
// last, and for another of a client's subscriptions that may be an older variant that matches too.
static void check_told(
	const struct world *w, int i, int t, int n, int q, const struct xds_variant *v)
{
	const struct subscription *s = &w->peers[i].stream->types[t].sub;
	const struct subscription_entry *found = NULL;
	for (size_t k = 0; k < s->n && v; k++) {
		const struct xds_sub *sub = s->entries[k].sub;
		if (strcmp(sub->name, names[n]) == 0 && xds_params_eq(sub->params, w->params[q]))
			found = &s->entries[k];
	}
	if (!v)
		return;
	assert_true(found && found->sent);
	assert_string_equal(found->sent->version, v->version);
}

static void check_peer(const struct world *w, int i, int t, int q)
{
	for (int n = 0; n < N_NAMES - 1; n++) {
		if (!wants(w, i, t, names[n], q))
			continue;
		const struct xds_variant *v = xds_variants_match(
			w->proxy.above.catalog->types[t].cache, names[n], w->params[q], NULL);
		if (!w->proxy.is_delta && !resource_type_info((enum resource_type)t)->full_state) {
			check_told(w, i, t, n, q, v);
			continue;
		}
		const struct held *h = held_for(w, i, t, n, q);
		assert_int_equal(h != NULL, v != NULL);
		if (v)
			assert_string_equal(h->version, v->version);
	}
}

static void check_settled(struct world *w)
{
	struct upstream_counts counts;
	size_t n_subscribed = 0;
	for (int t = 0; t < N_RESOURCE_TYPES; t++) {
		for (int q = 0; q < N_PARAMS; q++) {
			for (int i = 0; i < N_PEERS; i++)
				check_peer(w, i, t, q);
			for (int n = 0; n < N_NAMES; n++) {
				bool is_any = false;
				for (int i = 0; i < N_PEERS; i++)
					is_any |= w->subscribed[i][t][n][q];
				n_subscribed += is_any;
			}
		}
	}
	upstream_counts(w->proxy.upstream, &counts);
	assert_int_equal(counts.n_subscriptions, n_subscribed);
	assert_int_equal(counts.n_idle, 0);
	// Words, one for each: what the server sees.
	size_t n_seen = 0;
	for (const char *c = proxy_asked(&w->proxy); *c; c++)
		n_seen += *c == ':';
	assert_int_equal(n_seen, n_subscribed);
}

static void step(struct world *w)
{
	int i = (int)rand_below(&w->rand, N_PEERS);
	uint64_t what = rand_below(&w->rand, 100);
	if (what < 10)
		publish(w);
	else if (what < 25)
		change_subscribed(w, i);
	else if (what < 28)
		come_back(w, i);
	else if (what < 31)
		proxy_cut(&w->proxy), w->n_cuts++;
	else if (what < 34)
		proxy_mend(&w->proxy);
	else if (what < 60)
		proxy_run(&w->proxy);
	else if (what < 90)
		(void)take_next(w, i);
	else
		proxy_pass(&w->proxy, rand_below(&w->rand, NS_PER_SECOND));
}

static void converge(const struct xds_protocol *protocol, uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));
	rand_init(&w->rand, seed);
	proxy_init(&w->proxy, protocol);
	for (int q = 0; q < N_PARAMS; q++) {
		char text[64];
		snprintf(text, sizeof(text), "%s", params_words[q]);
		for (char *c = text; *c; c++)
			*c = *c == ',' ? ' ' : *c;
		w->params[q] = params_of(text);
	}
	for (int i = 0; i < N_PEERS; i++)
		peer_open(&w->peers[i], &w->proxy.below, ADS_DELTA);
	for (int n = 0; n < N_STEPS; n++) {
		step(w);
		if (n % 100 != 99)
			continue;
		settle(w);
		check_settled(w);
	}
	assert_true(w->n_responses > N_STEPS / 10 && w->n_cuts > N_STEPS / 100);
	for (int i = 0; i < N_PEERS; i++)
		peer_close(&w->peers[i]);
	for (int q = 0; q < N_PARAMS; q++)
		xds_params_put(w->params[q]);
	proxy_fini(&w->proxy);
	free(w);
}

// The first have found something once. SHUNT_SEED=N runs that one alone.
static const uint64_t seeds[] = {8, 13, 32, 20261121};

static void converge_each(const struct xds_protocol *protocol)
{
	const char *given = getenv("SHUNT_SEED");
	uint64_t own = given ? strtoull(given, NULL, 0) : 0;
	const uint64_t *list = given ? &own : seeds;
	size_t n = given ? 1 : sizeof(seeds) / sizeof(seeds[0]);
	for (size_t i = 0; i < n; i++) {
		print_message("seed %llu\n", (unsigned long long)list[i]);
		converge(protocol, list[i]);
	}
}

static void clients_converge_to_the_server_through_a_delta_proxy(void **state)
{
	converge_each(&xds_protocol_delta);
}

static void clients_converge_to_the_server_through_a_sotw_proxy(void **state)
{
	converge_each(&xds_protocol_sotw);
}

RUN_SUITE("shunt-xds/upstream_random",
	cmocka_unit_test(clients_converge_to_the_server_through_a_delta_proxy),
	cmocka_unit_test(clients_converge_to_the_server_through_a_sotw_proxy))
