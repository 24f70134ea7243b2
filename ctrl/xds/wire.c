// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/wire.h"

#include "ctrl/xds/arena.h"
#include "ctrl/xds/node.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_INVALID_ARGUMENT 3

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Service__Discovery__V3__DiscoveryRequest Request;
typedef Envoy__Service__Discovery__V3__DiscoveryResponse Response;
typedef Envoy__Service__Discovery__V3__Resource Wrapper;
typedef Envoy__Service__Discovery__V3__ResourceError ResourceError;

// protobuf-c's structs have no const; what is packed is only read.
static char *text(const char *s)
{
	return (char *)(uintptr_t)s;
}

// An error text quotes names and values cut at any byte; a server may end the stream over a string
// that is not UTF-8.
static char *to_utf8(const char *s)
{
	char *copy = strdup(s);
	if (!copy)
		return NULL;
	for (size_t i = 0, left = strlen(copy); left;) {
		size_t n = proto_utf8_len((const uint8_t *)copy + i, left);
		if (n == 0) {
			copy[i] = '?';
			n = 1;
		}
		i += n;
		left -= n;
	}
	return copy;
}

int xds_request_encode(const struct xds_request *r, uint8_t **ret, size_t *ret_len)
{
	Request m;
	Google__Rpc__Status status;
	Envoy__Config__Core__V3__Node node;
	char *error = NULL;
	envoy__service__discovery__v3__discovery_request__init(&m);
	if (r->node) {
		node = r->node->msg;
		m.node = &node;
	}
	m.type_url = text(r->type_url);
	m.version_info = text(r->version);
	m.response_nonce = text(r->nonce);
	m.resource_names = (char **)(uintptr_t)r->names;
	m.n_resource_names = r->n_names;
	if (r->error) {
		error = to_utf8(r->error);
		if (!error)
			return -ENOMEM;
		google__rpc__status__init(&status);
		status.code = STATUS_INVALID_ARGUMENT;
		status.message = error;
		m.error_detail = &status;
	}
	size_t len = envoy__service__discovery__v3__discovery_request__get_packed_size(&m);
	uint8_t *bytes = malloc(len ? len : 1);
	if (bytes) {
		envoy__service__discovery__v3__discovery_request__pack(&m, bytes);
		*ret = bytes;
		*ret_len = len;
	}
	free(error);
	return bytes ? 0 : -ENOMEM;
}

// What xds_response_decode() returns a pointer into.
struct decoded {
	struct xds_response view; // first member
	Response *msg;
	Wrapper **wrappers; // by entry; NULL = it came bare
	struct xds_arena arena;
};

// RS-01 to RS-03.
static void unwrap(struct xds_response_entry *e, const Wrapper *w)
{
	e->name = *w->name ? w->name : NULL;
	if (w->resource_name) {
		if (*w->name) {
			lb_err_set(&e->err, "Resource: both name and resource_name are set");
			return;
		}
		if (*w->resource_name->name)
			e->name = w->resource_name->name;
	}
	if (!w->resource) {
		lb_err_set(&e->err, "Resource: holds no resource");
		return;
	}
	e->type_url = w->resource->type_url;
	e->bytes = w->resource->value.data;
	e->len = w->resource->value.len;
}

static int read_entries(struct decoded *d)
{
	size_t n = d->msg->n_resources;
	struct xds_response_entry *entries = xds_arena_alloc(&d->arena, n, sizeof(*entries));
	d->wrappers = xds_arena_alloc(&d->arena, n, sizeof(Wrapper *));
	if (!entries || !d->wrappers)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct xds_response_entry *e = &entries[i];
		const Google__Protobuf__Any *any = d->msg->resources[i];
		e->type_url = any->type_url;
		e->bytes = any->value.data;
		e->len = any->value.len;
		if (!proto_any_is(
			    any->type_url, &envoy__service__discovery__v3__resource__descriptor))
			continue;
		d->wrappers[i] = proto_unpack(&envoy__service__discovery__v3__resource__descriptor,
			e->bytes, e->len, &e->err);
		if (d->wrappers[i])
			unwrap(e, d->wrappers[i]);
	}
	d->view.entries = entries;
	d->view.n_entries = n;
	return 0;
}

static int read_errors(struct decoded *d)
{
	size_t n = d->msg->n_resource_errors;
	struct xds_response_error *errors = xds_arena_alloc(&d->arena, n, sizeof(*errors));
	if (!errors)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const ResourceError *in = d->msg->resource_errors[i];
		if (!in->error_detail || in->error_detail->code == 0 || !in->resource_name ||
			!*in->resource_name->name)
			continue;
		errors[i].name = in->resource_name->name;
		errors[i].code = in->error_detail->code;
		errors[i].text = in->error_detail->message;
	}
	d->view.errors = errors;
	d->view.n_errors = n;
	return 0;
}

struct xds_response *xds_response_decode(const uint8_t *bytes, size_t len, struct lb_err *err)
{
	struct decoded *d = calloc(1, sizeof(*d));
	if (!d) {
		lb_err_set(err, "no memory");
		return NULL;
	}
	d->msg = proto_unpack(
		&envoy__service__discovery__v3__discovery_response__descriptor, bytes, len, err);
	if (!d->msg) {
		xds_response_free(&d->view);
		return NULL;
	}
	d->view.type_url = d->msg->type_url;
	d->view.version = d->msg->version_info;
	d->view.nonce = d->msg->nonce;
	if (read_entries(d) || read_errors(d)) {
		lb_err_set(err, "no memory");
		xds_response_free(&d->view);
		return NULL;
	}
	return &d->view;
}

void xds_response_free(struct xds_response *r)
{
	if (!r)
		return;
	struct decoded *d = (struct decoded *)r; // view is the first member
	for (size_t i = 0; d->wrappers && i < d->msg->n_resources; i++)
		proto_free(d->wrappers[i]);
	xds_arena_fini(&d->arena);
	proto_free(d->msg);
	free(d);
}
