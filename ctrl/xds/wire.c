// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/wire.h"

#include "ctrl/xds/bootstrap/node.h"
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "ctrl/xds/variants/variants.h"
#include "lb/base/time.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_INVALID_ARGUMENT 3
#define DURATION_MAX_S 315576000000ll // protobuf's
#define TTL_MAX_S 1000000000u // 31 years, which any clock can hold

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Service__Discovery__V3__Resource Wrapper;
typedef Envoy__Service__Discovery__V3__ResourceError ResourceError;

char *xds_wire_text(const char *s)
{
	return (char *)(uintptr_t)s;
}

void xds_wire_clean(char *text)
{
	for (size_t i = 0, left = strlen(text); left;) {
		size_t n = proto_utf8_len((const uint8_t *)text + i, left);
		if (n == 0) {
			text[i] = '?';
			n = 1;
		}
		i += n;
		left -= n;
	}
}

int xds_wire_head_init(struct xds_wire_head *h, const struct xds_node *node, const char *error)
{
	if (node)
		h->node = node->msg;
	google__rpc__status__init(&h->error);
	h->error.code = STATUS_INVALID_ARGUMENT;
	h->error.message = NULL;
	if (!error)
		return 0;
	h->error.message = strdup(error);
	if (!h->error.message)
		return -ENOMEM;
	xds_wire_clean(h->error.message);
	return 0;
}

void xds_wire_head_fini(struct xds_wire_head *h)
{
	free(h->error.message);
}

static int read_ttl(struct xds_response_entry *e, const Google__Protobuf__Duration *ttl)
{
	if (!ttl)
		return 0;
	if (ttl->seconds < 0 || ttl->seconds > DURATION_MAX_S || ttl->nanos < 0 ||
		ttl->nanos >= (int)NS_PER_SECOND)
		return lb_err_set(&e->err, "Resource: ttl is out of range"); // WF-02
	uint64_t s = (uint64_t)ttl->seconds < TTL_MAX_S ? (uint64_t)ttl->seconds : TTL_MAX_S;
	e->has_ttl = true;
	e->ttl_ns = s * NS_PER_SECOND + (uint64_t)ttl->nanos;
	return 0;
}

int xds_wire_resource_name(const Envoy__Service__Discovery__V3__ResourceName *in,
	const char **ret_name, struct xds_constraints **ret, struct lb_err *err)
{
	if (!*in->name)
		return lb_err_set(err, "ResourceName: has no name");
	int rc = xds_constraints_read(in->dynamic_parameter_constraints, ret, err);
	*ret_name = in->name;
	return rc;
}

int xds_wire_unwrap(struct xds_response_entry *e, const Wrapper *w)
{
	e->name = *w->name ? w->name : NULL;
	if (w->resource_name && *w->name) {
		lb_err_set(&e->err, "Resource: both name and resource_name are set");
		return 0;
	}
	if (w->resource_name) {
		const char *name = w->resource_name->name;
		int rc = xds_constraints_read(
			w->resource_name->dynamic_parameter_constraints, &e->constraints, &e->err);
		if (rc == -ENOMEM)
			return rc;
		e->name = *name ? name : NULL;
		e->has_bad_constraints = rc;
		if (rc)
			return 0;
	}
	if (read_ttl(e, w->ttl))
		return 0;
	e->do_not_cache = w->cache_control && w->cache_control->do_not_cache;
	e->heartbeat = !w->resource;
	if (e->heartbeat)
		return 0;
	e->type_url = w->resource->type_url;
	e->bytes = w->resource->value.data;
	e->len = w->resource->value.len;
	return 0;
}

static int read_error(struct xds_response_error *e, const ResourceError *in)
{
	if (!in->error_detail || in->error_detail->code == 0 || !in->resource_name)
		return 0;
	int rc = xds_wire_resource_name(in->resource_name, &e->name, &e->constraints, NULL);
	if (rc) {
		e->name = NULL;
		return rc == -ENOMEM ? rc : 0;
	}
	e->code = in->error_detail->code;
	e->text = in->error_detail->message;
	return 0;
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
	r->entries = lb_arena_alloc(&r->arena, n_entries, sizeof(*r->entries));
	r->errors = lb_arena_alloc(&r->arena, n_errors, sizeof(*r->errors));
	bool ok = r->entries && r->errors;
	r->n_entries = r->entries ? n_entries : 0;
	for (size_t i = 0; ok && i < n_errors; i++) {
		r->n_errors++;
		ok = read_error(&r->errors[i], errors[i]) == 0;
	}
	if (ok)
		return r;
	xds_response_free(r);
	return NULL;
}

int xds_wire_add_locator(Envoy__Service__Discovery__V3__ResourceLocator ***list, size_t *n,
	size_t room, const struct xds_sub *sub, struct lb_arena *arena)
{
	if (!*list)
		*list = lb_arena_alloc(arena, room, sizeof(**list));
	Envoy__Service__Discovery__V3__ResourceLocator *l =
		*list ? xds_params_locator(sub->params, sub->name, arena) : NULL;
	if (!l)
		return -ENOMEM;
	(*list)[(*n)++] = l;
	return 0;
}

void xds_response_free(struct xds_response *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_entries; i++)
		xds_constraints_put(r->entries[i].constraints);
	for (size_t i = 0; i < r->n_errors; i++)
		xds_constraints_put(r->errors[i].constraints);
	for (size_t i = 0; i < r->n_removed; i++)
		xds_constraints_put(r->removed[i].constraints);
	for (size_t i = 0; i < r->n_wrappers; i++)
		proto_free(r->wrappers[i]);
	lb_arena_fini(&r->arena);
	proto_free(r->msg);
	free(r);
}
