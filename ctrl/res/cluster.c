// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/cluster.h"

#include "ctrl/res/common.h"
#include "ctrl/res/endpoints.h"
#include "envoy/config/cluster/v3/cluster.pb-c.h"
#include "envoy/extensions/load_balancing_policies/round_robin/v3/round_robin.pb-c.h"
#include "envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.pb-c.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb-c.h"
#include "envoy/extensions/upstreams/http/v3/http_protocol_options.pb-c.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_POLICY_DEPTH 16 // gRFC A52
#define DEFAULT_MAX_REQUESTS 1024 // gRFC A32
#define DEFAULT_IDLE_TIMEOUT_NS (3600 * 1000000000ull) // gRFC A75

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Config__Cluster__V3__LoadBalancingPolicy PolicyList;
typedef Envoy__Extensions__LoadBalancingPolicies__WrrLocality__V3__WrrLocality WrrLocality;
typedef Envoy__Extensions__Upstreams__Http__V3__HttpProtocolOptions HttpOptions;
#define ROUND_ROBIN_TYPE                                                                           \
	(&envoy__extensions__load_balancing_policies__round_robin__v3__round_robin__descriptor)
#define WRR_LOCALITY_TYPE                                                                          \
	(&envoy__extensions__load_balancing_policies__wrr_locality__v3__wrr_locality__descriptor)
#define HTTP_OPTIONS_TYPE                                                                          \
	(&envoy__extensions__upstreams__http__v3__http_protocol_options__descriptor)
#define TLS_TYPE (&envoy__extensions__transport_sockets__tls__v3__upstream_tls_context__descriptor)
#define DISCOVERY(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__DISCOVERY_TYPE__##x
#define DISCOVERY_CASE(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__CLUSTER_DISCOVERY_TYPE_##x
#define LB(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__LB_POLICY__##x

static const char *enum_name(const ProtobufCEnumDescriptor *type, int value)
{
	const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, value);
	return v ? v->name : "unknown";
}

// xds-client.md CL-03, CL-04.
static int read_discovery(const Cluster *m, struct res_cluster *c, struct lb_err *err)
{
	if (m->cluster_discovery_type_case == DISCOVERY_CASE(CLUSTER_TYPE)) {
		const Google__Protobuf__Any *any = m->cluster_type->typed_config;
		return lb_err_set(err, "cluster_type: \"%.128s\" is not supported yet",
			any ? any->type_url : m->cluster_type->name);
	}
	int type = m->cluster_discovery_type_case == DISCOVERY_CASE(TYPE) ? (int)m->type
	                                                                  : DISCOVERY(STATIC);
	if (type != DISCOVERY(EDS))
		return lb_err_set(err, "type: %s is not supported%s",
			enum_name(&envoy__config__cluster__v3__cluster__discovery_type__descriptor,
				type),
			type == DISCOVERY(LOGICAL_DNS) ? " yet" : "");
	if (!m->eds_cluster_config || !res_is_ads(m->eds_cluster_config->eds_config))
		return lb_err_set(err, "eds_cluster_config: eds_config is neither ads nor self");
	const char *name = m->eds_cluster_config->service_name;
	if (!*name && strncmp(m->name, "xdstp:", 6) == 0)
		return lb_err_set(
			err, "eds_cluster_config: a cluster named xdstp: needs a service_name");
	c->eds_name = xds_arena_strdup(&c->base.arena, *name ? name : m->name);
	return c->eds_name ? 0 : -ENOMEM;
}

// The first entry of a type we know counts; what it says must then be right (gRFC A52). 0, -EINVAL
// or -ENOMEM.
static int read_policies(
	const PolicyList *list, unsigned depth, struct res_cluster *c, struct lb_err *err)
{
	if (depth > MAX_POLICY_DEPTH)
		return lb_err_set(err, "nested deeper than %d", MAX_POLICY_DEPTH);
	for (size_t i = 0; list && i < list->n_policies; i++) {
		const Envoy__Config__Core__V3__TypedExtensionConfig *e =
			list->policies[i]->typed_extension_config;
		const Google__Protobuf__Any *any = e ? e->typed_config : NULL;
		if (!any)
			return lb_err_set(err, "policies[%zu]: no typed_config", i);
		if (proto_any_is(any->type_url, ROUND_ROBIN_TYPE)) {
			void *m = res_any_unpack(any, ROUND_ROBIN_TYPE, "round_robin", err);
			proto_free(m);
			c->policy = RES_LB_ROUND_ROBIN;
			return m ? 0 : -EINVAL;
		}
		if (proto_any_is(any->type_url, WRR_LOCALITY_TYPE)) {
			WrrLocality *m =
				res_any_unpack(any, WRR_LOCALITY_TYPE, "wrr_locality", err);
			if (!m)
				return -EINVAL;
			c->by_locality = true;
			int rc = read_policies(m->endpoint_picking_policy, depth + 1, c, err);
			proto_free(m);
			return rc == -EINVAL ? lb_err_within(err, "wrr_locality") : rc;
		}
	}
	return lb_err_set(err, "no supported policy");
}

