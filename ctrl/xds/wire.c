// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/wire.h"

#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_INVALID_ARGUMENT 3
#define NS_PER_S 1000000000ull
#define DURATION_MAX_S 315576000000ll // protobuf's
#define TTL_MAX_S 1000000000u // 31 years, which any clock can hold

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Service__Discovery__V3__Resource Wrapper;
typedef Envoy__Service__Discovery__V3__ResourceError ResourceError;

char *xds_wire_text(const char *s)
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

int xds_wire_error(Google__Rpc__Status *status, const char *error)
{
	google__rpc__status__init(status);
	status->code = STATUS_INVALID_ARGUMENT;
	char *text = to_utf8(error);
	if (!text)
		return -ENOMEM;
	status->message = text;
	return 0;
}

int xds_wire_pack(const ProtobufCMessage *m, uint8_t **ret, size_t *ret_len)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = malloc(len ? len : 1);
	if (!bytes)
		return -ENOMEM;
	protobuf_c_message_pack(m, bytes);
	*ret = bytes;
	*ret_len = len;
	return 0;
}

static int read_ttl(struct xds_response_entry *e, const Google__Protobuf__Duration *ttl)
{
	if (!ttl)
		return 0;
	if (ttl->seconds < 0 || ttl->seconds > DURATION_MAX_S || ttl->nanos < 0 ||
		ttl->nanos >= (int)NS_PER_S)
		return lb_err_set(&e->err, "Resource: ttl is out of range"); // WF-02
	uint64_t s = (uint64_t)ttl->seconds < TTL_MAX_S ? (uint64_t)ttl->seconds : TTL_MAX_S;
	e->has_ttl = true;
	e->ttl_ns = s * NS_PER_S + (uint64_t)ttl->nanos;
	return 0;
}

void xds_wire_unwrap(struct xds_response_entry *e, const Wrapper *w)
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
	if (read_ttl(e, w->ttl))
		return;
	e->heartbeat = !w->resource;
	if (e->heartbeat)
		return;
	e->type_url = w->resource->type_url;
	e->bytes = w->resource->value.data;
	e->len = w->resource->value.len;
}

static void read_error(struct xds_response_error *e, const ResourceError *in)
{
	if (!in->error_detail || in->error_detail->code == 0 || !in->resource_name ||
		!*in->resource_name->name)
		return;
	e->name = in->resource_name->name;
	e->code = in->error_detail->code;
	e->text = in->error_detail->message;
}

struct xds_response *xds_response_new(
	ProtobufCMessage *msg, size_t n_entries, ResourceError *const *errors, size_t n_errors)
{
	struct xds_response *r = calloc(1, sizeof(*r));
	if (!r) {
		proto_free(msg);
		return NULL;
	}
	r->msg = msg;
	r->entries = xds_arena_alloc(&r->arena, n_entries, sizeof(*r->entries));
	r->errors = xds_arena_alloc(&r->arena, n_errors, sizeof(*r->errors));
	if (!r->entries || !r->errors) {
		xds_response_free(r);
		return NULL;
	}
	r->n_entries = n_entries;
	r->n_errors = n_errors;
	for (size_t i = 0; i < n_errors; i++)
		read_error(&r->errors[i], errors[i]);
	return r;
}

void xds_response_free(struct xds_response *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_wrappers; i++)
		proto_free(r->wrappers[i]);
	xds_arena_fini(&r->arena);
	proto_free(r->msg);
	free(r);
}
