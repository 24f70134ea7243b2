// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/announce.h"

#include "dataplane/proxy/client_header.h"
#include "dataplane/proxy/proxy_header.h"
#include "dataplane/proxy/state.h"
#include "lb/pick/security.h"

_Static_assert(LB_HEADER_TLVS_MAX <= PROXY_HEADER_TLVS_MAX, "what clusters may ask for");

// Where it went, as its client sees it, or as its PROXY header says.
static struct ip_port target_of(const struct proxy_client *c)
{
	const struct tcp_flow *flow = tcp_conn_flow(c->conn.tcp);
	return c->has_target ? c->target : (struct ip_port){flow->local, flow->local_port};
}

// PP-14: as Envoy, of one that is nobody's version 1 has our own addresses.
static size_t write(const struct tcp_conn *tcp, const struct lb_header *h,
	const struct proxy_client *client, uint8_t *to)
{
	const struct tcp_flow *flow = tcp_conn_flow(tcp);
	struct ip_port source = {flow->local, flow->local_port},
		       target = {flow->remote, flow->remote_port};
	if (client) {
		source = (struct ip_port){client->address, client->port};
		target = target_of(client);
	}
	bool is_local = !client && h->version == 2;
	const struct proxy_header_text text = {.source = is_local ? NULL : &source,
		.target = is_local ? NULL : &target,
		.tlvs = h->tlvs,
		.clients_tlvs = client ? proxy_client_tlvs(client) : (struct str){0},
		.passed = h->passed,
		.version = h->version};
	return proxy_header_write(&text, to);
}

bool proxy_announce(struct proxy_conn *c, struct tcp_conn *tcp, const struct lb_header *h,
	const struct proxy_client *client)
{
	uint8_t bytes[PROXY_HEADER_WRITTEN_MAX];
	if (!h)
		return true;
	size_t n = write(tcp, h, client, bytes);
	if (!buf_append(tcp_conn_sendq(tcp), c->proxy->chunks, bytes, n))
		return false;
	c->n_before = (uint16_t)(c->n_before + n);
	proxy_count(c->proxy, PROXY_headers_sent);
	return true;
}

bool proxy_announce_and_start(struct proxy_conn *c, struct tcp_conn *tcp, const struct lb_header *h,
	const struct proxy_client *client, const struct h2_events *events,
	const struct lb_silence *silence)
{
	return proxy_announce(c, tcp, h, client) &&
	       proxy_conn_start(c, tcp, H2_CLIENT, events, silence);
}