static int read_policy(const Cluster *m, struct res_cluster *c, struct lb_err *err)
{
	if (m->load_balancing_policy) {
		int rc = read_policies(m->load_balancing_policy, 1, c, err);
		return rc == -EINVAL ? lb_err_within(err, "load_balancing_policy") : rc;
	}
	if (m->lb_policy != LB(ROUND_ROBIN))
		return lb_err_set(err, "lb_policy: %s is not supported%s",
			enum_name(&envoy__config__cluster__v3__cluster__lb_policy__descriptor,
				(int)m->lb_policy),
			m->lb_policy == LB(LEAST_REQUEST) || m->lb_policy == LB(RING_HASH) ? " yet"
											   : "");
	c->policy = RES_LB_ROUND_ROBIN;
	c->by_locality = true;
	return 0;
}

static int read_idle_timeout(const Google__Protobuf__Any *any, const char *field,
	struct res_cluster *c, struct lb_err *err)
{
	HttpOptions *m = res_any_unpack(any, HTTP_OPTIONS_TYPE, field, err);
	if (!m)
		return -EINVAL;
	const Google__Protobuf__Duration *d =
		m->common_http_protocol_options ? m->common_http_protocol_options->idle_timeout
						: NULL;
	int rc = res_check_duration(d, "common_http_protocol_options.idle_timeout", err);
	if (rc)
		lb_err_within(err, "%s", field);
	else if (d)
		c->idle_timeout_ns = res_duration_ns(d);
	proto_free(m);
	return rc;
}

// xds-client.md CL-08 and §17.12.
static int read_upstream(const Cluster *m, struct res_cluster *c, struct lb_err *err)
{
	c->idle_timeout_ns = DEFAULT_IDLE_TIMEOUT_NS;
	if (m->upstream_config) {
		const Google__Protobuf__Any *any = m->upstream_config->typed_config;
		if (!any || !proto_any_is(any->type_url, HTTP_OPTIONS_TYPE))
			return lb_err_set(err, "upstream_config: is no HttpProtocolOptions");
		return read_idle_timeout(any, "upstream_config", c, err);
	}
	for (size_t i = 0; i < m->n_typed_extension_protocol_options; i++) {
		const Google__Protobuf__Any *any = m->typed_extension_protocol_options[i]->value;
		if (any && proto_any_is(any->type_url, HTTP_OPTIONS_TYPE))
			return read_idle_timeout(any, "typed_extension_protocol_options", c, err);
	}
	return 0;
}

// gRFC A32: the first threshold of DEFAULT priority.
static uint32_t max_requests(const Cluster *m)
{
	size_t n = m->circuit_breakers ? m->circuit_breakers->n_thresholds : 0;
	for (size_t i = 0; i < n; i++) {
		const Envoy__Config__Cluster__V3__CircuitBreakers__Thresholds *t =
			m->circuit_breakers->thresholds[i];
		if (t->priority == ENVOY__CONFIG__CORE__V3__ROUTING_PRIORITY__DEFAULT)
			return t->max_requests ? t->max_requests->value : DEFAULT_MAX_REQUESTS;
	}
	return DEFAULT_MAX_REQUESTS;
}

// routing.md SA-12.
static uint32_t session_health(const Cluster *m)
{
	const uint32_t usual = 1u << RES_HEALTH_UNKNOWN | 1u << RES_HEALTH_HEALTHY;
	const Envoy__Config__Core__V3__HealthStatusSet *set =
		m->common_lb_config ? m->common_lb_config->override_host_status : NULL;
	if (!set)
		return usual;
	uint32_t mask = 0;
	for (size_t i = 0; i < set->n_statuses; i++)
		if (set->statuses[i] == (int)RES_HEALTH_UNKNOWN ||
			set->statuses[i] == (int)RES_HEALTH_HEALTHY ||
			set->statuses[i] == (int)RES_HEALTH_DRAINING)
			mask |= 1u << set->statuses[i];
	return mask;
}

static int read_cluster(const Cluster *m, struct res_cluster *c, struct lb_err *err)
{
	int rc = read_discovery(m, c, err);
	if (!rc)
		rc = read_policy(m, c, err);
	if (!rc)
		rc = read_upstream(m, c, err);
	if (rc)
		return rc;
	if (m->lrs_server &&
		m->lrs_server->config_source_specifier_case !=
			ENVOY__CONFIG__CORE__V3__CONFIG_SOURCE__CONFIG_SOURCE_SPECIFIER_SELF)
		return lb_err_set(err, "lrs_server: is not self");
	// To connect in the clear where TLS is asked for would be worse than to refuse.
	const Google__Protobuf__Any *socket =
		m->transport_socket ? m->transport_socket->typed_config : NULL;
	if (socket && res_any_stands_for(socket, TLS_TYPE))
		return lb_err_set(err, "transport_socket: TLS to backends is not supported yet");
	c->max_requests = max_requests(m);
	c->session_health = session_health(m);
	return 0;
}

static void decode(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	Cluster *m = proto_unpack(
		&envoy__config__cluster__v3__cluster__descriptor, bytes, len, &ret->err);
	if (!m) {
		ret->name = res_name_in(bytes, len);
		return;
	}
	ret->name = strdup(m->name);
	struct xds_res *base = !ret->name
	                               ? NULL
	                               : xds_res_new(&res_type_cluster, sizeof(struct res_cluster),
						 m->name, bytes, len);
	if (base && read_cluster(m, res_cluster_from(base), &ret->err)) {
		xds_res_put(base);
		base = NULL;
	}
	ret->res = base;
	proto_free(m);
}

const struct xds_type res_type_cluster = {
	.url = "type.googleapis.com/envoy.config.cluster.v3.Cluster",
	.label = "cluster",
	.full_state = true,
	.decode = decode,
};
