// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_ads.h"

#include "lb/base/check.h"
#include "lb/base/err.h"
#include "lb/base/twheel.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef Envoy__Service__Discovery__V3__DiscoveryRequest Request;

struct fake_transport {
	struct xds_transport base; // first member
	struct fake_ads *server;
};

struct xds_stream {
	struct fake_ads *server;
	uint8_t *message; // owned; the last one, until the next is asked for
};

static struct xds_stream *stream_new(struct xds_transport *base, const char *method,
	const struct xds_stream_events *events, void *ctx)
{
	struct fake_ads *f = ((struct fake_transport *)base)->server;
	CHECK(!f->stream);
	static const char SERVICE[] = "/envoy.service.discovery.v3.AggregatedDiscoveryService/";
	CHECK(strncmp(method, SERVICE, strlen(SERVICE)) == 0); // PC-01
	f->delta = strcmp(method + strlen(SERVICE), "DeltaAggregatedResources") == 0;
	CHECK(f->delta || strcmp(method + strlen(SERVICE), "StreamAggregatedResources") == 0);
	f->stream = calloc(1, sizeof(*f->stream));
	if (!f->stream)
		return NULL;
	f->stream->server = f;
	f->events = events;
	f->ctx = ctx;
	f->sending = f->reading = false;
	f->n_streams++;
	f->n_stale = f->n_sent;
	return f->stream;
}

static int stream_send(struct xds_stream *s, const uint8_t *bytes, size_t len)
{
	struct fake_ads *f = s->server;
	CHECK(f->stream == s && !f->sending && f->n_sent < FAKE_ADS_MAX_SENT);
	ProtobufCMessage *r = protobuf_c_message_unpack(
		f->delta ? &envoy__service__discovery__v3__delta_discovery_request__descriptor
			 : &envoy__service__discovery__v3__discovery_request__descriptor,
		NULL, len, bytes);
	if (!r)
		return -ENOMEM;
	f->sending = true;
	f->sent[f->n_sent++] = r;
	return 0;
}

static void stream_read(struct xds_stream *s)
{
	CHECK(s->server->stream == s && !s->server->reading);
	s->server->reading = true;
	free(s->message);
	s->message = NULL;
}

static void stream_free(struct xds_stream *s)
{
	CHECK(s->server->stream == s);
	s->server->stream = NULL;
	free(s->message);
	free(s);
}

static void transport_free(struct xds_transport *base)
{
	struct fake_transport *t = (struct fake_transport *)base;
	CHECK(!t->server->stream);
	t->server->n_transports--;
	free(t);
}

static const struct xds_transport_ops ops = {
	.stream_new = stream_new,
	.stream_send = stream_send,
	.stream_read = stream_read,
	.stream_free = stream_free,
	.free = transport_free,
};

static int fake_connect(void *ctx, const struct xds_server_conf *conf, struct xds_transport **ret,
	struct lb_err *err)
{
	struct fake_ads *f = ctx;
	if (f->refuse)
		return lb_err_set(err, "%s", f->refuse_why ? f->refuse_why : "no credentials");
	struct fake_transport *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->base.ops = &ops;
	t->server = f;
	f->n_transports++;
	f->n_connects++;
	*ret = &t->base;
	return 0;
}

struct slice fake_ads_slice(void)
{
	return (struct slice){.most = getenv("SHUNT_TEST_SLICE") ? 1 : 0};
}

struct xds_transport_factory fake_ads_factory(struct fake_ads *f)
{
	return (struct xds_transport_factory){fake_connect, f};
}

void fake_ads_fini(struct fake_ads *f)
{
	CHECK(!f->stream && f->n_transports == 0);
	for (unsigned i = 0; i < f->n_sent; i++)
		protobuf_c_message_free_unpacked(f->sent[i], NULL);
}

void fake_ads_settle(struct fake_ads *f)
{
	while (f->stream && f->sending) {
		f->sending = false;
		f->events->on_sent(f->ctx);
	}
}

const ProtobufCMessage *fake_ads_arrived(struct fake_ads *f)
{
	return f->n_read < f->n_sent ? f->sent[f->n_read++] : NULL;
}

static const void *next(struct fake_ads *f, const ProtobufCMessageDescriptor *type)
{
	fake_ads_settle(f);
	const ProtobufCMessage *m = fake_ads_arrived(f);
	CHECK(!m || m->descriptor == type);
	return m;
}

const Request *fake_ads_next(struct fake_ads *f)
{
	return next(f, &envoy__service__discovery__v3__discovery_request__descriptor);
}

