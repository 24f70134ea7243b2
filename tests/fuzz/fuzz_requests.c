// SPDX-License-Identifier: Apache-2.0
// Any requests to the xDS server of tools/shunt-xds, as bytes and as messages made of few words, in
// state of the world and incrementally, while its resources change: each response can be read, has
// a nonce of its own, holds each variant once, and of a client that has asked only by names just
// what it asked for; an incremental one takes away only what it may have given; and there is an
// end to them. Input: an operation byte each, with what it takes.
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "proto/wire.h"
#include "tests/support/variant.h"
#include "tools/shunt-xds/ads_stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_NAMES 4
#define N_PARAMS 2 // none, env=prod
#define MAX_LISTED 8 // of one kind in a request that is made
// Responses that nothing asks for any more: an update and a removal of each type.
#define MAX_UNASKED (3 * N_RESOURCE_TYPES)

typedef Envoy__Service__Discovery__V3__DiscoveryRequest Request;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest DeltaRequest;
typedef Envoy__Service__Discovery__V3__DiscoveryResponse Response;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryResponse DeltaResponse;
typedef Envoy__Service__Discovery__V3__ResourceLocator Locator;
typedef Envoy__Service__Discovery__V3__ResourceLocator__DynamicParametersEntry Parameter;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest__InitialResourceVersionsEntry Version;
typedef Envoy__Service__Discovery__V3__Resource Wrapper;

static const char *const NAMES[N_NAMES] = {"a", "b", "xdstp://x/T/c", ""};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What one client has subscribed to of one type on its stream.
struct subscribed {
	bool open; // by wildcards, other names, or bytes: nothing is known
	bool started; // an empty list is no wildcard any more
	bool named[N_NAMES][N_PARAMS];
	bool given[N_NAMES][N_VARIANTS]; // was sent, or the client said that it has it
	uint64_t nonce; // of the last response
};

struct client {
	enum ads_protocol protocol;
	struct ads_stream *stream;
	struct subscribed types[N_RESOURCE_TYPES];
	uint64_t last_nonce;
};

struct play {
	const uint8_t *data, *end;
	struct catalog *catalog;
	struct client clients[2];
	uint64_t now_ns;
};

static struct xds_constraints *constraints[N_VARIANTS];
static struct xds_params *params[N_PARAMS];

// Once: they are the same for all inputs.
static void init(void)
{
	struct lb_err err;
	variants_init();
	for (enum variant v = 0; v < N_VARIANTS; v++)
		CHECK(xds_constraints_read(variant_constraints(v), &constraints[v], &err) == 0);
	CHECK(xds_params_new(&(struct xds_param){"env", "prod"}, 1, &params[1]) == 0);
}

static uint8_t take(struct play *p)
{
	return p->data < p->end ? *p->data++ : 0;
}

static int find_name(const char *name)
{
	int n = 0;
	while (n < N_NAMES && strcmp(NAMES[n], name) != 0)
		n++;
	return n;
}

static uint32_t find_type(const char *url)
{
	return (uint32_t)resource_type_find((struct str){url, strlen(url)});
}

static bool type_is_full(uint32_t type)
{
	return resource_type_info((enum resource_type)type)->full_state;
}

static char *text_of(const char *s)
{
	return (char *)(uintptr_t)s;
}

// Responses

// TP2-S01, TP2-S02: somebody asked for it with parameters that it is for.
static void check_wanted(const struct subscribed *w, int name, enum variant v)
{
	bool wanted = false;
	for (int k = 0; k < N_PARAMS; k++)
		wanted |= w->named[name][k] && xds_constraints_match(constraints[v], params[k]);
	CHECK(wanted || w->open);
}

static void check_given(struct subscribed *w, const char *text,
	const Envoy__Service__Discovery__V3__DynamicParameterConstraints *m,
	bool seen[N_NAMES][N_VARIANTS])
{
	struct xds_constraints *c;
	struct lb_err err;
	int name = find_name(text);
	CHECK(name < N_NAMES && xds_constraints_read(m, &c, &err) == 0);
	enum variant v = 0;
	while (v < N_VARIANTS && !xds_constraints_eq(constraints[v], c))
		v++;
	xds_constraints_put(c);
	CHECK(v < N_VARIANTS && !seen[name][v]);
	seen[name][v] = true;
	check_wanted(w, name, v);
	w->given[name][v] = true;
}

static void check_wrapper(
	struct subscribed *w, const Wrapper *r, const char *url, bool seen[N_NAMES][N_VARIANTS])
{
	CHECK(r->resource && strcmp(r->resource->type_url, url) == 0);
	CHECK(!*r->name == !!r->resource_name);
	if (r->resource_name)
		check_given(w, r->resource_name->name,
			r->resource_name->dynamic_parameter_constraints, seen);
	else
		check_given(w, r->name, NULL, seen);
}

