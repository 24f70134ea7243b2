// SPDX-License-Identifier: Apache-2.0
// A list, walked: it is read for each Any of a configuration, never for a request.
#include "proto/registry.h"

#include "envoy/config/cluster/v3/cluster.pb-c.h"
#include "envoy/config/core/v3/address.pb-c.h"
#include "envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "envoy/config/listener/v3/listener.pb-c.h"
#include "envoy/config/route/v3/route.pb-c.h"
#include "envoy/config/trace/v3/opentelemetry.pb-c.h"
#include "envoy/extensions/access_loggers/file/v3/file.pb-c.h"
#include "envoy/extensions/access_loggers/grpc/v3/als.pb-c.h"
#include "envoy/extensions/access_loggers/stream/v3/stream.pb-c.h"
#include "envoy/extensions/clusters/aggregate/v3/cluster.pb-c.h"
#include "envoy/extensions/filters/http/fault/v3/fault.pb-c.h"
#include "envoy/extensions/filters/http/rbac/v3/rbac.pb-c.h"
#include "envoy/extensions/filters/http/router/v3/router.pb-c.h"
#include "envoy/extensions/filters/http/stateful_session/v3/stateful_session.pb-c.h"
#include "envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol.pb-c.h"
#include "envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector.pb-c.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb-c.h"
#include "envoy/extensions/http/stateful_session/cookie/v3/cookie.pb-c.h"
#include "envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3/client_side_weighted_round_robin.pb-c.h"
#include "envoy/extensions/load_balancing_policies/cluster_provided/v3/cluster_provided.pb-c.h"
#include "envoy/extensions/load_balancing_policies/least_request/v3/least_request.pb-c.h"
#include "envoy/extensions/load_balancing_policies/pick_first/v3/pick_first.pb-c.h"
#include "envoy/extensions/load_balancing_policies/random_subsetting/v3/random_subsetting.pb-c.h"
#include "envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash.pb-c.h"
#include "envoy/extensions/load_balancing_policies/round_robin/v3/round_robin.pb-c.h"
#include "envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.pb-c.h"
#include "envoy/extensions/transport_sockets/http_11_proxy/v3/upstream_http_11_connect.pb-c.h"
#include "envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol.pb-c.h"
#include "envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer.pb-c.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb-c.h"
#include "envoy/extensions/upstreams/http/v3/http_protocol_options.pb-c.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "google/protobuf/wrappers.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "udpa/type/v1/typed_struct.pb-c.h"
#include "xds/type/v3/typed_struct.pb-c.h"

static const ProtobufCMessageDescriptor *const known[] = {
	&envoy__config__cluster__v3__cluster__descriptor,
	&envoy__config__core__v3__address__descriptor,
	&envoy__config__endpoint__v3__cluster_load_assignment__descriptor,
	&envoy__config__listener__v3__listener__descriptor,
	&envoy__config__route__v3__filter_config__descriptor,
	&envoy__config__route__v3__route_configuration__descriptor,
	&envoy__config__trace__v3__open_telemetry_config__descriptor,
	&envoy__extensions__access_loggers__file__v3__file_access_log__descriptor,
	&envoy__extensions__access_loggers__grpc__v3__http_grpc_access_log_config__descriptor,
	&envoy__extensions__access_loggers__stream__v3__stderr_access_log__descriptor,
	&envoy__extensions__access_loggers__stream__v3__stdout_access_log__descriptor,
	&envoy__extensions__clusters__aggregate__v3__cluster_config__descriptor,
	&envoy__extensions__filters__http__fault__v3__httpfault__descriptor,
	&envoy__extensions__filters__http__rbac__v3__rbac__descriptor,
	&envoy__extensions__filters__http__rbac__v3__rbacper_route__descriptor,
	&envoy__extensions__filters__http__router__v3__router__descriptor,
	&envoy__extensions__filters__http__stateful_session__v3__stateful_session__descriptor,
	&envoy__extensions__filters__http__stateful_session__v3__stateful_session_per_route__descriptor,
	&envoy__extensions__filters__listener__proxy_protocol__v3__proxy_protocol__descriptor,
	&envoy__extensions__filters__listener__tls_inspector__v3__tls_inspector__descriptor,
	&envoy__extensions__filters__network__http_connection_manager__v3__http_connection_manager__descriptor,
	&envoy__extensions__http__stateful_session__cookie__v3__cookie_based_session_state__descriptor,
	&envoy__extensions__load_balancing_policies__client_side_weighted_round_robin__v3__client_side_weighted_round_robin__descriptor,
	&envoy__extensions__load_balancing_policies__cluster_provided__v3__cluster_provided__descriptor,
	&envoy__extensions__load_balancing_policies__least_request__v3__least_request__descriptor,
	&envoy__extensions__load_balancing_policies__pick_first__v3__pick_first__descriptor,
	&envoy__extensions__load_balancing_policies__random_subsetting__v3__random_subsetting__descriptor,
	&envoy__extensions__load_balancing_policies__ring_hash__v3__ring_hash__descriptor,
	&envoy__extensions__load_balancing_policies__round_robin__v3__round_robin__descriptor,
	&envoy__extensions__load_balancing_policies__wrr_locality__v3__wrr_locality__descriptor,
	&envoy__extensions__transport_sockets__http_11_proxy__v3__http11_proxy_upstream_transport__descriptor,
	&envoy__extensions__transport_sockets__proxy_protocol__v3__proxy_protocol_upstream_transport__descriptor,
	&envoy__extensions__transport_sockets__raw_buffer__v3__raw_buffer__descriptor,
	&envoy__extensions__transport_sockets__tls__v3__downstream_tls_context__descriptor,
	&envoy__extensions__transport_sockets__tls__v3__upstream_tls_context__descriptor,
	&envoy__extensions__upstreams__http__v3__http_protocol_options__descriptor,
	&envoy__service__discovery__v3__resource__descriptor,
	&google__protobuf__any__descriptor,
	&google__protobuf__bool_value__descriptor,
	&google__protobuf__bytes_value__descriptor,
	&google__protobuf__double_value__descriptor,
	&google__protobuf__duration__descriptor,
	&google__protobuf__float_value__descriptor,
	&google__protobuf__int32_value__descriptor,
	&google__protobuf__int64_value__descriptor,
	&google__protobuf__list_value__descriptor,
	&google__protobuf__string_value__descriptor,
	&google__protobuf__struct__descriptor,
	&google__protobuf__timestamp__descriptor,
	&google__protobuf__uint32_value__descriptor,
	&google__protobuf__uint64_value__descriptor,
	&google__protobuf__value__descriptor,
	&google__rpc__status__descriptor,
	&udpa__type__v1__typed_struct__descriptor,
	&xds__type__v3__typed_struct__descriptor,
};

struct str proto_type_name(struct str type_url)
{
	for (size_t i = type_url.len; i > 0; i--)
		if (type_url.p[i - 1] == '/')
			return (struct str){type_url.p + i, type_url.len - i};
	return type_url;
}

const ProtobufCMessageDescriptor *proto_registry_find(struct str type_url)
{
	struct str name = proto_type_name(type_url);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_eq(str_from(known[i]->name), name))
			return known[i];
	return NULL;
}