const Envoy__Service__Discovery__V3__DeltaDiscoveryRequest *fake_ads_next_delta(struct fake_ads *f)
{
	return next(f, &envoy__service__discovery__v3__delta_discovery_request__descriptor);
}

void fake_ads_forget(struct fake_ads *f)
{
	for (unsigned i = 0; i < f->n_read; i++)
		protobuf_c_message_free_unpacked(f->sent[i], NULL);
	memmove(f->sent, f->sent + f->n_read, (f->n_sent - f->n_read) * sizeof(f->sent[0]));
	f->n_sent -= f->n_read;
	f->n_stale -= f->n_read < f->n_stale ? f->n_read : f->n_stale;
	f->n_read = 0;
}

void fake_ads_say(struct fake_ads *f, const uint8_t *bytes, size_t len)
{
	CHECK(f->stream && f->reading);
	f->reading = false;
	while (!f->stream->message) // it is not the client's memory that is short
		f->stream->message = malloc(len + 1);
	if (len)
		memcpy(f->stream->message, bytes, len);
	f->events->on_message(f->ctx, f->stream->message, len);
	while (f->wheel && twheel_next_ns(f->wheel) <= twheel_now(f->wheel))
		twheel_advance(f->wheel, twheel_now(f->wheel));
}

void fake_ads_close(struct fake_ads *f, const char *why)
{
	CHECK(f->stream);
	f->events->on_closed(f->ctx, why);
}

static void set_name(Envoy__Service__Discovery__V3__ResourceName *m, const struct fake_resource *r)
{
	envoy__service__discovery__v3__resource_name__init(m);
	m->name = (char *)(uintptr_t)r->wrapper_name;
	m->dynamic_parameter_constraints = r->constraints;
}

// The name of the wrapper, in its short form where there are no constraints.
static void identify(Envoy__Service__Discovery__V3__Resource *wrapper,
	Envoy__Service__Discovery__V3__ResourceName *name, const struct fake_resource *r)
{
	envoy__service__discovery__v3__resource__init(wrapper);
	if (r->constraints) {
		set_name(name, r);
		wrapper->resource_name = name;
	} else {
		wrapper->name = (char *)(uintptr_t)r->wrapper_name;
	}
}

static void wrap(Google__Protobuf__Any *any, const struct fake_resource *r)
{
	Envoy__Service__Discovery__V3__Resource wrapper;
	Envoy__Service__Discovery__V3__ResourceName name;
	Google__Protobuf__Any inner = *any;
	identify(&wrapper, &name, r);
	wrapper.resource = &inner;
	size_t len = envoy__service__discovery__v3__resource__get_packed_size(&wrapper);
	uint8_t *bytes = malloc(len);
	CHECK(bytes);
	envoy__service__discovery__v3__resource__pack(&wrapper, bytes);
	static char URL[] = "type.googleapis.com/envoy.service.discovery.v3.Resource";
	any->type_url = URL;
	any->value.data = bytes;
	any->value.len = len;
}

// The resource_errors of a response; the rest of the list is left out.
struct errors {
	Envoy__Service__Discovery__V3__ResourceError *all, **list;
	Envoy__Service__Discovery__V3__ResourceName *names;
	Google__Rpc__Status *statuses;
	size_t n;
};

static void make_errors(struct errors *e, const struct fake_resource *resources, size_t n)
{
	static char WHY[] = "not now";
	e->n = 0;
	e->all = calloc(n + 1, sizeof(*e->all));
	e->list = calloc(n + 1, sizeof(*e->list));
	e->names = calloc(n + 1, sizeof(*e->names));
	e->statuses = calloc(n + 1, sizeof(*e->statuses));
	CHECK(e->all && e->list && e->names && e->statuses);
	for (size_t i = 0; i < n; i++) {
		if (!resources[i].error_code)
			continue;
		size_t k = e->n++;
		envoy__service__discovery__v3__resource_error__init(&e->all[k]);
		google__rpc__status__init(&e->statuses[k]);
		set_name(&e->names[k], &resources[i]);
		e->statuses[k].code = resources[i].error_code;
		e->statuses[k].message = WHY;
		e->all[k].resource_name = &e->names[k];
		e->all[k].error_detail = &e->statuses[k];
		e->list[k] = &e->all[k];
	}
}

static void free_errors(struct errors *e)
{
	free(e->all);
	free(e->list);
	free(e->names);
	free(e->statuses);
}

