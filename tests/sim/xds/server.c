// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/xds/server.h"

#include "ctrl/base/strmap.h"
#include "ctrl/xds/type.h"
#include "lb/base/check.h"

#include <xxhash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ENTRIES 64
#define CODE_NOT_FOUND 5
#define CODE_UNAVAILABLE 14

typedef Envoy__Service__Discovery__V3__DiscoveryRequest Request;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest DeltaRequest;
typedef Envoy__Service__Discovery__V3__ResourceLocator Locator;

static bool chance(struct server *s, unsigned percent)
{
	return rand_below(s->rand, 100) < percent;
}

// The server can tell later what variant a version of its own was. Never 0.
static uint64_t version_of(const struct server *s, const uint8_t *bytes, size_t len, enum variant v)
{
	return (XXH64(bytes, len, s->salt) & ~0xfffull) | (s->salt & 0xff) << 4 | 8 | v;
}

static bool is_own_version(const struct server *s, uint64_t version)
{
	return (version >> 4 & 0xff) == (s->salt & 0xff);
}

void server_init(struct server *s, const struct world *w, struct rand *r)
{
	*s = (struct server){.world = w, .old = *w, .rand = r, .salt = 1};
}

static void new_stream_state(struct server *s)
{
	bool is_new = s->client != s->ads.n_connects; // it has heard nothing yet
	for (unsigned t = 0; t < RES_N_TYPES; t++) {
		struct server_type *st = &s->types[t];
		// Accepted, and the ACK was lost with the stream; or not even read to its end.
		if (!st->answered && !st->bad)
			strcpy(st->perhaps, st->version);
		if (is_new)
			st->accepted[0] = st->perhaps[0] = '\0';
		st->asked = st->again = 0;
		st->requested = st->bad = false;
		st->answered = true;
		st->nonce[0] = '\0';
		memset(st->held, 0, sizeof(st->held));
	}
	s->stream = s->ads.n_streams;
	s->client = s->ads.n_connects;
	s->node_due = true;
	s->ads.n_read = s->ads.n_stale;
}

static unsigned find_type(const char *url)
{
	unsigned t = 0;
	while (strcmp(res_types[t]->url, url) != 0)
		t++;
	return t;
}

// PC-06: the first request with the nonce is the answer.
static void take_answer(struct server *s, struct server_type *st, const Google__Rpc__Status *error)
{
	st->answered = true;
	CHECK(!error == !st->bad);
	if (error) {
		CHECK(error->code == 3 && *error->message);
		s->n_nacks++;
	} else {
		strcpy(st->accepted, st->version);
		s->n_acks++;
	}
}

// FE-04: a server is asked for what it has authority over.
static uint32_t name_bit(const struct server *s, unsigned type, const char *name, int *ret)
{
	const struct world_shape *shape = &s->world->shape;
	char canonical[WORLD_NAME_SIZE];
	int n = world_find(type, name);
	CHECK(n >= 0 && n < world_count(type));
	world_name(shape, type, n, canonical);
	CHECK(strcmp(name, canonical) == 0 && s->serves[world_authority(shape, n)]);
	*ret = n;
	return 1u << n;
}

// TP2-T04, TP2-B03: names without parameters come as such.
static uint32_t plain_bit(const struct server *s, unsigned type, const char *name, int *ret)
{
	uint32_t bit = name_bit(s, type, name, ret);
	CHECK(!s->world->shape.has_params[world_authority(&s->world->shape, *ret)]);
	return bit;
}

// TP2-L01
static uint32_t locator_bit(const struct server *s, unsigned type, const Locator *l, int *ret)
{
	uint32_t bit = name_bit(s, type, l->name, ret);
	CHECK(s->world->shape.has_params[world_authority(&s->world->shape, *ret)]);
	CHECK(l->n_dynamic_parameters == 1);
	CHECK(strcmp(l->dynamic_parameters[0]->key, "env") == 0);
	CHECK(strcmp(l->dynamic_parameters[0]->value, "prod") == 0);
	return bit;
}

static void read_sotw(struct server *s, const Request *r)
{
	unsigned t = find_type(r->type_url);
	struct server_type *st = &s->types[t];
	CHECK(!r->node == !s->node_due); // PC-03
	s->node_due = false;
	CHECK(st->requested || r->n_resource_names || r->n_resource_locators); // SW-09
	CHECK(strcmp(r->response_nonce, st->nonce) == 0);
	if (st->answered)
		CHECK(!r->error_detail);
	else
		take_answer(s, st, r->error_detail); // SW-02, SW-03
	if (s->may_be_forgotten && !*r->version_info)
		st->accepted[0] = '\0';
	if (*st->perhaps && strcmp(r->version_info, st->perhaps) == 0)
		strcpy(st->accepted, st->perhaps);
	st->perhaps[0] = '\0';
	CHECK(strcmp(r->version_info, st->accepted) == 0); // SW-07
	st->requested = true;
	st->asked = 0;
	size_t n_names = r->n_resource_names;
	for (size_t i = 0; i < n_names + r->n_resource_locators; i++) {
		int n;
		uint32_t bit = i < n_names
		                       ? plain_bit(s, t, r->resource_names[i], &n)
		                       : locator_bit(s, t, r->resource_locators[i - n_names], &n);
		CHECK(!(st->asked & bit)); // no name twice
		st->asked |= bit;
	}
}

