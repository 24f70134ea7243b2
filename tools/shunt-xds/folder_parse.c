// SPDX-License-Identifier: Apache-2.0
// One file: JSON to a resource.
#include "ctrl/xds/raw.h"
#include "ctrl/xds/variants/constraints.h"
#include "envoy/config/cluster/v3/cluster.pb-c.h"
#include "envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "envoy/config/listener/v3/listener.pb-c.h"
#include "envoy/config/route/v3/route.pb-c.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "google/protobuf/any.pb-c.h"
#include "proto/json.h"
#include "proto/text.h"
#include "proto/wire.h"
#include "tools/shunt-xds/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef Google__Protobuf__Any any_message;
typedef Envoy__Service__Discovery__V3__Resource wrapper_message;

static const ProtobufCMessageDescriptor *const wrapper_desc =
	&envoy__service__discovery__v3__resource__descriptor;

static const ProtobufCMessageDescriptor *desc_of(uint32_t type)
{
	static const ProtobufCMessageDescriptor *const descs[N_RESOURCE_TYPES] = {
		[RESOURCE_CLUSTER] = &envoy__config__cluster__v3__cluster__descriptor,
		[RESOURCE_ENDPOINTS] =
			&envoy__config__endpoint__v3__cluster_load_assignment__descriptor,
		[RESOURCE_LISTENER] = &envoy__config__listener__v3__listener__descriptor,
		[RESOURCE_ROUTES] = &envoy__config__route__v3__route_configuration__descriptor,
	};
	return type < N_RESOURCE_TYPES ? descs[type] : NULL;
}

// What JSON allows and the wire does not, and what "@raw" says.
static int check_bytes(uint32_t type, const any_message *any, struct lb_err *err)
{
	if (!desc_of(type))
		return 0;
	ProtobufCMessage *m = proto_unpack(desc_of(type), any->value.data, any->value.len, err);
	proto_free(m);
	return m ? 0 : -EINVAL;
}

// All types of resources have their name in the same place. 0, -ENOMEM or -EINVAL.
static int read_name(const any_message *any, char **ret, struct lb_err *err)
{
	struct proto_field field;
	if (!xds_raw_name(any->value.data, any->value.len, &field))
		return lb_err_set(err, "these bytes are no message");
	*ret = field.len ? strndup((const char *)field.bytes, field.len) : strdup("");
	if (!*ret)
		return -ENOMEM;
	if (strlen(*ret) == field.len && proto_is_utf8(*ret))
		return 0;
	free(*ret);
	return lb_err_set(err, "the resource's name is not text");
}

static int check_name(const char *name, const wrapper_message *wrapper, struct lb_err *err)
{
	const char *outer = "";
	if (wrapper)
		outer = wrapper->resource_name ? wrapper->resource_name->name : wrapper->name;
	if (name[0] == '\0')
		return lb_err_set(err, "the resource has no name");
	if (outer[0] && strcmp(outer, name) != 0)
		return lb_err_set(err, "%s: \"%.64s\" is not the name of the resource, \"%.64s\"",
			wrapper->resource_name ? "resource_name.name" : "name", outer, name);
	if (strcmp(name, "*") == 0)
		return lb_err_set(err, "the name \"*\" stands for all resources");
	return 0;
}

// The type comes last: what is bad takes no place of those that stay.
static int make_named(struct catalog *catalog, const char *name, const any_message *any,
	const wrapper_message *wrapper, struct xds_constraints *constraints, struct resource **ret,
	struct lb_err *err)
{
	struct catalog_type *type;
	int rc = check_name(name, wrapper, err);
	if (!rc)
		rc = catalog_add_type(catalog, any->type_url, &type);
	if (rc)
		return rc;
	if (!type)
		return lb_err_set(err, "@type: not a type's URL, or one more than %d types",
			CATALOG_TYPES_MAX);
	*ret = resource_new(type->index, name, constraints, any->value.data, any->value.len,
		wrapper && wrapper->cache_control && wrapper->cache_control->do_not_cache);
	return *ret ? 0 : -ENOMEM;
}

// wrapper is NULL for a bare resource.
static int make(struct catalog *catalog, const any_message *any, const wrapper_message *wrapper,
	struct xds_constraints *constraints, struct resource **ret, struct lb_err *err)
{
	char *name = NULL;
	if (!any->type_url[0]) // it was left out, or is missing
		return 0;
	if (proto_any_is(any->type_url, wrapper_desc))
		return lb_err_set(err, "@type: a Resource in a Resource");
	int rc = check_bytes(resource_type_find(str_from(any->type_url)), any, err);
	if (!rc)
		rc = read_name(any, &name, err);
	if (rc)
		return rc;
	rc = make_named(catalog, name, any, wrapper, constraints, ret, err);
	free(name);
	return rc;
}

// What may stand in a file, of all that a Resource may have on the wire (RS-02).
static int check_wrapper(const wrapper_message *m, struct lb_err *err)
{
	if (m->name[0] && m->resource_name)
		return lb_err_set(err, "resource_name: not together with name");
	if (m->version[0])
		return lb_err_set(err, "version: is made of the content, leave it out");
	if (m->n_aliases > 0)
		return lb_err_set(err, "aliases: not supported");
	if (m->ttl)
		return lb_err_set(err, "ttl: not supported");
	if (m->metadata)
		return lb_err_set(err, "metadata: not supported");
	if (!m->resource)
		return lb_err_set(err, "resource: missing");
	return 0;
}

static int unwrap(struct catalog *catalog, const any_message *outer, struct resource **ret,
	struct lb_err *err)
{
	wrapper_message *m = (wrapper_message *)proto_unpack(
		wrapper_desc, outer->value.data, outer->value.len, err);
	if (!m)
		return -EINVAL;
	struct xds_constraints *constraints = NULL;
	int rc = check_wrapper(m, err);
	if (!rc && m->resource_name) {
		rc = xds_constraints_read(
			m->resource_name->dynamic_parameter_constraints, &constraints, err);
		if (rc == -EINVAL)
			lb_err_within(err, "resource_name.dynamic_parameter_constraints");
	}
	if (!rc)
		rc = make(catalog, m->resource, m, constraints, ret, err);
	xds_constraints_put(constraints);
	protobuf_c_message_free_unpacked(&m->base, NULL);
	return rc;
}

// What the scope is told goes through here.
struct noted {
	const struct proto_json_scope *scope;
	bool has_left_out;
};

static void note_left_out(void *ctx, const char *text)
{
	struct noted *n = ctx;
	n->has_left_out = true;
	n->scope->left_out(n->scope->ctx, text);
}

int folder_parse(const struct proto_json_scope *scope, struct catalog *catalog, const char *text,
	size_t len, struct resource **ret, struct lb_err *err)
{
	struct noted noted = {.scope = scope};
	// Constraints that were left out would give a variant to everybody.
	const struct proto_json_scope noting = {.pool = scope->pool,
		.whole = "envoy.service.discovery.v3.",
		.left_out = note_left_out,
		.ctx = &noted};
	ProtobufCMessage *m;
	*ret = NULL;
	int rc = proto_json_parse_in(
		&noting, &google__protobuf__any__descriptor, text, len, &m, err);
	if (rc)
		return rc;
	const any_message *any = (const any_message *)m;
	rc = proto_any_is(any->type_url, wrapper_desc) ? unwrap(catalog, any, ret, err)
	                                               : make(catalog, any, NULL, NULL, ret, err);
	if (!rc && !*ret && !noted.has_left_out)
		rc = lb_err_set(err, "@type: missing");
	protobuf_c_message_free_unpacked(m, NULL);
	return rc;
}
