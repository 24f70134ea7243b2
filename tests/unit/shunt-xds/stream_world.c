// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shunt-xds/stream_world.h"

#include "ctrl/xds/variants/constraints.h"
#include "google/protobuf/any.pb-c.h"
#include "proto/wire.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_NAMES_MAX 16
#define WORD_MAX 96

typedef Envoy__Service__Discovery__V3__Resource resource_message;
typedef Envoy__Service__Discovery__V3__ResourceName name_message;
typedef Envoy__Service__Discovery__V3__ResourceLocator locator_message;
typedef Envoy__Service__Discovery__V3__ResourceLocator__DynamicParametersEntry param_message;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest__InitialResourceVersionsEntry
	version_message;

static const char type_letters[N_RESOURCE_TYPES + 1] = "CELR";

enum resource_type type_of(char letter)
{
	return (enum resource_type)(strchr(type_letters, letter) - type_letters);
}

void server_init(struct server *s, bool newest_wins)
{
	*s = (struct server){.catalog = catalog_new(newest_wins), .now_ns = 100 * NS_PER_SECOND};
	assert_non_null(s->catalog);
}

void server_fini(struct server *s)
{
	catalog_free(s->catalog);
}

// "env=prod&!version=v1&zone}", cut apart.
static struct xds_constraints *parse_constraints(char *text)
{
	char json[512] = "{'and_constraints':{'constraints':[";
	char *rest;
	text[strcspn(text, "}")] = '\0';
	for (char *word = strtok_r(text, "&", &rest); word; word = strtok_r(NULL, "&", &rest)) {
		bool is_not = word[0] == '!';
		char one[128], *key = word + is_not, *value = strchr(key, '=');
		if (value)
			*value++ = '\0';
		snprintf(one, sizeof(one), "{'constraint':{'key':'%s',%s%s%s}}", key,
			value ? "'value':'" : "'exists':{", value ? value : "", value ? "'" : "}");
		size_t n = strlen(json);
		snprintf(json + n, sizeof(json) - n, "%s%s%s%s", json[n - 1] == '[' ? "" : ",",
			is_not ? "{'not_constraints':" : "", one, is_not ? "}" : "");
	}
	strcat(json, "]}}");
	return constraints_of(json);
}

static void list(struct server *s, char *word)
{
	struct lb_err err;
	struct xds_constraints *constraints = NULL;
	char *brace = strchr(word, '{'), name[WORD_MAX];
	if (brace) {
		*brace = '\0';
		constraints = parse_constraints(brace + 1);
	}
	const char *body = word + 2;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(body, "="), body);
	struct resource *r = resource_new(
		type_of(word[0]), name, constraints, (const uint8_t *)body, strlen(body), false);
	assert_non_null(r);
	assert_int_equal(catalog_set(s->catalog, r, &err), 0);
	resource_put(r);
	xds_constraints_put(constraints);
}

void server_publish(struct server *s, const char *words)
{
	struct lb_err err = {""};
	enum resource_type type;
	char text[1024], *rest;
	snprintf(text, sizeof(text), "%s", words);
	catalog_begin(s->catalog, XDS_CHANGE_FULL);
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		list(s, word);
	assert_int_equal(catalog_check(s->catalog, &type, NULL, &err), 0);
	catalog_commit(s->catalog);
}

void peer_open(struct peer *p, struct server *s, enum ads_protocol protocol)
{
	*p = (struct peer){
		.server = s, .protocol = protocol, .stream = ads_stream_new(protocol, s->catalog)};
	assert_non_null(p->stream);
}

void peer_close(struct peer *p)
{
	ads_stream_free(p->stream);
}

void peer_reopen(struct peer *p)
{
	ads_stream_free(p->stream);
	p->stream = ads_stream_new(p->protocol, p->server->catalog);
	memset(p->nonce, 0, sizeof(p->nonce));
	memset(p->is_started, 0, sizeof(p->is_started));
}

// Names and locators of a request.
struct listed {
	char words[N_NAMES_MAX][WORD_MAX];
	char *names[N_NAMES_MAX];
	size_t n_names;
	locator_message messages[N_NAMES_MAX], *locators[N_NAMES_MAX];
	size_t n_locators;
	param_message params[N_NAMES_MAX][4], *param_lists[N_NAMES_MAX][4];
};