static void read_delta(struct server *s, const DeltaRequest *r)
{
	unsigned t = find_type(r->type_url);
	struct server_type *st = &s->types[t];
	size_t n_subscribe = r->n_resource_names_subscribe + r->n_resource_locators_subscribe;
	size_t n_unsubscribe = r->n_resource_names_unsubscribe + r->n_resource_locators_unsubscribe;
	int n;
	CHECK(!r->node == !s->node_due); // PC-03
	s->node_due = false;
	CHECK(st->requested || n_subscribe); // DL-11
	if (*r->response_nonce) { // DL-04
		CHECK(!st->answered && strcmp(r->response_nonce, st->nonce) == 0);
		take_answer(s, st, r->error_detail);
	} else {
		CHECK(!r->error_detail);
		CHECK(n_subscribe || n_unsubscribe); // DL-03
	}
	uint32_t changed = 0;
	size_t n_names = r->n_resource_names_subscribe;
	for (size_t i = 0; i < n_subscribe; i++) {
		uint32_t bit = i < n_names
		                       ? plain_bit(s, t, r->resource_names_subscribe[i], &n)
		                       : locator_bit(s, t,
						 r->resource_locators_subscribe[i - n_names], &n);
		CHECK(!(changed & bit)); // no name twice
		changed |= bit;
		st->asked |= bit;
		st->again |= bit; // DL-09: it must be sent again
	}
	n_names = r->n_resource_names_unsubscribe;
	for (size_t i = 0; i < n_unsubscribe; i++) {
		uint32_t bit = i < n_names
		                       ? plain_bit(s, t, r->resource_names_unsubscribe[i], &n)
		                       : locator_bit(s, t,
						 r->resource_locators_unsubscribe[i - n_names], &n);
		CHECK(st->asked & ~changed & bit);
		st->asked &= ~bit;
		memset(st->held[n], 0, sizeof(st->held[n]));
	}
	CHECK(!st->requested || !r->n_initial_resource_versions); // DL-02
	st->requested = true;
	for (size_t i = 0; i < r->n_initial_resource_versions; i++) {
		CHECK(st->asked & name_bit(s, t, r->initial_resource_versions[i]->key, &n));
		uint64_t version = strtoull(r->initial_resource_versions[i]->value, NULL, 16);
		CHECK(version);
		s->n_held++;
		if (is_own_version(s, version)) {
			st->held[n][version % 8] = version;
			st->again &= ~(1u << n);
		}
	}
}

void server_read(struct server *s, bool settle)
{
	if (s->is_down && s->ads.stream)
		fake_ads_close(&s->ads, "refused");
	if (s->stream != s->ads.n_streams)
		new_stream_state(s);
	if (settle)
		fake_ads_settle(&s->ads);
	for (const ProtobufCMessage *m; (m = fake_ads_arrived(&s->ads));) {
		if (s->ads.delta)
			read_delta(s, (const DeltaRequest *)m);
		else
			read_sotw(s, (const Request *)m);
	}
	fake_ads_forget(&s->ads);
}

// What a response will say.
struct answer {
	struct fake_resource list[MAX_ENTRIES];
	char names[MAX_ENTRIES][WORLD_NAME_SIZE], versions[MAX_ENTRIES][24];
	size_t n;
	char gone[MAX_ENTRIES][WORLD_NAME_SIZE];
	const char *removed[MAX_ENTRIES];
	size_t n_removed;
	// By number, variants as bits; both is an error (DL-12).
	uint32_t there[N_CLUSTERS], absent[N_CLUSTERS];
	bool bad;
	bool twice; // something is there twice, so that nothing of it counts (PC-07)
};

