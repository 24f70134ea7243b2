// SPDX-License-Identifier: Apache-2.0
// One file: JSON to a resource.
#include "ctrl/xds/constraints.h"
#include "envoy/config/cluster/v3/cluster.pb-c.h"
#include "envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "envoy/config/listener/v3/listener.pb-c.h"
#include "envoy/config/route/v3/route.pb-c.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "google/protobuf/any.pb-c.h"
#include "proto/json.h"
#include "proto/wire.h"
#include "tools/shunt-xds/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef Google__Protobuf__Any any_message;
typedef Envoy__Service__Discovery__V3__Resource wrapper_message;

static const ProtobufCMessageDescriptor *const wrapper_desc =
	&envoy__service__discovery__v3__resource__descriptor;

static const char *name_of(enum resource_type type, const ProtobufCMessage *m)
{
	switch (type) {
	case RESOURCE_CLUSTER:
		return ((const Envoy__Config__Cluster__V3__Cluster *)m)->name;
	case RESOURCE_ENDPOINTS:
		return ((const Envoy__Config__Endpoint__V3__ClusterLoadAssignment *)m)
		        ->cluster_name;
	case RESOURCE_LISTENER:
		return ((const Envoy__Config__Listener__V3__Listener *)m)->name;
	case RESOURCE_ROUTES:
		return ((const Envoy__Config__Route__V3__RouteConfiguration *)m)->name;
	case N_RESOURCE_TYPES:
		break;
	}
	return "";
}

static const ProtobufCMessageDescriptor *desc_of(enum resource_type type)
{
	static const ProtobufCMessageDescriptor *const descs[N_RESOURCE_TYPES] = {
		[RESOURCE_CLUSTER] = &envoy__config__cluster__v3__cluster__descriptor,
		[RESOURCE_ENDPOINTS] =
			&envoy__config__endpoint__v3__cluster_load_assignment__descriptor,
		[RESOURCE_LISTENER] = &envoy__config__listener__v3__listener__descriptor,
		[RESOURCE_ROUTES] = &envoy__config__route__v3__route_configuration__descriptor,
	};
	return descs[type];
}

// wrapper is NULL for a bare resource.
static int make(const any_message *any, const wrapper_message *wrapper,
	struct xds_constraints *constraints, struct resource **ret, struct lb_err *err)
{
	enum resource_type type = resource_type_find(str_from(any->type_url));
	if (type == N_RESOURCE_TYPES)
		return lb_err_set(err,
			"@type: not a listener, a route configuration, a cluster or a cluster load "
			"assignment, nor one of them in a Resource");
	ProtobufCMessage *m = proto_unpack(desc_of(type), any->value.data, any->value.len, err);
	if (!m) // what JSON allows and the wire does not, such as NUL in a name
		return -EINVAL;
	const char *name = name_of(type, m), *outer = "";
	if (wrapper)
		outer = wrapper->resource_name ? wrapper->resource_name->name : wrapper->name;
	int rc = 0;
	if (name[0] == '\0')
		rc = lb_err_set(err, "the resource has no name");
	else if (outer[0] && strcmp(outer, name) != 0)
		rc = lb_err_set(err, "%s: \"%.64s\" is not the name of the resource, \"%.64s\"",
			wrapper->resource_name ? "resource_name.name" : "name", outer, name);
	else if (strcmp(name, "*") == 0)
		rc = lb_err_set(err, "the name \"*\" stands for all resources");
	else if (!(*ret = resource_new(type, name, constraints, any->value.data, any->value.len,
			   wrapper && wrapper->cache_control &&
				   wrapper->cache_control->do_not_cache)))
		rc = -ENOMEM;
	protobuf_c_message_free_unpacked(m, NULL);
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
		return lb_err_set(err, "aliases: not served");
	if (m->ttl)
		return lb_err_set(err, "ttl: not served");
	if (m->metadata)
		return lb_err_set(err, "metadata: not served");
	if (!m->resource)
		return lb_err_set(err, "resource: missing");
	return 0;
}

static int unwrap(const any_message *outer, struct resource **ret, struct lb_err *err)
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
		rc = make(m->resource, m, constraints, ret, err);
	xds_constraints_put(constraints);
	protobuf_c_message_free_unpacked(&m->base, NULL);
	return rc;
}

int folder_parse(const char *text, size_t len, struct resource **ret, struct lb_err *err)
{
	ProtobufCMessage *m;
	int rc = proto_json_parse(&google__protobuf__any__descriptor, text, len, &m, err);
	if (rc)
		return rc;
	const any_message *any = (const any_message *)m;
	rc = proto_any_is(any->type_url, wrapper_desc) ? unwrap(any, ret, err)
	                                               : make(any, NULL, NULL, ret, err);
	protobuf_c_message_free_unpacked(m, NULL);
	return rc;
}