// To clients that do not read wrappers a variant comes like this, too. Its body begins with the
// number of its name.
static void check_bare(
	struct subscribed *w, const Google__Protobuf__Any *any, bool seen[N_NAMES][N_VARIANTS])
{
	CHECK(any->value.len == 2 && any->value.data[0] < N_NAMES);
	int name = any->value.data[0];
	CHECK(w->open || w->named[name][0] || w->named[name][1]);
	CHECK(!seen[name][VARIANT_PLAIN]);
	seen[name][VARIANT_PLAIN] = true;
}

static void check_sotw(struct client *c, struct subscribed *w, const Response *m)
{
	bool seen[N_NAMES][N_VARIANTS] = {{false}};
	for (size_t i = 0; i < m->n_resources; i++) {
		const Google__Protobuf__Any *any = m->resources[i];
		if (strcmp(any->type_url, m->type_url) == 0) {
			check_bare(w, any, seen);
			continue;
		}
		Wrapper *r = proto_unpack(&envoy__service__discovery__v3__resource__descriptor,
			any->value.data, any->value.len, NULL);
		CHECK(r);
		check_wrapper(w, r, m->type_url, seen);
		proto_free(r);
	}
}

static void check_removed(struct subscribed *w, int name, enum variant v)
{
	// What never was is told as absent, once, and without constraints.
	CHECK(w->open || w->given[name][v] || v == VARIANT_PLAIN);
	w->given[name][v] = false;
}

static void check_delta(struct client *c, struct subscribed *w, const DeltaResponse *m)
{
	bool seen[N_NAMES][N_VARIANTS] = {{false}};
	for (size_t i = 0; i < m->n_removed_resources; i++) {
		int name = find_name(m->removed_resources[i]);
		CHECK(name < N_NAMES || w->open);
		if (name < N_NAMES)
			check_removed(w, name, VARIANT_PLAIN);
	}
	for (size_t i = 0; i < m->n_removed_resource_names; i++) {
		const Envoy__Service__Discovery__V3__ResourceName *r = m->removed_resource_names[i];
		struct xds_constraints *cons;
		struct lb_err err;
		CHECK(xds_constraints_read(r->dynamic_parameter_constraints, &cons, &err) == 0);
		int name = find_name(r->name);
		for (enum variant v = 1; name < N_NAMES && v < N_VARIANTS; v++)
			if (xds_constraints_eq(constraints[v], cons))
				check_removed(w, name, v);
		CHECK(cons);
		xds_constraints_put(cons);
	}
	for (size_t i = 0; i < m->n_resources; i++)
		check_wrapper(w, m->resources[i], m->type_url, seen);
}

static void check_response(struct client *c, const struct ads_response *r)
{
	uint8_t *bytes;
	size_t len;
	const ProtobufCMessageDescriptor *descriptor =
		c->protocol == ADS_SOTW
			? &envoy__service__discovery__v3__discovery_response__descriptor
			: &envoy__service__discovery__v3__delta_discovery_response__descriptor;
	uint32_t type = find_type(r->type->url);
	CHECK(type < N_RESOURCE_TYPES && r->protocol == c->protocol);
	CHECK(r->nonce > c->last_nonce && ads_response_encode(r, &bytes, &len) == 0);
	void *m = proto_unpack(descriptor, bytes, len, NULL);
	CHECK(m);
	c->last_nonce = c->types[type].nonce = r->nonce;
	if (c->protocol == ADS_SOTW)
		check_sotw(c, &c->types[type], m);
	else
		check_delta(c, &c->types[type], m);
	proto_free(m);
	free(bytes);
}

static bool drain_one(struct play *p, struct client *c)
{
	struct ads_response r;
	int rc = ads_stream_drain(c->stream, p->now_ns, &r);
	CHECK(rc == 0 || rc == 1);
	if (rc)
		check_response(c, &r);
	return rc;
}

static void drain_all(struct play *p, struct client *c)
{
	int n = 0;
	while (drain_one(p, c))
		CHECK(++n <= MAX_UNASKED);
}

// Requests

// The parts of a request that is made of few words.
struct made {
	char *names[MAX_LISTED];
	Locator locators[MAX_LISTED], *locator_list[MAX_LISTED];
	Parameter parameters[MAX_LISTED], *parameter_list[MAX_LISTED];
	size_t n_names, n_locators;
};

