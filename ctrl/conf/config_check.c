// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_check.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_access_log.h"
#include "ctrl/conf/config_address.h"
#include "ctrl/conf/config_bond.h"
#include "ctrl/conf/config_collisions.h"
#include "ctrl/conf/config_frontends.h"
#include "ctrl/conf/config_gateways.h"
#include "ctrl/conf/config_kernel.h"
#include "ctrl/conf/config_numbers.h"
#include "ctrl/conf/config_stats.h"
#include "ctrl/conf/config_tracing.h"
#include "ctrl/conf/config_tunnels.h"
#include "ctrl/conf/config_vips.h"
#include "ctrl/conf/config_workers.h"
#include "lb/base/time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IP6_MTU_MIN 1280 // RFC 8200 5

static int check_address(
	const char *text, struct ip_addr *ret_ip, uint8_t *ret_len, struct lb_err *reterr)
{
	char ip[64];
	unsigned len;
	int end = 0;
	if (sscanf(text, "%63[^/]/%u%n", ip, &len, &end) != 2 || text[end] != 0 ||
		!ip_parse(ip, ret_ip) || len < 1 || len > (ip_is_v4(ret_ip) ? 32 : 128))
		return lb_err_set(reterr,
			"'%s' is not an IP address with a prefix length, like "
			"10.0.0.1/24 or 2001:db8::1/64",
			text);
	if (!config_is_of_host(ret_ip))
		return lb_err_set(reterr, "%s is not a host's address", text);
	if (ip_is_link_local(ret_ip))
		return lb_err_set(reterr,
			"%s is link-local: a port with another IPv6 address has one by itself",
			text);
	*ret_len = (uint8_t)len;
	return 0;
}

static int check_port(struct config_port *p, struct lb_err *reterr)
{
	uint32_t mtu = p->mtu; // 0 = absent
	if (config_number_check(CONFIG_MTU, mtu ? &mtu : NULL, &mtu, reterr))
		return -EINVAL;
	p->mtu = (uint16_t)mtu;
	uint32_t vlan = p->vlan;
	if (config_number_check(CONFIG_VLAN, &vlan, &vlan, reterr))
		return -EINVAL;
	p->address_ips = calloc(p->n_addresses, sizeof(*p->address_ips));
	p->address_lens = calloc(p->n_addresses, sizeof(*p->address_lens));
	if (!p->address_ips || !p->address_lens)
		return lb_err_set(reterr, "out of memory");
	for (unsigned i = 0; i < p->n_addresses; i++) {
		if (check_address(p->addresses[i], &p->address_ips[i], &p->address_lens[i], reterr))
			return lb_err_within(reterr, "addresses[%u]", i);
		p->has_ip6 |= !ip_is_v4(&p->address_ips[i]);
	}
	if (p->has_ip6 && p->mtu && p->mtu < IP6_MTU_MIN)
		return lb_err_set(
			reterr, "mtu: %u is less than the %d that IPv6 needs", p->mtu, IP6_MTU_MIN);
	return config_check_gateways(p, reterr);
}

static bool has_same_address(const struct config_port *a, const struct config_port *b)
{
	for (unsigned i = 0; i < a->n_addresses; i++)
		for (unsigned j = 0; j < b->n_addresses; j++)
			if (ip_eq(&a->address_ips[i], &b->address_ips[j]))
				return true;
	return false;
}

static int check_ports(struct config *c, struct lb_err *reterr)
{
	for (unsigned i = 0; i < c->n_ports; i++) {
		if (check_port(&c->ports[i], reterr))
			return lb_err_within(reterr, "ports[%u]", i);
		for (unsigned j = 0; j < i; j++)
			if (has_same_address(&c->ports[i], &c->ports[j]))
				return lb_err_set(reterr,
					"ports[%u].addresses: one is an address of ports[%u] "
					"already",
					i, j);
	}
	return 0;
}

uint32_t config_port_of(const struct config *c, const struct ip_addr *ip)
{
	uint32_t i = 0;
	for (; i < c->n_ports; i++)
		for (unsigned j = 0; j < c->ports[i].n_addresses; j++)
			if (ip_eq(&c->ports[i].address_ips[j], ip))
				return i;
	return i;
}

