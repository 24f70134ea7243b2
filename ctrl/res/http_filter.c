// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/http_filter.h"

#include "ctrl/res/filter_fault.h"
#include "ctrl/res/filter_rbac.h"
#include "ctrl/res/filter_session.h"
#include "envoy/config/route/v3/route_components.pb-c.h"
#include "envoy/extensions/filters/http/fault/v3/fault.pb-c.h"
#include "envoy/extensions/filters/http/rbac/v3/rbac.pb-c.h"
#include "envoy/extensions/filters/http/router/v3/router.pb-c.h"
#include "envoy/extensions/filters/http/stateful_session/v3/stateful_session.pb-c.h"

#include <errno.h>
#include <string.h>

typedef Envoy__Config__Route__V3__FilterConfig FilterConfig;
#define FILTER_CONFIG_TYPE (&envoy__config__route__v3__filter_config__descriptor)
#define SESSION(x) (&envoy__extensions__filters__http__stateful_session__v3__##x##__descriptor)

typedef int (*read_fn)(struct res_reader *, const void *message, struct lb_filter *);

static const struct filter_type {
	const ProtobufCMessageDescriptor *config, *override; // override NULL = cannot be overridden
	read_fn read, read_override; // NULL = the content is ignored (FLT-09)
	bool is_terminal;
} filter_types[] = {
	{
		.config = &envoy__extensions__filters__http__fault__v3__httpfault__descriptor,
		.override = &envoy__extensions__filters__http__fault__v3__httpfault__descriptor,
		.read = res_fault_read,
		.read_override = res_fault_read,
	},
	{
		.config = &envoy__extensions__filters__http__rbac__v3__rbac__descriptor,
		.override = &envoy__extensions__filters__http__rbac__v3__rbacper_route__descriptor,
		.read = res_rbac_read,
		.read_override = res_rbac_read_override,
	},
	{
		.config = SESSION(stateful_session),
		.override = SESSION(stateful_session_per_route),
		.read = res_session_read,
		.read_override = res_session_read_override,
	},
	{
		.config = &envoy__extensions__filters__http__router__v3__router__descriptor,
		.is_terminal = true,
	},
};

static const struct filter_type *find_type(const char *type_url, bool as_override)
{
	for (size_t i = 0; i < sizeof(filter_types) / sizeof(filter_types[0]); i++) {
		const struct filter_type *t = &filter_types[i];
		const ProtobufCMessageDescriptor *d = as_override ? t->override : t->config;
		if (d && proto_any_is(type_url, d))
			return t;
	}
	return NULL;
}

static int read_content(struct res_reader *rd, const struct res_any *a,
	const ProtobufCMessageDescriptor *type, read_fn read, struct lb_filter *f)
{
	if (!read && a->typed_struct)
		return 0;
	void *m = res_any_decode(a, type, rd->err);
	if (!m)
		return *rd->err->text ? -EINVAL : -ENOMEM;
	int rc = read ? read(rd, m, f) : 0;
	proto_free(m);
	return rc;
}

// *ret_type NULL: dropped, since its type is not known and it is optional (FLT-02).
static int read_filter(struct res_reader *rd, const struct res_http_filter *in, struct lb_filter *f,
	const struct filter_type **ret_type)
{
	if (!in->config) {
		*ret_type = NULL;
		return in->is_optional ? 0 : lb_err_set(rd->err, "no typed_config");
	}
	struct res_any a;
	if (res_any_open(in->config, &a, rd->err))
		return -EINVAL;
	int rc = 0;
	const struct filter_type *type = find_type(a.type_url, false);
	if (type)
		rc = read_content(rd, &a, type->config, type->read, f);
	else if (find_type(a.type_url, true)) // known, though not as a filter
		rc = lb_err_set(rd->err, "type \"%.128s\" is one for overrides", a.type_url);
	else if (!in->is_optional)
		rc = lb_err_set(rd->err, "type \"%.128s\" is not supported", a.type_url);
	else
		res_warn(rd,
			"http filter \"%.128s\": type \"%.128s\" is not supported, and the "
			"filter optional: left out",
			in->name, a.type_url);
	if (!rc && type && type->is_terminal && in->disabled)
		rc = lb_err_set(rd->err, "disabled: the router cannot be disabled");
	f->disabled = in->disabled;
	res_any_close(&a);
	*ret_type = type;
	return rc;
}

