// SPDX-License-Identifier: Apache-2.0
#include "ctrl/data_plane.h"

#include "ctrl/conf/config_numbers.h"
#include "dataplane/buf/buf.h"
#include "dataplane/vlan.h"
#include "lb/base/time.h"

// What config.h lets through must fit the data plane, which it does not know.
_Static_assert(CONFIG_MAX_PORTS <= NET_MAX_PORTS, "ports");
_Static_assert(CONFIG_MAX_ADDRESSES <= NET_MAX_ADDRESSES, "addresses of a port");
_Static_assert(CONFIG_MAX_VIPS <= NET_MAX_VIPS, "vips");
_Static_assert(CONFIG_MAX_MTU <= PORT_MAX_MTU, "mtu");
_Static_assert(CONFIG_MAX_VLAN <= VLAN_MAX, "vlan");

// Of all workers; of one source a quarter. Each takes some 40 KiB.
#define MAX_HANDSHAKES 4096
#define CHUNKS_OF_MIB ((1u << 20) / BUF_CHUNK_SIZE)

static void describe_ports(
	const struct config *c, struct port *const *ports, struct worker_conf *conf)
{
	conf->n_ports = c->n_ports;
	for (unsigned i = 0; i < conf->n_ports; i++) {
		const struct config_port *p = &c->ports[i];
		struct host_port *to = &conf->ports[i];
		to->port = ports[i];
		to->gateway = p->gateway_ip;
		to->gateway6 = p->gateway6_ip;
		to->accept_ra = p->accept_ra;
		to->n_addresses = p->n_addresses;
		for (unsigned j = 0; j < p->n_addresses; j++)
			to->addresses[j] =
				(struct net_prefix){p->address_ips[j], p->address_lens[j]};
	}
}

static void describe_vips(const struct config *c, struct worker_conf *conf)
{
	for (; conf->n_vips < c->n_vips; conf->n_vips++) {
		const struct config_vip *v = &c->vips[conf->n_vips];
		conf->vips[conf->n_vips] = (struct net_vip){v->range, v->answers};
	}
}

static struct worker_limits limits_of(const struct config *c)
{
	struct worker_limits l = worker_limits_default();
	l.max_conns = c->max_connections;
	l.max_requests = c->max_requests;
	l.max_concurrent_streams = c->max_streams;
	if (l.max_queued > l.max_requests)
		l.max_queued = l.max_requests;
	l.n_chunks = c->max_buffers_mib * CHUNKS_OF_MIB;
	return l;
}

static struct proxy_silence silence_of(const struct config_silence *s)
{
	return (struct proxy_silence){
		.user_timeout_ns = s->tcp_user_timeout_s * NS_PER_SECOND,
		.tcp_keepalive_ns = s->tcp_keepalive_time_s * NS_PER_SECOND,
		.ping_interval_ns = s->keepalive_interval_s * NS_PER_SECOND,
		.ping_timeout_ns = s->keepalive_timeout_s * NS_PER_SECOND,
	};
}

void data_plane_describe_worker(
	const struct config *c, struct port *const *ports, struct worker_conf *ret)
{
	ret->idle = c->idle == CONFIG_IDLE_POLL ? WORKER_IDLE_POLL : WORKER_IDLE_BACKOFF;
	ret->limits = limits_of(c);
	ret->n_handshake_threads = c->tls_threads;
	ret->n_vip_places = c->n_vip_places;
	ret->listener_drain_ns = c->listener_drain_s * NS_PER_SECOND;
	ret->client_silence = silence_of(&c->client_silence);
	ret->backend_silence = silence_of(&c->backend_silence);
	ret->idle_timeout_ns = c->idle_timeout_s * NS_PER_SECOND;
	ret->max_age_ns = c->max_connection_age_s * NS_PER_SECOND;
	ret->max_age_grace_ns = c->max_connection_age_grace_s * NS_PER_SECOND;
	ret->client_buffer = c->client_buffer_kib * 1024;
	ret->max_attempts = c->max_attempts;
	ret->retry_idempotent = c->retry_idempotent;
	describe_ports(c, ports, ret);
	describe_vips(c, ret);
}

struct tlshs_threads *data_plane_make_handshakes(const struct config *c)
{
	struct tlshs_threads_conf conf = {
		.n_threads = c->tls_threads,
		.n_workers = c->n_workers,
		.max_handshakes = WORKER_MAX_HANDSHAKES,
		.max_open = MAX_HANDSHAKES,
		.max_open_of_source = MAX_HANDSHAKES / 4,
	};
	return tlshs_threads_new(&conf);
}

void data_plane_describe_frontend(const struct config_frontend *f, struct proxy_frontend *ret)
{
	static const enum proxy_wait_for_ready wait_for_ready[] = {
		[CONFIG_WAIT_NEVER] = PROXY_WAIT_NEVER,
		[CONFIG_WAIT_ALWAYS] = PROXY_WAIT_ALWAYS,
		[CONFIG_WAIT_HEADER] = PROXY_WAIT_HEADER,
	};
	*ret = (struct proxy_frontend){
		.address = f->address_ip,
		.port = f->port,
		.authority = f->authority,
		.wait_for_ready = wait_for_ready[f->wait_for_ready],
		.reply_details = f->reply_details,
		.by_listeners = f->by_listeners,
	};
	const struct config_proxy_protocol *h = f->proxy_protocol;
	if (h)
		ret->header = (struct proxy_header_conf){
			h->prefixes, h->n_allow, !h->v1 || *h->v1, !h->v2 || *h->v2};
}