static void add_locator(struct listed *w, char *word, char *params)
{
	char *rest;
	size_t i = w->n_locators++;
	locator_message *m = w->locators[i] = &w->messages[i];
	envoy__service__discovery__v3__resource_locator__init(m);
	m->name = word;
	m->dynamic_parameters = w->param_lists[i];
	for (char *one = strtok_r(params, ",}", &rest); one; one = strtok_r(NULL, ",}", &rest)) {
		param_message *p = &w->params[i][m->n_dynamic_parameters];
		envoy__service__discovery__v3__resource_locator__dynamic_parameters_entry__init(p);
		p->key = one;
		p->value = strchr(one, '=');
		*p->value++ = '\0';
		m->dynamic_parameters[m->n_dynamic_parameters++] = p;
	}
}

static void list_resource(struct listed *w, const char *text)
{
	char *word = w->words[w->n_names + w->n_locators];
	snprintf(word, WORD_MAX, "%s", text);
	char *brace = strchr(word, '{');
	if (!brace) {
		w->names[w->n_names++] = word;
		return;
	}
	*brace = '\0';
	add_locator(w, word, brace + 1);
}

void peer_ask(struct peer *p, char letter, const char *names, const char *nonce, bool nack)
{
	static char feature[] = "xds.config.resource-in-sotw";
	static char *features[] = {feature};
	Envoy__Service__Discovery__V3__DiscoveryRequest m;
	envoy__service__discovery__v3__discovery_request__init(&m);
	Google__Rpc__Status error;
	google__rpc__status__init(&error);
	Envoy__Config__Core__V3__Node node;
	envoy__config__core__v3__node__init(&node);
	struct listed w = {.n_names = 0};
	char url[128], own_nonce[32], text[256], *rest;
	snprintf(url, sizeof(url), "%s", resource_type_info(type_of(letter))->url);
	snprintf(own_nonce, sizeof(own_nonce), "%s", nonce);
	snprintf(text, sizeof(text), "%s", names);
	for (char *name = strtok_r(text, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
		list_resource(&w, name);
	m.type_url = url;
	m.response_nonce = own_nonce;
	m.resource_names = w.names;
	m.n_resource_names = w.n_names;
	m.resource_locators = w.locators;
	m.n_resource_locators = w.n_locators;
	if (p->wraps) {
		node.client_features = features;
		node.n_client_features = 1;
		m.node = &node;
	}
	if (nack)
		m.error_detail = &error;
	assert_int_equal(ads_stream_feed_sotw(p->stream, &m, p->server->now_ns, &p->result), 0);
}

// TP2-T10: names with one variant only.
static size_t list_held(const struct peer *p, enum resource_type type, version_message *messages,
	version_message **list)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n_held; i++) {
		const struct held *h = &p->held[i];
		bool is_sole = true;
		for (size_t k = 0; k < p->n_held; k++)
			if (k != i && p->held[k].type == h->type &&
				strcmp(p->held[k].name, h->name) == 0)
				is_sole = false;
		if (h->type != type || !is_sole)
			continue;
		list[n] = &messages[n];
		envoy__service__discovery__v3__delta_discovery_request__initial_resource_versions_entry__init(
			&messages[n]);
		messages[n].key = (char *)(uintptr_t)h->name;
		messages[n++].value = (char *)(uintptr_t)h->version;
	}
	return n;
}