// "10.0.0.2:53", "[fd00::2]:53"
static bool read_ip_port(const char *text, struct ip_addr *ret)
{
	char host[64];
	unsigned port;
	int end = 0;
	if (strpbrk(text, " +-")) // of a number, to sscanf
		return false;
	if (sscanf(text, "[%63[^]]]:%5u%n", host, &port, &end) != 2 &&
		sscanf(text, "%63[^:]:%5u%n", host, &port, &end) != 2)
		return false;
	bool brackets = text[0] == '[';
	return text[end] == 0 && port >= 1 && port <= 65535 && ip_parse(host, ret) &&
	       ip_is_v4(ret) != brackets;
}

static bool is_name_server(const char *text)
{
	struct ip_addr ip;
	return ip_parse(text, &ip) || read_ip_port(text, &ip);
}

static int check_dns(struct config *c, struct lb_err *reterr)
{
	size_t len = 0;
	for (unsigned i = 0; c->dns && i < c->dns->n_servers; i++) {
		if (!is_name_server(c->dns->servers[i]))
			return lb_err_set(reterr,
				"dns.servers[%u]: '%s' is not an address of a name server, like "
				"10.0.0.2 or 10.0.0.2:5353",
				i, c->dns->servers[i]);
		len += strlen(c->dns->servers[i]) + 1;
	}
	if (len == 0)
		return 0;
	c->dns_servers = malloc(len);
	if (!c->dns_servers)
		return lb_err_set(reterr, "out of memory");
	char *end = c->dns_servers;
	for (unsigned i = 0; i < c->dns->n_servers; i++)
		end += sprintf(end, "%s%s", i ? "," : "", c->dns->servers[i]);
	return 0;
}

static int check_csds(const struct config *c, struct lb_err *reterr)
{
	struct ip_addr ip;
	if (!c->csds)
		return 0;
	if (!read_ip_port(c->csds->listen, &ip))
		return lb_err_set(reterr,
			"csds.listen: '%s' is not an address with a port, like 127.0.0.1:50052",
			c->csds->listen);
	if (!c->csds->allow_remote && !config_is_loopback(&ip))
		return lb_err_set(reterr,
			"csds.listen: %s is not a loopback address, and clients can read "
			"all of the configuration (csds.allow_remote: true permits it)",
			c->csds->listen);
	return 0;
}

static int check_metrics(const struct config *c, struct lb_err *reterr)
{
	struct ip_addr ip;
	if (!c->metrics)
		return 0;
	if (!read_ip_port(c->metrics->listen, &ip))
		return lb_err_set(reterr,
			"metrics.listen: '%s' is not an address with a port, like 127.0.0.1:9464",
			c->metrics->listen);
	if (!c->metrics->allow_remote && !config_is_loopback(&ip))
		return lb_err_set(reterr,
			"metrics.listen: %s is not a loopback address, and readers see the names "
			"of clusters (metrics.allow_remote: true permits it)",
			c->metrics->listen);
	return 0;
}

static int check_capture(const struct config *c, struct lb_err *reterr)
{
	if (!c->capture)
		return 0;
	return config_check_directory("capture.directory", c->capture->directory, reterr);
}

static int check_limits(struct config *c, struct lb_err *reterr)
{
	const struct config_limits none = {0}, *l = c->limits ? c->limits : &none;
	if (config_number_check(CONFIG_CONNECTIONS, l->connections, &c->max_connections, reterr) ||
		config_number_check(CONFIG_REQUESTS, l->requests, &c->max_requests, reterr) ||
		config_number_check(CONFIG_STREAMS, l->streams, &c->max_streams, reterr) ||
		config_number_check(CONFIG_BUFFERS, l->buffers_mib, &c->max_buffers_mib, reterr) ||
		config_number_check(CONFIG_CLIENT_BUFFER, l->client_buffer_kib,
			&c->client_buffer_kib, reterr) ||
		config_number_check(
			CONFIG_XDS_RESOURCES, l->xds_resources, &c->max_xds_resources, reterr) ||
		config_number_check(
			CONFIG_XDS_RESPONSE, l->xds_response_mib, &c->max_xds_response_mib, reterr))
		return -EINVAL;
	if (config_number_check(
		    CONFIG_IDLE_TIMEOUT, l->idle_timeout_s, &c->idle_timeout_s, reterr) ||
		config_number_check(CONFIG_CONNECTION_AGE, l->max_connection_age_s,
			&c->max_connection_age_s, reterr) ||
		config_number_check(CONFIG_CONNECTION_AGE_GRACE, l->max_connection_age_grace_s,
			&c->max_connection_age_grace_s, reterr))
		return -EINVAL;
	return config_number_check(CONFIG_STREAM_IDLE_TIMEOUT, l->stream_idle_timeout_s,
		&c->stream_idle_timeout_s, reterr);
}