// One more entry of a resource.
static void add(struct server *s, struct answer *a, unsigned type, int i, enum variant v,
	struct fake_resource r, bool bad)
{
	if (a->n == MAX_ENTRIES) {
		free((void *)(uintptr_t)r.bytes);
		return;
	}
	struct server_type *st = &s->types[type];
	bool first = !(a->there[i] >> v & 1);
	uint64_t version = version_of(s, r.bytes, r.len, v) ^ ((uint64_t)bad << 63);
	snprintf(a->versions[a->n], sizeof(a->versions[0]), "%llx", (unsigned long long)version);
	world_name(&s->world->shape, type, i, a->names[a->n]);
	r.version = a->versions[a->n];
	r.constraints = variant_constraints(v);
	if (s->ads.delta || r.wrapper_name || r.constraints) // TP2-T06
		r.wrapper_name = a->names[a->n];
	a->list[a->n++] = r;
	a->twice = a->twice || !first || (a->absent[i] >> v & 1);
	a->bad = a->bad || bad || a->twice;
	a->there[i] |= 1u << v;
	if (first) {
		st->held[i][v] = version;
		st->again &= ~(1u << i);
	}
	if (bad && v != s->world->variants[type][i])
		st->again |= 1u << i; // the client may have dropped the right one for it
}

static struct fake_resource resource_of(struct server *s, unsigned type, int i, bool bad, bool wild)
{
	struct fake_resource r = {.wrapper_name = wild && chance(s, 30) ? "" : NULL};
	const struct world *w = wild && chance(s, 10) ? &s->old : s->world;
	r.bytes = world_bytes(w, type, i, bad, &r.len);
	return r;
}

static void note_absent(struct server *s, struct answer *a, unsigned type, int i, enum variant v)
{
	if ((a->there[i] | a->absent[i]) >> v & 1)
		a->bad = a->twice = true;
	if (!(a->there[i] >> v & 1))
		s->types[type].held[i][v] = 0;
	a->absent[i] |= 1u << v;
}

// TP2-T07
static void add_removed(struct server *s, struct answer *a, unsigned type, int i, enum variant v)
{
	if (!s->ads.delta || a->n == MAX_ENTRIES || a->n_removed == MAX_ENTRIES)
		return; // else absence says it
	if (variant_constraints(v)) {
		world_name(&s->world->shape, type, i, a->names[a->n]);
		a->list[a->n] = (struct fake_resource){
			.wrapper_name = a->names[a->n],
			.constraints = variant_constraints(v),
			.is_removed = true,
		};
		a->n++;
	} else {
		world_name(&s->world->shape, type, i, a->gone[a->n_removed]);
		a->removed[a->n_removed] = a->gone[a->n_removed];
		a->n_removed++;
	}
	note_absent(s, a, type, i, v);
	s->types[type].again |= 1u << i; // TP2-S05: with what takes its place
}

// The server cannot give it, for now or for good (DE-07).
static void add_error(struct server *s, struct answer *a, unsigned type, int i, enum variant v)
{
	if (a->n == MAX_ENTRIES)
		return;
	world_name(&s->world->shape, type, i, a->names[a->n]);
	a->list[a->n] = (struct fake_resource){
		.wrapper_name = a->names[a->n],
		.constraints = variant_constraints(v),
		.error_code = chance(s, 50) ? CODE_NOT_FOUND : CODE_UNAVAILABLE,
	};
	a->n++;
	note_absent(s, a, type, i, v);
	s->types[type].again |= 1u << i; // the client may have dropped any variant for it
}

static bool is_held(struct server *s, unsigned type, int i)
{
	size_t len;
	enum variant v = s->world->variants[type][i];
	const struct server_type *st = &s->types[type];
	uint8_t *bytes = world_bytes(s->world, type, i, false, &len);
	bool held = st->held[i][v] == version_of(s, bytes, len, v);
	free(bytes);
	return held && !(st->again >> i & 1);
}

// What a good server says of one resource that is asked for: one variant of it, if any (TP2-S05).
static void say_one(struct server *s, struct answer *a, unsigned type, int i)
{
	enum variant now = s->world->variants[type][i];
	bool gone = s->world->gone[type][i];
	for (enum variant v = 0; v < N_VARIANTS; v++)
		if (s->types[type].held[i][v] && (gone || v != now))
			add_removed(s, a, type, i, v);
	if (!gone && (!s->ads.delta || !is_held(s, type, i)))
		add(s, a, type, i, now, resource_of(s, type, i, false, false), false);
}

// Also one that is not for this client.
static enum variant any_variant(struct server *s, unsigned type, int i)
{
	bool has_params = s->world->shape.has_params[world_authority(&s->world->shape, i)];
	if (!has_params || chance(s, 70))
		return s->world->variants[type][i];
	return (enum variant)rand_below(s->rand, N_VARIANTS);
}

