// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/xds/client_fixture.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Envoy__Service__Discovery__V3__DiscoveryRequest Request;

unsigned n_toys_decoded;

static void decode_toy(
	const struct xds_type *type, const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	n_toys_decoded++;
	const uint8_t *eq = memchr(bytes, '=', len);
	if (!eq) {
		lb_err_set(&ret->err, "has no name");
		return;
	}
	ret->name = strndup((const char *)bytes, (size_t)(eq - bytes));
	if (len - (size_t)(eq - bytes) > 3 && memcmp(eq + 1, "BAD", 3) == 0) {
		lb_err_set(&ret->err, "content is %.*s", (int)(len - (size_t)(eq + 1 - bytes)),
			(const char *)eq + 1);
		return;
	}
	if (ret->name)
		ret->res = xds_res_new(type, sizeof(struct xds_res), ret->name, bytes, len);
}

static void decode_cluster(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	decode_toy(&toy_cluster, bytes, len, ret);
}

static void decode_endpoints(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	decode_toy(&toy_endpoints, bytes, len, ret);
}

static void decode_origin(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	decode_toy(&toy_origin, bytes, len, ret);
}

const struct xds_type toy_cluster = {
	.url = CLUSTER_URL,
	.label = "cluster",
	.full_state = true,
	.decode = decode_cluster,
};
const struct xds_type toy_endpoints = {
	.url = ENDPOINTS_URL,
	.label = "endpoints",
	.decode = decode_endpoints,
};
const struct xds_type toy_origin = {
	.url = ORIGIN_URL,
	.label = "origin",
	.origin = XDS_ORIGIN_SERVER,
	.decode = decode_origin,
};
static const struct xds_type *const TYPES[] = {&toy_cluster, &toy_endpoints};

static void on_log(void *ctx, const char *line)
{
	struct fixture *f = ctx;
	f->n_logged++;
	snprintf(f->log_line, sizeof(f->log_line), "%s", line);
}

static void on_note(void *ctx, const char *line)
{
	struct fixture *f = ctx;
	f->n_noted++;
	snprintf(f->note_line, sizeof(f->note_line), "%s", line);
}

static void init(struct fixture *f, const struct xds_protocol *protocol, const char *features,
	const char *params, bool drops_deleted, const struct xds_state *state)
{
	*f = (struct fixture){.now_ns = 1000 * S};
	char *json;
	assert_true(asprintf(&json,
			    "{\"xds_servers\":[{\"server_uri\":\"ads:1\",\"channel_creds\":"
			    "[{\"type\":\"insecure\"}],\"server_features\":[%s]}],"
			    "\"node\":{\"id\":\"me\",\"cluster\":\"here\","
			    "\"metadata\":{\"a\":[1,true,null,\"x\"]}},"
			    "\"dynamic_parameters\":{%s}}",
			    features, params) > 0);
	struct lb_err err;
	assert_int_equal(xds_bootstrap_parse(json, strlen(json), "test", &f->bootstrap, &err), 0);
	free(json);
	f->wheel = twheel_new(f->now_ns);
	assert_non_null(f->wheel);
	f->server.wheel = fake_ads_slice().most ? f->wheel : NULL;
	rand_init(&f->rand, 1);
	f->client = xds_client_new(&(struct xds_client_conf){
		.bootstrap = f->bootstrap,
		.protocol = protocol,
		.drops_deleted = drops_deleted,
		.types = TYPES,
		.n_types = 2,
		.transport = fake_ads_factory(&f->server),
		.wheel = f->wheel,
		.slice = fake_ads_slice(),
		.rand = &f->rand,
		.user_agent_version = "1.2.3",
		.state = state,
		.log = on_log,
		.note = on_note,
		.log_ctx = f,
	});
	assert_non_null(f->client);
}

void fixture_init(struct fixture *f, const char *features)
{
	init(f, NULL, features, "", false, NULL);
}

void fixture_init_delta(struct fixture *f, const char *features)
{
	init(f, &xds_protocol_delta, features, "", false, NULL);
}

void fixture_init_params(struct fixture *f, const struct xds_protocol *protocol, const char *params)
{
	init(f, protocol, "", params, false, NULL);
}

