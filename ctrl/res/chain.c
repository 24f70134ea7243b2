// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/chain.h"

#include "ctrl/res/cidr.h"
#include "ctrl/res/listener.h"

#include <errno.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Core__V3__Address Address;
typedef Envoy__Config__Core__V3__CidrRange Range;
typedef Envoy__Config__Core__V3__SocketAddress SocketAddress;
typedef Envoy__Config__Listener__V3__FilterChainMatch Match;
typedef Envoy__Config__Listener__V3__Listener Listener;
#define SOURCE_TYPE(x) ENVOY__CONFIG__LISTENER__V3__FILTER_CHAIN_MATCH__CONNECTION_SOURCE_TYPE__##x

// What is no IP address, or has no port, is no frontend's (A36-02): it is not in the list.
static int read_address(struct res_reader *rd, const Address *m, struct ip_port *ret, bool *is_ip)
{
	if (!m || m->address_case != ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS)
		return lb_err_set(rd->err, "no socket_address");
	const SocketAddress *a = m->socket_address;
	if (a->protocol != ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PROTOCOL__TCP)
		return lb_err_set(rd->err, "protocol: must be TCP");
	uint32_t port = 0;
	if (a->port_specifier_case ==
		ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_PORT_VALUE)
		port = a->port_value;
	if (port > UINT16_MAX)
		return lb_err_set(rd->err, "port_value: above 65535");
	ret->port = (uint16_t)port;
	*is_ip = ip_parse(a->address, &ret->ip);
	return 0;
}

// A36-70
static int read_addresses(struct res_reader *rd, const Listener *m, struct res_socket *s)
{
	struct ip_port *list =
		lb_arena_alloc(rd->arena, m->n_additional_addresses + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	if (read_address(rd, m->address, &s->address, &s->is_ip))
		return lb_err_within(rd->err, "address");
	s->host = lb_arena_strdup(rd->arena, m->address->socket_address->address);
	if (!s->host)
		return -ENOMEM;
	list[0] = s->address;
	s->n_addresses = s->is_ip;
	for (size_t i = 0; i < m->n_additional_addresses; i++) {
		bool is_ip;
		if (read_address(
			    rd, m->additional_addresses[i]->address, &list[s->n_addresses], &is_ip))
			return lb_err_within(rd->err, "additional_addresses[%zu].address", i);
		s->n_addresses += is_ip;
	}
	s->addresses = list;
	return 0;
}

bool res_socket_has(const struct res_socket *s, const struct ip_port *a)
{
	for (uint32_t i = 0; i < s->n_addresses; i++)
		if (ip_port_eq(&s->addresses[i], a))
			return true;
	return false;
}

int res_socket_read(struct res_reader *rd, const Listener *m, struct res_socket *ret)
{
	int rc = read_addresses(rd, m, ret);
	if (rc)
		return rc;
	if (m->use_original_dst && m->use_original_dst->value)
		return lb_err_set(rd->err, "use_original_dst: is not supported");
	if (!m->n_filter_chains && !m->default_filter_chain)
		return lb_err_set(rd->err, "neither filter_chains nor default_filter_chain");
	return 0;
}

static int read_ranges(struct res_reader *rd, const char *field, Range *const *in, size_t n,
	const struct ip_prefix **ret, uint32_t *ret_n)
{
	struct ip_prefix *list = lb_arena_alloc(rd->arena, n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (res_cidr_read(rd, in[i], RES_CIDR_CUT, &list[i]))
			return lb_err_within(rd->err, "%s[%zu]", field, i);
	*ret = list;
	*ret_n = (uint32_t)n;
	return 0;
}

static int read_source_type(struct res_reader *rd, const Match *m, enum lb_source_type *ret)
{
	switch (m->source_type) {
	case SOURCE_TYPE(ANY):
		*ret = LB_SOURCE_ANY;
		return 0;
	case SOURCE_TYPE(SAME_IP_OR_LOOPBACK):
		*ret = LB_SOURCE_LOCAL;
		return 0;
	case SOURCE_TYPE(EXTERNAL):
		*ret = LB_SOURCE_EXTERNAL;
		return 0;
	default:
		return lb_err_set(rd->err, "source_type: unknown");
	}
}

static int read_texts(struct res_reader *rd, char *const *in, size_t n, bool fold,
	const struct str **ret, uint32_t *ret_n)
{
	struct str *list = lb_arena_alloc(rd->arena, n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		char *text = lb_arena_strdup(rd->arena, in[i]);
		if (!text)
			return -ENOMEM;
		for (char *p = text; fold && *p; p++)
			*p = str_fold(*p);
		list[i] = str_from(text);
	}
	*ret = list;
	*ret_n = (uint32_t)n;
	return 0;
}

static bool is_partial(const char *name)
{
	return strchr(name, '*') && strncmp(name, "*.", 2) != 0;
}

static int check_hello(struct res_reader *rd, const Match *m)
{
	for (size_t i = 0; i < m->n_server_names; i++)
		if (is_partial(m->server_names[i]))
			return lb_err_set(rd->err,
				"server_names[%zu]: an asterisk, but not \"*.\" at the beginning",
				i);
	return 0;
}

// What a ClientHello may have (A36-38).
static int read_hello(
	struct res_reader *rd, const Match *m, bool inspects, struct lb_chain_conf *ret)
{
	int rc = read_texts(rd, m->server_names, m->n_server_names, true, &ret->server_names,
		&ret->n_server_names);
	if (!rc)
		rc = read_texts(rd, m->application_protocols, m->n_application_protocols, false,
			&ret->protocols, &ret->n_protocols);
	if (rc)
		return rc;
	if (!*m->transport_protocol)
		ret->transport = LB_TRANSPORT_ANY;
	else if (strcmp(m->transport_protocol, "raw_buffer") == 0)
		ret->transport = LB_TRANSPORT_RAW;
	else if (strcmp(m->transport_protocol, "tls") == 0)
		ret->transport = LB_TRANSPORT_TLS;
	else
		ret->transport = LB_TRANSPORT_OTHER;
	return inspects ? check_hello(rd, m) : 0;
}

int res_chain_match_read(
	struct res_reader *rd, const Match *m, bool inspects, struct lb_chain_conf *ret)
{
	*ret = (struct lb_chain_conf){.never = false};
	if (!m)
		return 0;
	uint32_t *ports = lb_arena_alloc(rd->arena, m->n_source_ports + 1, sizeof(*ports));
	if (!ports)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_source_ports; i++)
		ports[i] = m->source_ports[i];
	int rc = read_ranges(rd, "prefix_ranges", m->prefix_ranges, m->n_prefix_ranges,
		&ret->destinations, &ret->n_destinations);
	if (!rc)
		rc = read_ranges(rd, "source_prefix_ranges", m->source_prefix_ranges,
			m->n_source_prefix_ranges, &ret->sources, &ret->n_sources);
	if (!rc)
		rc = read_source_type(rd, m, &ret->source_type);
	if (!rc)
		rc = read_hello(rd, m, inspects, ret);
	if (m->n_direct_source_prefix_ranges) // A36-41: all peers have what was meant for some
		res_warn(rd, "filter_chain_match: direct_source_prefix_ranges are ignored");
	ret->source_ports = ports;
	ret->n_source_ports = (uint32_t)m->n_source_ports;
	ret->never = m->destination_port && m->destination_port->value;
	return rc == -EINVAL ? lb_err_within(rd->err, "filter_chain_match") : rc;
}