static void say_one_wildly(struct server *s, struct answer *a, unsigned type, int i)
{
	bool asked = s->types[type].asked >> i & 1;
	enum variant v = any_variant(s, type, i);
	if (chance(s, 10) || (!asked && !chance(s, 5)))
		return;
	if (!asked) { // the client need not look at it (PC-08), or wants it since
		add(s, a, type, i, v, resource_of(s, type, i, false, true), false);
		return;
	}
	if (chance(s, 80)) {
		bool bad = !s->world->gone[type][i] && chance(s, 10);
		if (bad || chance(s, 30))
			add(s, a, type, i, v, resource_of(s, type, i, bad, true), bad);
		else
			say_one(s, a, type, i);
	}
	if (chance(s, 3))
		add(s, a, type, i, v, resource_of(s, type, i, false, true), false);
	if (chance(s, 3))
		add_error(s, a, type, i, v);
	if (chance(s, 3))
		add_removed(s, a, type, i, v);
}

static void say(struct server *s, unsigned type, struct answer *a)
{
	struct server_type *st = &s->types[type];
	size_t len;
	uint8_t *bytes;
	snprintf(st->nonce, sizeof(st->nonce), "n%u", ++s->n_said);
	snprintf(
		st->version, sizeof(st->version), "%s%u", a->twice ? SERVER_TWICE : "v", s->n_said);
	st->bad = a->bad;
	st->answered = false;
	s->n_responses++;
	if (s->ads.delta)
		bytes = fake_ads_encode_delta(res_types[type]->url, st->nonce, a->list, a->n,
			a->removed, a->n_removed, &len);
	else
		bytes = fake_ads_encode(
			res_types[type]->url, st->version, st->nonce, a->list, a->n, &len);
	fake_ads_say(&s->ads, bytes, len);
	free(bytes);
	for (size_t i = 0; i < a->n; i++)
		free((void *)(uintptr_t)a->list[i].bytes);
}

// The client will use nothing of it, and never hold one of these versions. The server will say all
// of it again.
static void take_back(
	struct server *s, unsigned type, struct answer *a, const struct server_type *before)
{
	struct server_type *st = &s->types[type];
	memcpy(st->held, before->held, sizeof(st->held));
	for (int i = 0; i < world_count(type); i++)
		if (a->there[i] | a->absent[i])
			st->again |= 1u << i;
	for (size_t i = 0; i < a->n; i++)
		if (a->list[i].version)
			snprintf(a->versions[i], sizeof(a->versions[i]), SERVER_TWICE "%zu", i);
	s->n_taken_back++;
}

static void respond(struct server *s, unsigned type, bool wild)
{
	struct answer a;
	const struct server_type before = s->types[type];
	a.n = a.n_removed = a.bad = a.twice = 0;
	memset(a.there, 0, sizeof(a.there));
	memset(a.absent, 0, sizeof(a.absent));
	for (int i = 0; i < world_count(type); i++) {
		if (wild)
			say_one_wildly(s, &a, type, i);
		else if (s->types[type].asked >> i & 1)
			say_one(s, &a, type, i);
	}
	if (wild && chance(s, 3) && a.n < MAX_ENTRIES) {
		a.list[a.n++] = (struct fake_resource){
			.bytes = (uint8_t *)calloc(1, 3), .len = 3, .version = "1"};
		a.bad = true;
	}
	if (s->ads.delta && !wild && !a.n && !a.n_removed)
		return; // it has everything
	if (a.twice)
		take_back(s, type, &a, &before);
	say(s, type, &a);
}

void server_respond_at_random(struct server *s)
{
	unsigned type = (unsigned)rand_below(s->rand, RES_N_TYPES);
	server_read(s, false);
	if (chance(s, 1))
		s->old = *s->world;
	if (!s->ads.stream || !s->ads.reading)
		return;
	if (chance(s, 3)) {
		fake_ads_say(&s->ads, (const uint8_t *)"\x0a\xff", 2); // PC-05
	} else if (chance(s, 3)) {
		static const uint8_t unknown[] = "\x22\x03x.Y\x2a\x01n"; // PC-04
		fake_ads_say(&s->ads, unknown, sizeof(unknown) - 1);
	} else if (s->types[type].requested) {
		respond(s, type, true);
	}
}

void server_say_all(struct server *s)
{
	for (unsigned t = 0; t < RES_N_TYPES; t++) {
		server_read(s, true);
		if (s->ads.stream && s->ads.reading && s->types[t].requested)
			respond(s, t, false);
	}
	server_read(s, true);
}

void server_lose(struct server *s, const char *why)
{
	server_read(s, false);
	if (!s->ads.stream)
		return;
	if (chance(s, 30))
		s->salt++;
	fake_ads_close(&s->ads, why);
}

void server_toggle(struct server *s)
{
	s->is_down = !s->is_down;
	server_read(s, false);
}

void server_check_answered(const struct server *s)
{
	if (!s->ads.stream || s->stream != s->ads.n_streams) // the client left
		return;
	for (unsigned t = 0; t < RES_N_TYPES; t++)
		CHECK(s->types[t].answered);
}