// Names, "*" and names of nothing; some with parameters. `subscribes` says what it means for them.
static void make(struct play *p, struct made *m, struct subscribed *w, bool subscribes)
{
	m->n_names = m->n_locators = 0;
	for (unsigned n = take(p) % MAX_LISTED; n > 0; n--) {
		uint8_t byte = take(p);
		int name = byte % (N_NAMES + 1), k = byte >> 4 & 1;
		const char *text = name < N_NAMES ? NAMES[name] : byte & 128 ? "*" : "z";
		if (name < N_NAMES)
			w->named[name][k] = subscribes;
		else
			w->open = true;
		if (!k) {
			m->names[m->n_names++] = text_of(text);
			continue;
		}
		size_t i = m->n_locators++;
		envoy__service__discovery__v3__resource_locator__init(&m->locators[i]);
		envoy__service__discovery__v3__resource_locator__dynamic_parameters_entry__init(
			&m->parameters[i]);
		m->parameters[i].key = text_of("env");
		m->parameters[i].value = text_of("prod");
		m->parameter_list[i] = &m->parameters[i];
		m->locators[i].name = text_of(text);
		m->locators[i].dynamic_parameters = &m->parameter_list[i];
		m->locators[i].n_dynamic_parameters = 1;
		m->locator_list[i] = &m->locators[i];
	}
}

// The nonce of the last response, of none, or another.
static char *nonce_of(struct play *p, const struct subscribed *w, char text[24])
{
	uint8_t byte = take(p);
	snprintf(text, 24, "%" PRIu64, w->nonce + (byte % 8 == 0));
	return byte % 4 == 1 || !w->nonce ? text_of("") : text;
}

static void feed_sotw(struct play *p, struct client *c, const Request *m)
{
	struct ads_request_result result;
	CHECK(ads_stream_feed_sotw(c->stream, m, p->now_ns, &result) == 0);
	CHECK(!result.type == (result.kind == ADS_REQUEST_UNKNOWN_TYPE));
}

static void feed_delta(struct play *p, struct client *c, const DeltaRequest *m)
{
	struct ads_request_result result;
	CHECK(ads_stream_feed_delta(c->stream, m, p->now_ns, &result) == 0);
	CHECK(!result.type == (result.kind == ADS_REQUEST_UNKNOWN_TYPE));
}

static void ask_sotw(struct play *p, struct client *c, uint32_t type)
{
	struct subscribed *w = &c->types[type], before = *w;
	struct made made;
	char nonce[24];
	Request m;
	Google__Rpc__Status error;
	google__rpc__status__init(&error);
	envoy__service__discovery__v3__discovery_request__init(&m);
	m.type_url = text_of(resource_type_info((enum resource_type)type)->url);
	m.response_nonce = nonce_of(p, w, nonce);
	m.error_detail = take(p) % 4 == 0 ? &error : NULL;
	m.version_info = text_of(take(p) % 4 ? "" : "1");
	memset(w->named, 0, sizeof(w->named));
	make(p, &made, w, true);
	m.resource_names = made.names;
	m.n_resource_names = made.n_names;
	m.resource_locators = made.locator_list;
	m.n_resource_locators = made.n_locators;
	bool is_empty = made.n_names + made.n_locators == 0;
	w->open |= is_empty && !w->started && type_is_full(type); // SW-10
	w->started |= !is_empty;
	bool is_stale =
		*m.response_nonce && w->nonce && strtoull(m.response_nonce, NULL, 10) != w->nonce;
	if (is_stale)
		*w = before; // SW-05
	feed_sotw(p, c, &m);
}

static void ask_delta(struct play *p, struct client *c, uint32_t type)
{
	struct subscribed *w = &c->types[type];
	struct made add, drop;
	char nonce[24];
	DeltaRequest m;
	Version version, *versions = &version;
	Google__Rpc__Status error;
	google__rpc__status__init(&error);
	envoy__service__discovery__v3__delta_discovery_request__init(&m);
	envoy__service__discovery__v3__delta_discovery_request__initial_resource_versions_entry__init(
		&version);
	m.type_url = text_of(resource_type_info((enum resource_type)type)->url);
	m.response_nonce = nonce_of(p, w, nonce);
	m.error_detail = take(p) % 4 == 0 ? &error : NULL;
	make(p, &drop, w, false);
	make(p, &add, w, true);
	m.resource_names_subscribe = add.names;
	m.n_resource_names_subscribe = add.n_names;
	m.resource_locators_subscribe = add.locator_list;
	m.n_resource_locators_subscribe = add.n_locators;
	m.resource_names_unsubscribe = drop.names;
	m.n_resource_names_unsubscribe = drop.n_names;
	m.resource_locators_unsubscribe = drop.locator_list;
	m.n_resource_locators_unsubscribe = drop.n_locators;
	bool is_empty = add.n_names + add.n_locators == 0;
	w->open |= is_empty && !w->started && type_is_full(type); // DL-11
	w->started = true;
	uint8_t held = take(p);
	if (held & 1) { // a version of ours, or any other
		int name = held >> 1 & 3;
		enum variant v = held >> 3 & 3;
		const struct resource *r =
			catalog_find(p->catalog, type, NAMES[name], constraints[v]);
		version.key = text_of(NAMES[name]);
		version.value = text_of(r ? r->version : "1");
		m.initial_resource_versions = &versions;
		m.n_initial_resource_versions = 1;
		memset(w->given[name], true, sizeof(w->given[name]));
	}
	feed_delta(p, c, &m);
}