static uint8_t *pack(const ProtobufCMessage *m, size_t *ret_len)
{
	uint8_t *bytes = NULL;
	CHECK(proto_pack(m, &bytes, ret_len) == 0);
	return bytes;
}

static Google__Protobuf__Any any_of(const struct fake_resource *r, const char *type_url)
{
	Google__Protobuf__Any any;
	google__protobuf__any__init(&any);
	any.type_url = (char *)(uintptr_t)(r->type_url ? r->type_url : type_url);
	any.value.data = (uint8_t *)(uintptr_t)r->bytes;
	any.value.len = r->len;
	return any;
}

uint8_t *fake_ads_encode(const char *type_url, const char *version, const char *nonce,
	const struct fake_resource *resources, size_t n, size_t *ret_len)
{
	Envoy__Service__Discovery__V3__DiscoveryResponse m;
	envoy__service__discovery__v3__discovery_response__init(&m);
	Google__Protobuf__Any *anys = calloc(n + 1, sizeof(*anys));
	Google__Protobuf__Any **list = calloc(n + 1, sizeof(Google__Protobuf__Any *));
	struct errors errors;
	CHECK(anys && list);
	make_errors(&errors, resources, n);
	for (size_t i = 0; i < n; i++) {
		if (resources[i].error_code)
			continue;
		anys[i] = any_of(&resources[i], type_url);
		if (resources[i].wrapper_name)
			wrap(&anys[i], &resources[i]);
		list[m.n_resources++] = &anys[i];
	}
	m.version_info = (char *)(uintptr_t)version;
	m.nonce = (char *)(uintptr_t)nonce;
	m.type_url = (char *)(uintptr_t)type_url;
	m.resources = list;
	m.resource_errors = errors.list;
	m.n_resource_errors = errors.n;
	uint8_t *bytes = pack(&m.base, ret_len);
	for (size_t i = 0; i < n; i++)
		if (resources[i].wrapper_name && !resources[i].error_code)
			free(anys[i].value.data);
	free_errors(&errors);
	free(list);
	free(anys);
	return bytes;
}

void fake_ads_respond(struct fake_ads *f, const char *type_url, const char *version,
	const char *nonce, const struct fake_resource *resources, size_t n)
{
	size_t len;
	uint8_t *bytes = fake_ads_encode(type_url, version, nonce, resources, n, &len);
	fake_ads_say(f, bytes, len);
	free(bytes);
}

uint8_t *fake_ads_encode_delta(const char *type_url, const char *nonce,
	const struct fake_resource *resources, size_t n, const char *const *removed,
	size_t n_removed, size_t *ret_len)
{
	Envoy__Service__Discovery__V3__DeltaDiscoveryResponse m;
	envoy__service__discovery__v3__delta_discovery_response__init(&m);
	Envoy__Service__Discovery__V3__Resource *all = calloc(n + 1, sizeof(*all));
	Envoy__Service__Discovery__V3__Resource **list =
		calloc(n + 1, sizeof(Envoy__Service__Discovery__V3__Resource *));
	Google__Protobuf__Any *anys = calloc(n + 1, sizeof(*anys));
	Envoy__Service__Discovery__V3__ResourceName *names = calloc(n + 1, sizeof(*names));
	Envoy__Service__Discovery__V3__ResourceName **gone =
		calloc(n + 1, sizeof(Envoy__Service__Discovery__V3__ResourceName *));
	struct errors errors;
	CHECK(all && list && anys && names && gone);
	make_errors(&errors, resources, n);
	for (size_t i = 0; i < n; i++) {
		if (resources[i].error_code)
			continue;
		if (resources[i].is_removed) {
			set_name(&names[i], &resources[i]);
			gone[m.n_removed_resource_names++] = &names[i];
			continue;
		}
		identify(&all[i], &names[i], &resources[i]);
		anys[i] = any_of(&resources[i], type_url);
		all[i].version = (char *)(uintptr_t)resources[i].version;
		all[i].resource = &anys[i];
		list[m.n_resources++] = &all[i];
	}
	m.type_url = (char *)(uintptr_t)type_url;
	m.nonce = (char *)(uintptr_t)nonce;
	m.resources = list;
	m.resource_errors = errors.list;
	m.n_resource_errors = errors.n;
	m.removed_resources = (char **)(uintptr_t)removed;
	m.n_removed_resources = n_removed;
	m.removed_resource_names = gone;
	uint8_t *bytes = pack(&m.base, ret_len);
	free_errors(&errors);
	free(gone);
	free(names);
	free(anys);
	free(list);
	free(all);
	return bytes;
}