void fixture_init_dropping(
	struct fixture *f, const struct xds_protocol *protocol, const char *features)
{
	init(f, protocol, features, "", true, NULL);
}

void fixture_init_kept(struct fixture *f, const struct xds_protocol *protocol, const char *features,
	const struct xds_state *state)
{
	init(f, protocol, features, "", false, state);
}

void fixture_fini(struct fixture *f)
{
	xds_client_free(f->client);
	fake_ads_fini(&f->server);
	twheel_free(f->wheel);
	xds_bootstrap_free(f->bootstrap);
}

void pass_time(struct fixture *f, uint64_t ns)
{
	f->now_ns += ns;
	twheel_advance(f->wheel, f->now_ns);
}

static void ear_on_event(struct xds_watcher *w, const struct xds_event *e)
{
	struct ear *ear = (struct ear *)w;
	size_t len = strlen(ear->heard), room = sizeof(ear->heard) - len;
	const char *gap = len ? " " : "";
	switch (e->kind) {
	case XDS_EVENT_RESOURCE: {
		const char *content = memchr(e->res->bytes, '=', e->res->len);
		int n = (int)((const char *)e->res->bytes + e->res->len - content);
		snprintf(ear->heard + len, room, "%s%.*s", gap, n, content);
		break;
	}
	case XDS_EVENT_ERROR:
		snprintf(ear->heard + len, room, "%s!%d", gap, e->code);
		snprintf(ear->text, sizeof(ear->text), "%s", e->text);
		break;
	case XDS_EVENT_AMBIENT:
		if (e->code == XDS_OK) {
			snprintf(ear->heard + len, room, "%s~ok", gap);
		} else {
			snprintf(ear->heard + len, room, "%s~%d", gap, e->code);
			snprintf(ear->text, sizeof(ear->text), "%s", e->text);
		}
		break;
	}
}

void prepare_ear(struct ear *ear)
{
	*ear = (struct ear){.watcher.on_event = ear_on_event};
}

void listen_to(struct fixture *f, const struct xds_type *type, const char *name, struct ear *ear)
{
	prepare_ear(ear);
	assert_int_equal(xds_client_watch(f->client, type, name, &ear->watcher), 0);
}

const char *heard(struct ear *ear)
{
	static char text[sizeof(ear->heard)];
	memcpy(text, ear->heard, sizeof(text));
	ear->heard[0] = '\0';
	return text;
}

void respond(
	struct fixture *f, const struct xds_type *type, const char *version, const char *nonce, ...)
{
	struct fake_resource list[8];
	size_t n = 0;
	va_list args;
	va_start(args, nonce);
	for (const char *text; (text = va_arg(args, const char *)) && n < 8; n++)
		list[n] =
			(struct fake_resource){.bytes = (const uint8_t *)text, .len = strlen(text)};
	va_end(args);
	fake_ads_respond(&f->server, type->url, version, nonce, list, n);
}

static const Request *expect(struct fixture *f, const struct xds_type *type, const char *names,
	const char *version, const char *nonce)
{
	const Request *r = fake_ads_next(&f->server);
	assert_non_null(r);
	assert_string_equal(r->type_url, type->url);
	char joined[512] = "";
	for (size_t i = 0; i < r->n_resource_names; i++) {
		strcat(joined, i ? " " : "");
		strcat(joined, r->resource_names[i]);
	}
	assert_string_equal(joined, names);
	assert_string_equal(r->version_info, version);
	assert_string_equal(r->response_nonce, nonce);
	return r;
}

void expect_request(struct fixture *f, const struct xds_type *type, const char *names,
	const char *version, const char *nonce)
{
	assert_null(expect(f, type, names, version, nonce)->error_detail);
}

void expect_nack(struct fixture *f, const struct xds_type *type, const char *names,
	const char *version, const char *nonce, const char *why)
{
	const Request *r = expect(f, type, names, version, nonce);
	assert_non_null(r->error_detail);
	assert_int_equal(r->error_detail->code, 3); // PC-10
	if (!strstr(r->error_detail->message, why))
		fail_msg("\"%s\" does not say \"%s\"", r->error_detail->message, why);
}