void peer_change(struct peer *p, char letter, const char *changes, const char *nonce, bool nack)
{
	Envoy__Service__Discovery__V3__DeltaDiscoveryRequest m;
	envoy__service__discovery__v3__delta_discovery_request__init(&m);
	Google__Rpc__Status error;
	google__rpc__status__init(&error);
	struct listed add = {.n_names = 0}, remove = {.n_names = 0};
	version_message messages[HELD_MAX], *versions[HELD_MAX];
	enum resource_type type = type_of(letter);
	char url[128], own_nonce[32], text[256], *rest;
	snprintf(url, sizeof(url), "%s", resource_type_info(type)->url);
	snprintf(own_nonce, sizeof(own_nonce), "%s", nonce);
	snprintf(text, sizeof(text), "%s", changes);
	for (char *name = strtok_r(text, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
		list_resource(name[0] == '+' ? &add : &remove, name + 1);
	m.type_url = url;
	m.response_nonce = own_nonce;
	m.resource_names_subscribe = add.names;
	m.n_resource_names_subscribe = add.n_names;
	m.resource_locators_subscribe = add.locators;
	m.n_resource_locators_subscribe = add.n_locators;
	m.resource_names_unsubscribe = remove.names;
	m.n_resource_names_unsubscribe = remove.n_names;
	m.resource_locators_unsubscribe = remove.locators;
	m.n_resource_locators_unsubscribe = remove.n_locators;
	if (!p->is_started[type]) {
		m.initial_resource_versions = versions;
		m.n_initial_resource_versions = list_held(p, type, messages, versions);
	}
	p->is_started[type] = true;
	if (nack)
		m.error_detail = &error;
	assert_int_equal(ads_stream_feed_delta(p->stream, &m, p->server->now_ns, &p->result), 0);
}

int peer_want(struct peer *p, const char *url, char **names, size_t n)
{
	Envoy__Service__Discovery__V3__DeltaDiscoveryRequest m;
	envoy__service__discovery__v3__delta_discovery_request__init(&m);
	m.type_url = (char *)(uintptr_t)url;
	m.resource_names_subscribe = names;
	m.n_resource_names_subscribe = n;
	return ads_stream_feed_delta(p->stream, &m, p->server->now_ns, &p->result);
}

const char *peer_nonce(const struct peer *p, char letter)
{
	static char text[32];
	snprintf(text, sizeof(text), "%" PRIu64, p->nonce[type_of(letter)]);
	return text;
}

void peer_ack(struct peer *p, char letter, const char *names)
{
	if (p->protocol == ADS_SOTW)
		peer_ask(p, letter, names, peer_nonce(p, letter), false);
	else
		peer_change(p, letter, names, peer_nonce(p, letter), false);
}

void peer_subscribe(struct peer *p, char letter, const char *names)
{
	if (p->protocol == ADS_SOTW)
		peer_ask(p, letter, names, "", false);
	else
		peer_change(p, letter, names, "", false);
	assert_int_equal(p->result.kind, ADS_REQUEST_SUBSCRIBE);
}

static void say(struct peer *p, const char *format, const char *text, size_t len)
{
	size_t n = strlen(p->text);
	snprintf(p->text + n, sizeof(p->text) - n, format, (int)len, text);
}

// "any" is said of no constraints.
static void print_constraints(const name_message *name, char *out, size_t room)
{
	struct xds_constraints *c = NULL;
	struct lb_err err;
	out[0] = '\0';
	assert_int_equal(
		xds_constraints_read(name ? name->dynamic_parameter_constraints : NULL, &c, &err),
		0);
	if (c)
		xds_constraints_print(c, out, room);
	xds_constraints_put(c);
}

static void forget(struct peer *p, enum resource_type type, const char *name, const char *c)
{
	for (size_t i = 0; i < p->n_held; i++) {
		const struct held *h = &p->held[i];
		if (h->type != type || strcmp(h->name, name) != 0 || strcmp(h->constraints, c) != 0)
			continue;
		p->held[i] = p->held[--p->n_held];
		return;
	}
}

static void take_wrapped(struct peer *p, enum resource_type type, const resource_message *m)
{
	struct held h = {.type = type};
	// One of the two names (RS-02), and the right one.
	assert_true((m->name[0] != '\0') != (m->resource_name != NULL));
	snprintf(h.name, sizeof(h.name), "%s", m->resource_name ? m->resource_name->name : m->name);
	assert_memory_equal(m->resource->value.data, h.name, strlen(h.name));
	assert_string_equal(m->resource->type_url, resource_type_info(type)->url);
	print_constraints(m->resource_name, h.constraints, sizeof(h.constraints));
	assert_true(!m->resource_name || h.constraints[0]);
	snprintf(h.version, sizeof(h.version), "%s", m->version);
	snprintf(h.body, sizeof(h.body), "%.*s", (int)m->resource->value.len,
		(const char *)m->resource->value.data);
	say(p, " %.*s", h.body, strlen(h.body));
	if (h.constraints[0])
		say(p, "{%.*s}", h.constraints, strlen(h.constraints));
	forget(p, type, h.name, h.constraints);
	assert_true(p->n_held < HELD_MAX);
	if (p->protocol == ADS_DELTA)
		p->held[p->n_held++] = h;
}

static void read_errors(
	struct peer *p, Envoy__Service__Discovery__V3__ResourceError *const *errors, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char constraints[96], text[160];
		print_constraints(errors[i]->resource_name, constraints, sizeof(constraints));
		snprintf(text, sizeof(text), "%s%s%s%s=%d:%s", errors[i]->resource_name->name,
			constraints[0] ? "{" : "", constraints, constraints[0] ? "}" : "",
			(int)errors[i]->error_detail->code, errors[i]->error_detail->message);
		say(p, " !%.*s", text, strlen(text));
	}
}

static void read_sotw(struct peer *p, enum resource_type type, const uint8_t *bytes, size_t len)
{
	Envoy__Service__Discovery__V3__DiscoveryResponse *m = proto_unpack(
		&envoy__service__discovery__v3__discovery_response__descriptor, bytes, len, NULL);
	assert_non_null(m);
	assert_string_equal(m->type_url, resource_type_info(type)->url);
	assert_int_equal(strlen(m->version_info), 16);
	assert_true(strtoull(m->nonce, NULL, 10) > p->nonce[type]);
	p->nonce[type] = strtoull(m->nonce, NULL, 10);
	for (size_t i = 0; i < m->n_resources; i++) {
		const Google__Protobuf__Any *any = m->resources[i];
		if (strcmp(any->type_url, m->type_url) == 0) {
			say(p, " %.*s", (const char *)any->value.data, any->value.len);
			continue;
		}
		assert_true(proto_any_is(
			any->type_url, &envoy__service__discovery__v3__resource__descriptor));
		resource_message *inner =
			proto_unpack(&envoy__service__discovery__v3__resource__descriptor,
				any->value.data, any->value.len, NULL);
		assert_non_null(inner);
		take_wrapped(p, type, inner);
		proto_free(inner);
	}
	read_errors(p, m->resource_errors, m->n_resource_errors);
	proto_free(m);
}

static void read_delta(struct peer *p, enum resource_type type, const uint8_t *bytes, size_t len)
{
	Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *m =
		proto_unpack(&envoy__service__discovery__v3__delta_discovery_response__descriptor,
			bytes, len, NULL);
	assert_non_null(m);
	assert_string_equal(m->type_url, resource_type_info(type)->url);
	assert_true(strtoull(m->nonce, NULL, 10) > p->nonce[type]);
	p->nonce[type] = strtoull(m->nonce, NULL, 10);
	for (size_t i = 0; i < m->n_resources; i++)
		take_wrapped(p, type, m->resources[i]);
	for (size_t i = 0; i < m->n_removed_resources; i++) {
		say(p, " -%.*s", m->removed_resources[i], strlen(m->removed_resources[i]));
		forget(p, type, m->removed_resources[i], "");
	}
	for (size_t i = 0; i < m->n_removed_resource_names; i++) {
		const name_message *name = m->removed_resource_names[i];
		char constraints[96];
		print_constraints(name, constraints, sizeof(constraints));
		assert_true(constraints[0]);
		say(p, " -%.*s", name->name, strlen(name->name));
		say(p, "{%.*s}", constraints, strlen(constraints));
		forget(p, type, name->name, constraints);
	}
	read_errors(p, m->resource_errors, m->n_resource_errors);
	proto_free(m);
}

const char *peer_next(struct peer *p)
{
	struct ads_response r;
	uint8_t *bytes;
	size_t len;
	p->text[0] = '\0';
	int due = ads_stream_drain(p->stream, p->server->now_ns, &r);
	assert_true(due >= 0);
	if (due == 0)
		return "";
	assert_int_equal(ads_response_encode(&r, &bytes, &len), 0);
	enum resource_type type = resource_type_find(str_from(r.type->url));
	say(p, "%.*s", &type_letters[type], 1);
	if (p->protocol == ADS_SOTW)
		read_sotw(p, type, bytes, len);
	else
		read_delta(p, type, bytes, len);
	free(bytes);
	return p->text;
}

int script_init(void **state, enum ads_protocol protocol)
{
	struct script *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	server_init(&s->server, false);
	peer_open(&s->peer, &s->server, protocol);
	*state = s;
	return 0;
}

int script_fini(void **state)
{
	struct script *s = *state;
	peer_close(&s->peer);
	server_fini(&s->server);
	free(s);
	return 0;
}