// As they come: what can be read is taken in.
static void feed_bytes(struct play *p, struct client *c)
{
	size_t len = take(p), left = (size_t)(p->end - p->data);
	if (len > left)
		len = left;
	for (int t = 0; t < N_RESOURCE_TYPES; t++)
		c->types[t].open = true;
	void *m = proto_unpack(
		c->protocol == ADS_SOTW
			? &envoy__service__discovery__v3__discovery_request__descriptor
			: &envoy__service__discovery__v3__delta_discovery_request__descriptor,
		p->data, len, NULL);
	p->data += len;
	if (m && c->protocol == ADS_SOTW)
		feed_sotw(p, c, m);
	else if (m)
		feed_delta(p, c, m);
	proto_free(m);
}

// Resources

// Each name in one of the ways in which variants do not overlap.
static void publish(struct play *p)
{
	static const uint8_t CUTS[] = {0, 1 << VARIANT_PLAIN, 1 << VARIANT_PROD,
		1 << VARIANT_PROD | 1 << VARIANT_TEST, 1 << VARIANT_NOT_TEST,
		1 << VARIANT_NOT_TEST | 1 << VARIANT_TEST, 1 << VARIANT_ANY_ENV, 1 << VARIANT_TEST};
	struct lb_err err;
	uint8_t content = take(p);
	catalog_begin(p->catalog, XDS_CHANGE_FULL);
	for (int t = 0; t < N_RESOURCE_TYPES; t++) {
		uint8_t byte = take(p);
		for (int n = 0; n < N_NAMES - 1; n++) { // no resource is called ""
			uint8_t cut = CUTS[(byte >> 2 * n) % 8];
			for (enum variant v = 0; v < N_VARIANTS; v++) {
				uint8_t body[2] = {(uint8_t)n, content};
				if (!(cut >> v & 1))
					continue;
				struct resource *r = resource_new((enum resource_type)t, NAMES[n],
					constraints[v], body, sizeof(body), content & 1);
				CHECK(r && catalog_set(p->catalog, r, &err) == 0);
				resource_put(r);
			}
		}
	}
	enum resource_type clashing;
	CHECK(catalog_check(p->catalog, &clashing, NULL, &err) == 0);
	catalog_commit(p->catalog);
}

static void reopen(struct play *p, struct client *c)
{
	enum ads_protocol protocol = c->protocol;
	ads_stream_free(c->stream);
	*c = (struct client){.protocol = protocol, .stream = ads_stream_new(protocol, p->catalog)};
	CHECK(c->stream);
}

static void play_one(struct play *p)
{
	uint8_t op = take(p);
	struct client *c = &p->clients[op >> 7];
	uint32_t type = op >> 5 & 3;
	switch (op & 15) {
	case 0:
		publish(p);
		break;
	case 1:
		p->now_ns += take(p) * 50 * NS_PER_MS;
		break;
	case 2:
		reopen(p, c);
		break;
	case 3:
		feed_bytes(p, c);
		break;
	case 4:
	case 5:
	case 6:
		drain_one(p, c);
		break;
	case 7:
		drain_all(p, c);
		break;
	default:
		if (c->protocol == ADS_SOTW)
			ask_sotw(p, c, type);
		else
			ask_delta(p, c, type);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!params[1])
		init();
	struct play p = {.data = data, .end = data + size, .catalog = catalog_new(false)};
	CHECK(p.catalog);
	p.clients[0].protocol = ADS_SOTW;
	p.clients[1].protocol = ADS_DELTA;
	for (int i = 0; i < 2; i++)
		reopen(&p, &p.clients[i]);
	p.now_ns = 1000000 * NS_PER_MS;
	while (p.data < p.end)
		play_one(&p);
	for (int i = 0; i < 2; i++) {
		drain_all(&p, &p.clients[i]);
		ads_stream_free(p.clients[i].stream);
	}
	catalog_free(p.catalog);
	return 0;
}
