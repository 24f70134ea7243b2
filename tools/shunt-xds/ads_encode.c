// SPDX-License-Identifier: Apache-2.0
// Responses as messages. protobuf-c's structs are not const; nothing is written through them in
// packing.
#include "ctrl/xds/variants/constraints.h"
#include "google/protobuf/any.pb-c.h"
#include "lb/base/arena.h"
#include "proto/wire.h"
#include "tools/shunt-xds/ads_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_TEXT_MAX 24
#define WRAPPER_URL "type.googleapis.com/envoy.service.discovery.v3.Resource"

typedef Google__Protobuf__Any any_message;
typedef Envoy__Service__Discovery__V3__Resource resource_message;
typedef Envoy__Service__Discovery__V3__ResourceName name_message;
typedef Envoy__Service__Discovery__V3__ResourceError error_message;
typedef Google__Rpc__Status status_message;
typedef Envoy__Service__Discovery__V3__DiscoveryResponse sotw_response;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryResponse delta_response;

struct encoder {
	const struct ads_response *response;
	struct lb_arena arena;
	char *url;
	char version[NUMBER_TEXT_MAX], nonce[NUMBER_TEXT_MAX];
};

static char *text_of(const char *text)
{
	return (char *)(uintptr_t)text;
}

static name_message *name_of(
	struct encoder *e, const char *text, const struct xds_constraints *constraints)
{
	name_message *name = lb_arena_alloc(&e->arena, 1, sizeof(*name));
	if (!name)
		return NULL;
	envoy__service__discovery__v3__resource_name__init(name);
	name->name = text_of(text);
	name->dynamic_parameter_constraints = xds_constraints_message(constraints);
	return name;
}

// NULL = out of memory.
static error_message *error_of(struct encoder *e, const struct ads_error *error)
{
	error_message *m = lb_arena_alloc(&e->arena, 1, sizeof(*m));
	status_message *status = lb_arena_alloc(&e->arena, 1, sizeof(*status));
	if (!m || !status)
		return NULL;
	envoy__service__discovery__v3__resource_error__init(m);
	google__rpc__status__init(status);
	status->code = error->word->code;
	status->message = text_of(error->word->text);
	m->error_detail = status;
	m->resource_name = name_of(e, error->name, error->word->constraints);
	return m->resource_name ? m : NULL;
}

// *ret is in the arena. 0 or -ENOMEM.
static int list_errors(struct encoder *e, error_message ***ret, size_t *ret_n)
{
	const struct ads_response *response = e->response;
	error_message **list =
		lb_arena_alloc(&e->arena, response->n_errors + 1, sizeof(error_message *));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < response->n_errors; i++)
		if (!(list[i] = error_of(e, &response->errors[i])))
			return -ENOMEM;
	*ret = list;
	*ret_n = response->n_errors;
	return 0;
}

static void set_any(struct encoder *e, any_message *any, const struct resource *r)
{
	google__protobuf__any__init(any);
	any->type_url = e->url;
	any->value.data = (uint8_t *)(uintptr_t)r->bytes;
	any->value.len = r->len;
}

// NULL = out of memory.
static resource_message *wrap(struct encoder *e, const struct ads_item *item)
{
	typedef Envoy__Service__Discovery__V3__Resource__CacheControl cache_control_message;
	const struct resource *r = catalog_resource(item->variant);
	resource_message *m = lb_arena_alloc(&e->arena, 1, sizeof(*m));
	any_message *any = lb_arena_alloc(&e->arena, 1, sizeof(*any));
	cache_control_message *control = lb_arena_alloc(&e->arena, 1, sizeof(*control));
	if (!m || !any || !control)
		return NULL;
	envoy__service__discovery__v3__resource__init(m);
	set_any(e, any, r);
	m->resource = any;
	m->version = text_of(item->variant->version);
	if (item->variant->constraints)
		m->resource_name = name_of(e, item->name, item->variant->constraints);
	else
		m->name = text_of(item->name);
	if (item->variant->constraints && !m->resource_name)
		return NULL;
	envoy__service__discovery__v3__resource__cache_control__init(control);
	control->do_not_cache = true;
	if (r->do_not_cache)
		m->cache_control = control;
	return m;
}