void expect_silence(struct fixture *f)
{
	fake_ads_settle(&f->server);
	assert_null(fake_ads_arrived(&f->server));
}

void respond_delta(struct fixture *f, const struct xds_type *type, const char *nonce, ...)
{
	struct fake_resource list[8];
	const char *removed[8];
	char texts[8][3][64];
	size_t n = 0, n_removed = 0, len;
	va_list args;
	va_start(args, nonce);
	for (const char *text; (text = va_arg(args, const char *)) && n < 8 && n_removed < 8;) {
		if (text[0] == '-') {
			removed[n_removed++] = text + 1;
			continue;
		}
		char(*t)[64] = texts[n];
		assert_int_equal(sscanf(text, "%63[^=]=%63[^@]@%63s", t[0], t[1], t[2]), 3);
		char *bytes = t[1];
		len = strlen(t[0]) + 1 + strlen(t[1]);
		assert_true(len < sizeof(t[1]));
		memmove(bytes + strlen(t[0]) + 1, bytes, strlen(bytes) + 1);
		memcpy(bytes, t[0], strlen(t[0]));
		bytes[strlen(t[0])] = '=';
		list[n++] = (struct fake_resource){
			.bytes = (const uint8_t *)bytes,
			.len = len,
			.wrapper_name = t[0],
			.version = t[2],
		};
	}
	va_end(args);
	uint8_t *bytes = fake_ads_encode_delta(type->url, nonce, list, n, removed, n_removed, &len);
	fake_ads_say(&f->server, bytes, len);
	free(bytes);
}

typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest DeltaRequest;

static int by_key(const void *a, const void *b)
{
	typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest__InitialResourceVersionsEntry
		Version;
	const Version *const *x = a, *const *y = b;
	return strcmp((*x)->key, (*y)->key);
}

static const DeltaRequest *expect_changes(
	struct fixture *f, const struct xds_type *type, const char *changes, const char *nonce)
{
	const DeltaRequest *r = fake_ads_next_delta(&f->server);
	assert_non_null(r);
	assert_string_equal(r->type_url, type->url);
	assert_string_equal(r->response_nonce, nonce);
	char text[512] = "";
	int len = 0;
	for (size_t i = 0; i < r->n_resource_names_subscribe; i++)
		len += sprintf(text + len, " +%s", r->resource_names_subscribe[i]);
	for (size_t i = 0; i < r->n_resource_names_unsubscribe; i++)
		len += sprintf(text + len, " -%s", r->resource_names_unsubscribe[i]);
	if (r->n_initial_resource_versions)
		qsort(r->initial_resource_versions, r->n_initial_resource_versions,
			sizeof(r->initial_resource_versions[0]), by_key);
	for (size_t i = 0; i < r->n_initial_resource_versions; i++)
		len += sprintf(text + len, " %s@%s", r->initial_resource_versions[i]->key,
			r->initial_resource_versions[i]->value);
	assert_string_equal(len ? text + 1 : "", changes);
	return r;
}

void expect_delta(
	struct fixture *f, const struct xds_type *type, const char *changes, const char *nonce)
{
	assert_null(expect_changes(f, type, changes, nonce)->error_detail);
}

void expect_delta_nack(struct fixture *f, const struct xds_type *type, const char *changes,
	const char *nonce, const char *why)
{
	const DeltaRequest *r = expect_changes(f, type, changes, nonce);
	assert_non_null(r->error_detail);
	assert_int_equal(r->error_detail->code, 3); // PC-10
	if (!strstr(r->error_detail->message, why))
		fail_msg("\"%s\" does not say \"%s\"", r->error_detail->message, why);
}

struct search {
	const char *name;
	char text[128];
};

static void on_entry(void *ctx, const struct xds_entry_info *e)
{
	struct search *s = ctx;
	if (strcmp(e->name, s->name) == 0)
		snprintf(s->text, sizeof(s->text), "%s %s%s", xds_status_name(e->status),
			e->version, *e->error ? " with error" : "");
}

const char *state_of(struct fixture *f, const char *name)
{
	static struct search s;
	s = (struct search){.name = name};
	xds_client_each(f->client, on_entry, &s);
	return s.text;
}