// first: the side's first number.
static int check_peers(enum config_number_id first, const struct config_peers *given,
	struct config_silence *ret, struct lb_err *reterr)
{
	const struct config_peers none = {0}, *p = given ? given : &none;
	const uint32_t *const numbers[] = {p->tcp_user_timeout_s, p->tcp_keepalive_time_s,
		p->keepalive_interval_s, p->keepalive_timeout_s};
	uint32_t *const values[] = {&ret->tcp_user_timeout_s, &ret->tcp_keepalive_time_s,
		&ret->keepalive_interval_s, &ret->keepalive_timeout_s};
	for (unsigned i = 0; i < 4; i++)
		if (config_number_check(first + i, numbers[i], values[i], reterr))
			return -EINVAL;
	return 0;
}

static int check_retries(struct config *c, struct lb_err *reterr)
{
	const struct config_retries none = {0}, *r = c->retries ? c->retries : &none;
	c->retry_idempotent = r->idempotent ? *r->idempotent : true;
	return config_number_check(CONFIG_ATTEMPTS, r->max_attempts, &c->max_attempts, reterr);
}

static int check_tls(struct config *c, struct lb_err *reterr)
{
	const struct config_tls none = {0}, *t = c->tls ? c->tls : &none;
	if (config_number_check(CONFIG_TLS_THREADS, t->threads, &c->tls_threads, reterr))
		return -EINVAL;
	return config_number_check(CONFIG_CRL_REFRESH, t->crl_refresh_s, &c->crl_refresh_s, reterr);
}

static int check_drains(struct config *c, struct lb_err *reterr)
{
	if (config_number_check(CONFIG_LAME_DUCK, c->lame_duck, &c->lame_duck_s, reterr))
		return -EINVAL;
	if (config_number_check(CONFIG_FAREWELL, c->farewell, &c->farewell_s, reterr))
		return -EINVAL;
	if (c->farewell_s == 1)
		return lb_err_set(reterr,
			"farewell_s: 1 leaves no time to send clients away, 2 is the least, or 0");
	if (config_number_check(CONFIG_DRAIN, c->drain, &c->drain_s, reterr))
		return -EINVAL;
	return config_number_check(
		CONFIG_LISTENER_DRAIN, c->listener_drain, &c->listener_drain_s, reterr);
}

static int check_path(const char *field, const char *path, struct lb_err *reterr)
{
	if (!path || path[0] == '/')
		return 0;
	return lb_err_set(reterr, "%s: '%s' is not a path from the root", field, path);
}

int config_check(struct config *c, struct lb_err *reterr)
{
	c->log_level = c->log && c->log->level ? *c->log->level : LOG_LEVEL_INFO;
	if (config_check_stats(c, reterr) || config_check_workers(c, reterr) ||
		check_dns(c, reterr) || check_csds(c, reterr) || check_metrics(c, reterr) ||
		check_limits(c, reterr) || config_check_access_log(c, reterr) ||
		check_capture(c, reterr) || config_check_tracing(c, reterr) ||
		check_retries(c, reterr) ||
		check_peers(CONFIG_CLIENT_USER_TIMEOUT, c->clients, &c->client_silence, reterr) ||
		check_peers(
			CONFIG_BACKEND_USER_TIMEOUT, c->backends, &c->backend_silence, reterr) ||
		check_tls(c, reterr) || check_path("state_dir", c->state_dir, reterr) ||
		check_path("ready_file", c->ready_file, reterr) ||
		check_path("takeover_socket", c->takeover_socket, reterr) ||
		check_drains(c, reterr) || config_check_devices(c, reterr) ||
		check_ports(c, reterr) || config_check_kernels(c, reterr) ||
		config_check_vips(c, reterr) || config_check_tunnels(c, reterr))
		return -EINVAL;
	int rc = config_check_frontends(c, reterr);
	return rc ? rc : config_check_collisions(c, reterr);
}