int res_filters_read(struct res_reader *rd, const struct res_http_filter *in, size_t n,
	const struct lb_filter **ret, uint32_t *ret_n)
{
	struct strmap names = {0};
	struct lb_filter *list = lb_arena_alloc(rd->arena, n, sizeof(*list));
	uint32_t n_list = 0;
	bool ended = false;
	int rc = list ? 0 : -ENOMEM;
	for (size_t i = 0; !rc && i < n; i++) {
		const struct filter_type *type = NULL;
		rc = *in[i].name ? res_name_set_add(&names, rd->arena, in[i].name)
		                 : lb_err_set(rd->err, "http_filters[%zu]: no name", i);
		if (rc == -EEXIST)
			rc = lb_err_set(rd->err, "http_filters: the name \"%.128s\" is a duplicate",
				in[i].name);
		if (rc)
			break;
		rc = res_copy(rd, in[i].name, &list[n_list].name);
		if (!rc)
			rc = read_filter(rd, &in[i], &list[n_list], &type);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "http filter \"%.128s\"", in[i].name);
		if (rc || !type)
			continue;
		if (ended) // FLT-03
			rc = lb_err_set(rd->err, "http_filters: the router is not the last one");
		ended = ended || type->is_terminal;
		n_list += !type->is_terminal;
	}
	strmap_fini(&names);
	if (!rc && !ended)
		rc = lb_err_set(rd->err, "http_filters: there is no router");
	*ret = list;
	*ret_n = n_list;
	return rc;
}

struct override {
	struct lb_filter *filter;
	bool is_wrapped, is_optional; // by a FilterConfig
	bool is_dropped;
};

static int read_override(struct res_reader *, const Google__Protobuf__Any *, struct override *);

// As Envoy reads it: of what is disabled the configuration does not matter, and an empty one,
// unlike none, switches the filter on.
static int read_wrapped(struct res_reader *rd, const struct res_any *a, struct override *o)
{
	FilterConfig *m = res_any_decode(a, FILTER_CONFIG_TYPE, rd->err);
	if (!m)
		return *rd->err->text ? -EINVAL : -ENOMEM;
	o->is_wrapped = true;
	o->is_optional = m->is_optional;
	bool is_switch = m->disabled || (m->config && !*m->config->type_url);
	int rc = 0;
	if (is_switch) {
		o->filter->kind = LB_FILTER_SWITCH;
		o->filter->disabled = m->disabled;
	} else {
		rc = read_override(rd, m->config, o);
	}
	proto_free(m);
	return rc == -EINVAL ? lb_err_within(rd->err, "config") : rc;
}

static int read_opened(struct res_reader *rd, const struct res_any *a, struct override *o)
{
	const struct filter_type *type = find_type(a->type_url, true);
	if (type)
		return read_content(rd, a, type->override, type->read_override, o->filter);
	if (find_type(a->type_url, false))
		return lb_err_set(rd->err, "type \"%.128s\" is not one for overrides", a->type_url);
	if (!o->is_optional)
		return lb_err_set(rd->err, "type \"%.128s\" is not supported", a->type_url);
	o->is_dropped = true;
	return 0;
}

// FLT-08.
static int read_override(
	struct res_reader *rd, const Google__Protobuf__Any *any, struct override *o)
{
	struct res_any a;
	if (!any)
		return lb_err_set(rd->err, "empty");
	if (res_any_open(any, &a, rd->err))
		return -EINVAL;
	int rc = !o->is_wrapped && proto_any_is(a.type_url, FILTER_CONFIG_TYPE)
	                 ? read_wrapped(rd, &a, o)
	                 : read_opened(rd, &a, o);
	res_any_close(&a);
	return rc;
}

// What is read of one message.
struct reader {
	struct res_reader *rd;
	struct strmap names;
	struct lb_filter *list;
	uint32_t n;
};

static int add_override(struct reader *r, const struct res_override_entry *e)
{
	struct override o = {.filter = &r->list[r->n]};
	if (!*e->name)
		return lb_err_set(r->rd->err, "typed_per_filter_config: an empty name");
	int rc = res_name_set_add(&r->names, r->rd->arena, e->name);
	if (rc)
		return rc == -EEXIST ? 0 : rc;
	rc = res_copy(r->rd, e->name, &o.filter->name);
	if (!rc)
		rc = read_override(r->rd, e->config, &o);
	if (!rc && !o.is_dropped)
		r->n++;
	return rc == -EINVAL ? lb_err_within(r->rd->err, "typed_per_filter_config[%.128s]", e->name)
	                     : rc;
}

int res_overrides_read(
	struct res_reader *rd, const struct res_override_map *map, struct lb_filter_overrides *ret)
{
	struct reader r = {.rd = rd};
	if (map->n)
		r.list = lb_arena_alloc(rd->arena, map->n, sizeof(*r.list));
	int rc = map->n == 0 || r.list ? 0 : -ENOMEM;
	for (size_t i = map->n; !rc && i > 0; i--) { // a name that was there came later: it counts
		struct res_override_entry e = map->at(map->message, i - 1);
		rc = add_override(&r, &e);
	}
	strmap_fini(&r.names);
	*ret = (struct lb_filter_overrides){r.list, r.n};
	return rc;
}