// One entry of a SotW response.
static any_message *entry_of(struct encoder *e, const struct ads_item *item)
{
	static char wrapper_url[] = WRAPPER_URL;
	const struct resource *r = catalog_resource(item->variant);
	any_message *any = lb_arena_alloc(&e->arena, 1, sizeof(*any));
	if (!any)
		return NULL;
	set_any(e, any, r);
	bool is_bare = r->names_itself && !item->variant->constraints && !r->do_not_cache;
	if (!e->response->wraps || is_bare)
		return any;
	resource_message *m = wrap(e, item);
	if (!m)
		return NULL;
	any->type_url = wrapper_url;
	any->value.len = protobuf_c_message_get_packed_size(&m->base);
	any->value.data = lb_arena_alloc(&e->arena, any->value.len, 1);
	if (!any->value.data)
		return NULL;
	protobuf_c_message_pack(&m->base, any->value.data);
	return any;
}

static int encode_sotw(struct encoder *e, uint8_t **ret_bytes, size_t *ret_len)
{
	const struct ads_response *response = e->response;
	sotw_response m;
	envoy__service__discovery__v3__discovery_response__init(&m);
	m.type_url = e->url;
	m.version_info = e->version;
	m.nonce = e->nonce;
	m.n_resources = response->n;
	m.resources = lb_arena_alloc(&e->arena, response->n + 1, sizeof(any_message *));
	if (!m.resources)
		return -ENOMEM;
	for (size_t i = 0; i < response->n; i++)
		if (!(m.resources[i] = entry_of(e, &response->resources[i])))
			return -ENOMEM;
	int rc = list_errors(e, &m.resource_errors, &m.n_resource_errors);
	return rc ? rc : proto_pack(&m.base, ret_bytes, ret_len);
}

static int set_removed(struct encoder *e, delta_response *m)
{
	size_t n = e->response->n_removed;
	m->removed_resources = lb_arena_alloc(&e->arena, n + 1, sizeof(char *));
	m->removed_resource_names = lb_arena_alloc(&e->arena, n + 1, sizeof(name_message *));
	if (!m->removed_resources || !m->removed_resource_names)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct ads_item *item = &e->response->removed[i];
		if (!item->variant || !item->variant->constraints) {
			m->removed_resources[m->n_removed_resources++] = text_of(item->name);
			continue;
		}
		name_message *name = name_of(e, item->name, item->variant->constraints);
		if (!name)
			return -ENOMEM;
		m->removed_resource_names[m->n_removed_resource_names++] = name;
	}
	return 0;
}

static int encode_delta(struct encoder *e, uint8_t **ret_bytes, size_t *ret_len)
{
	const struct ads_response *response = e->response;
	delta_response m;
	envoy__service__discovery__v3__delta_discovery_response__init(&m);
	m.type_url = e->url;
	m.system_version_info = e->version;
	m.nonce = e->nonce;
	m.n_resources = response->n;
	m.resources = lb_arena_alloc(&e->arena, response->n + 1, sizeof(resource_message *));
	if (!m.resources)
		return -ENOMEM;
	for (size_t i = 0; i < response->n; i++)
		if (!(m.resources[i] = wrap(e, &response->resources[i])))
			return -ENOMEM;
	int rc = set_removed(e, &m);
	if (!rc)
		rc = list_errors(e, &m.resource_errors, &m.n_resource_errors);
	return rc ? rc : proto_pack(&m.base, ret_bytes, ret_len);
}

int ads_response_encode(const struct ads_response *response, uint8_t **ret_bytes, size_t *ret_len)
{
	struct encoder e = {.response = response};
	e.url = text_of(response->type->url);
	snprintf(e.version, sizeof(e.version), "%016" PRIx64, response->version);
	snprintf(e.nonce, sizeof(e.nonce), "%" PRIu64, response->nonce);
	int rc = response->protocol == ADS_SOTW ? encode_sotw(&e, ret_bytes, ret_len)
	                                        : encode_delta(&e, ret_bytes, ret_len);
	lb_arena_fini(&e.arena);
	return rc;
}
