// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/discovery.h"

#include "ctrl/res/cluster.h"
#include "envoy/extensions/clusters/aggregate/v3/cluster.pb-c.h"
#include "lb/route/domains.h"

#include <errno.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Config__Endpoint__V3__ClusterLoadAssignment Assignment;
typedef Envoy__Config__Endpoint__V3__LbEndpoint LbEndpoint;
typedef Envoy__Config__Core__V3__SocketAddress SocketAddress;
typedef Envoy__Extensions__Clusters__Aggregate__V3__ClusterConfig Aggregate;
#define AGGREGATE_TYPE (&envoy__extensions__clusters__aggregate__v3__cluster_config__descriptor)
#define DISCOVERY(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__DISCOVERY_TYPE__##x
#define DISCOVERY_CASE(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__CLUSTER_DISCOVERY_TYPE_##x

static int copy(struct res_reader *rd, const char *text, const char **ret)
{
	*ret = lb_arena_strdup(rd->arena, text);
	return *ret ? 0 : -ENOMEM;
}

static int read_eds(struct res_reader *rd, const Cluster *m, struct res_cluster *c)
{
	c->kind = RES_CLUSTER_EDS;
	if (!m->eds_cluster_config || !res_is_ads(m->eds_cluster_config->eds_config))
		return lb_err_set(
			rd->err, "eds_cluster_config: eds_config is neither ads nor self");
	const char *name = m->eds_cluster_config->service_name;
	if (!*name && strncmp(m->name, "xdstp:", 6) == 0)
		return lb_err_set(
			rd->err, "eds_cluster_config: a cluster named xdstp: needs a service_name");
	int rc = copy(rd, name, &c->eds_service_name);
	if (!rc && *name)
		c->eds_name = c->eds_service_name;
	return rc;
}

// The only endpoint of the only locality. NULL = there is no such, and the error says why.
static const LbEndpoint *only_endpoint(const Assignment *a, struct lb_err *err)
{
	if (!a) {
		lb_err_set(err, "a LOGICAL_DNS cluster needs one");
		return NULL;
	}
	if (a->n_endpoints != 1) {
		lb_err_set(err, "endpoints: must be one locality, not %zu", a->n_endpoints);
		return NULL;
	}
	if (a->endpoints[0]->n_lb_endpoints != 1) {
		lb_err_set(err, "endpoints[0]: lb_endpoints: must be one, not %zu",
			a->endpoints[0]->n_lb_endpoints);
		return NULL;
	}
	return a->endpoints[0]->lb_endpoints[0];
}

static int read_dns_address(struct res_reader *rd, const SocketAddress *s, struct res_cluster *c)
{
	if (*s->resolver_name)
		return lb_err_set(rd->err, "resolver_name: must be empty");
	if (!*s->address)
		return lb_err_set(rd->err, "no address");
	if (s->port_specifier_case !=
		ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_PORT_VALUE)
		return lb_err_set(rd->err, "no port_value");
	if (s->port_value == 0 || s->port_value > UINT16_MAX)
		return lb_err_set(rd->err, "port_value: must be in [1, %d]", UINT16_MAX);
	c->dns.port = (uint16_t)s->port_value;
	return copy(rd, s->address, &c->dns.host);
}

// A37-D01.
static int read_dns(struct res_reader *rd, const Cluster *m, struct res_cluster *c)
{
	c->kind = RES_CLUSTER_LOGICAL_DNS;
	const LbEndpoint *e = only_endpoint(m->load_assignment, rd->err);
	if (!e)
		return lb_err_within(rd->err, "load_assignment");
	if (e->host_identifier_case !=
		ENVOY__CONFIG__ENDPOINT__V3__LB_ENDPOINT__HOST_IDENTIFIER_ENDPOINT)
		return lb_err_set(rd->err, "load_assignment: lb_endpoints[0]: no endpoint");
	const Envoy__Config__Core__V3__Address *a = e->endpoint->address;
	if (!a || a->address_case != ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS)
		return lb_err_set(rd->err, "load_assignment: lb_endpoints[0]: no socket_address");
	int rc = read_dns_address(rd, a->socket_address, c);
	if (rc == -EINVAL)
		return lb_err_within(rd->err, "load_assignment: lb_endpoints[0]: socket_address");
	struct str hostname = str_from(e->endpoint->hostname);
	// It becomes the :authority of requests (AR-01).
	if (!rc && hostname.len && !lb_authority_is_valid(hostname))
		return lb_err_set(rd->err,
			"load_assignment: lb_endpoints[0]: hostname: \"%.64s\" is not an authority",
			hostname.p);
	return rc ? rc : copy(rd, e->endpoint->hostname, &c->dns.hostname);
}

// A37-G04. A cluster may stand there twice; who flattens the lists leaves it out (A75-G01).
static int read_children(struct res_reader *rd, const Aggregate *m, struct res_cluster *c)
{
	if (!m->n_clusters)
		return lb_err_set(rd->err, "clusters: must not be empty");
	const char **list = lb_arena_alloc(rd->arena, m->n_clusters, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_clusters; i++) {
		if (!*m->clusters[i]) // it can be asked for by no name
			return lb_err_set(rd->err, "clusters[%zu]: is empty", i);
		if (copy(rd, m->clusters[i], &list[i]))
			return -ENOMEM;
	}
	c->children = list;
	c->n_children = (uint32_t)m->n_clusters;
	return 0;
}

static int read_custom(struct res_reader *rd, const Cluster *m, struct res_cluster *c)
{
	c->kind = RES_CLUSTER_AGGREGATE;
	const Google__Protobuf__Any *any = m->cluster_type->typed_config;
	if (!any)
		return lb_err_set(rd->err, "cluster_type: no typed_config");
	if (!proto_any_is(any->type_url, AGGREGATE_TYPE))
		return lb_err_set(
			rd->err, "cluster_type: \"%.128s\" is not supported", any->type_url);
	Aggregate *aggregate = res_any_unpack(any, AGGREGATE_TYPE, rd->err);
	if (!aggregate)
		return lb_err_within(rd->err, "cluster_type");
	int rc = read_children(rd, aggregate, c);
	proto_free(aggregate);
	return rc == -EINVAL ? lb_err_within(rd->err, "cluster_type") : rc;
}

int res_discovery_read(struct res_reader *rd, const Cluster *m, struct res_cluster *c)
{
	c->eds_name = c->base.name;
	c->eds_service_name = "";
	if (m->cluster_discovery_type_case == DISCOVERY_CASE(CLUSTER_TYPE))
		return read_custom(rd, m, c);
	int type = m->cluster_discovery_type_case == DISCOVERY_CASE(TYPE) ? (int)m->type
	                                                                  : DISCOVERY(STATIC);
	if (type == DISCOVERY(EDS))
		return read_eds(rd, m, c);
	if (type == DISCOVERY(LOGICAL_DNS))
		return read_dns(rd, m, c);
	return lb_err_set(rd->err, "type: %s is not supported",
		res_enum_name(
			&envoy__config__cluster__v3__cluster__discovery_type__descriptor, type));
}
