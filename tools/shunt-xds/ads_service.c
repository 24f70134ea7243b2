// SPDX-License-Identifier: Apache-2.0
// Each client has at most one message under way; when that has left, the stream is asked for the
// next.
#include "tools/shunt-xds/ads_service.h"

#include "ctrl/rpc/server.h"
#include "lb/base/err.h"
#include "lb/base/log.h"
#include "proto/wire.h"
#include "tools/shunt-xds/ads_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_CLIENTS_MAX 10000
#define REQUEST_LEN_MAX (16 << 20) // some 200,000 names
#define SOTW_METHOD                                                                                \
	"/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"

typedef Envoy__Service__Discovery__V3__DiscoveryRequest request_message;

struct client {
	struct ads_service *service;
	struct client *next, *prev;
	struct rpc_call *call;
	struct ads_stream *stream;
	bool sending;
	uint64_t number; // for the log
	char *peer;
};

struct ads_service {
	struct rpc_server *server;
	struct resource_set *set;
	struct client *clients;
	uint64_t n_clients_ever;
	uint64_t now_ns; // of this turn
};

static void client_free(struct client *c)
{
	ads_stream_free(c->stream);
	free(c->peer);
	free(c);
}

static void *on_open(void *ctx, struct rpc_call *call, struct str method, const char *peer)
{
	struct ads_service *s = ctx;
	if (!str_eq(method, STR(SOTW_METHOD))) {
		char text[128];
		snprintf(text, sizeof(text), "%.*s", (int)method.len, method.p);
		log_warn("method is not served", "peer=%s method=%s", log_quote(peer),
			log_quote(text));
		return NULL;
	}
	struct client *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct client){.service = s,
		.call = call,
		.stream = ads_stream_new(),
		.number = ++s->n_clients_ever,
		.peer = strdup(peer)};
	if (!c->stream || !c->peer) {
		client_free(c);
		return NULL;
	}
	c->next = s->clients;
	if (c->next)
		c->next->prev = c;
	s->clients = c;
	log_info("client connected", "client=%" PRIu64 " peer=%s", c->number, log_quote(peer));
	return c;
}

static void give_up(struct client *c)
{
	log_error("no memory for client", "client=%" PRIu64, c->number);
	rpc_call_end(c->call, RPC_RESOURCE_EXHAUSTED, "no memory");
}

// Sends the next response that is due, if nothing is under way.
static void send_next(struct client *c)
{
	struct ads_response response;
	uint8_t *bytes;
	size_t len;
	if (c->sending)
		return;
	int r = ads_stream_drain(c->stream, c->service->set, c->service->now_ns, &response);
	if (r == 1)
		r = ads_response_encode(&response, &bytes, &len) < 0 ? -ENOMEM : 1;
	if (r < 0)
		give_up(c);
	if (r <= 0)
		return;
	c->sending = true;
	rpc_call_send(c->call, bytes, len);
	free(bytes);
	log_info("response sent",
		"client=%" PRIu64 " type=%s version=%" PRIu64 " nonce=%" PRIu64
		" resources=%zu bytes=%zu",
		c->number, resource_type_info(response.type)->label, response.version,
		response.nonce, response.n, len);
}

static void log_request(
	const struct client *c, const request_message *m, const struct ads_request_result *result)
{
	static const char *const kinds[] = {[ADS_REQUEST_STALE] = "stale",
		[ADS_REQUEST_SUBSCRIBE] = "subscribe",
		[ADS_REQUEST_ACK] = "ack",
		[ADS_REQUEST_NACK] = "nack"};
	if (result->kind == ADS_REQUEST_UNKNOWN_TYPE) {
		log_warn("type is not served", "client=%" PRIu64 " type_url=%s", c->number,
			log_quote(m->type_url));
		return;
	}
	const char *label = resource_type_info(result->type)->label;
	if (result->kind == ADS_REQUEST_NACK)
		log_warn("client refuses",
			"client=%" PRIu64 " event=nack type=%s version=%" PRIu64
			" nonce=%s code=%d error=%s",
			c->number, label, result->version, log_quote(m->response_nonce),
			(int)m->error_detail->code, log_quote(m->error_detail->message));
	else
		log_write(result->kind == ADS_REQUEST_SUBSCRIBE ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
			"request",
			"client=%" PRIu64 " event=%s type=%s version=%" PRIu64
			" names=%zu wildcard=%d node=%s",
			c->number, kinds[result->kind], label, result->version, result->n_names,
			result->wildcard, log_quote(m->node ? m->node->id : ""));
}

static void on_message(void *call_ctx, const uint8_t *bytes, size_t len)
{
	struct client *c = call_ctx;
	struct ads_request_result result;
	request_message *m = (request_message *)proto_unpack(
		&envoy__service__discovery__v3__discovery_request__descriptor, bytes, len, NULL);
	if (!m) {
		log_warn("request is not understood", "client=%" PRIu64 " bytes=%zu", c->number,
			len);
		return;
	}
	int r = ads_stream_feed(c->stream, m, c->service->now_ns, &result);
	if (r == 0)
		log_request(c, m, &result);
	protobuf_c_message_free_unpacked(&m->base, NULL);
	if (r < 0)
		give_up(c);
	else
		send_next(c);
}

static void on_sent(void *call_ctx)
{
	struct client *c = call_ctx;
	c->sending = false;
	send_next(c);
}

static void on_closed(void *call_ctx)
{
	struct client *c = call_ctx;
	struct ads_service *s = c->service;
	log_info("client gone", "client=%" PRIu64 " peer=%s", c->number, log_quote(c->peer));
	*(c->prev ? &c->prev->next : &s->clients) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	client_free(c);
}

int ads_service_new(const char *address, struct resource_set *set, struct ads_service **ret,
	struct lb_err *reterr)
{
	static const struct rpc_events events = {
		.on_open = on_open,
		.on_message = on_message,
		.on_sent = on_sent,
		.on_closed = on_closed,
	};
	struct ads_service *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	const struct rpc_server_conf conf = {address, N_CLIENTS_MAX, REQUEST_LEN_MAX};
	int r = rpc_server_new(&conf, &events, s, &s->server, reterr);
	if (r < 0) {
		free(s);
		return r;
	}
	s->set = set;
	*ret = s;
	return 0;
}

void ads_service_free(struct ads_service *s)
{
	if (!s)
		return;
	rpc_server_free(s->server);
	resource_set_free(s->set);
	free(s);
}

int ads_service_port(const struct ads_service *s)
{
	return rpc_server_port(s->server);
}

int ads_service_fd(const struct ads_service *s)
{
	return rpc_server_fd(s->server);
}

static void send_to_all(struct ads_service *s)
{
	for (struct client *c = s->clients; c; c = c->next)
		send_next(c);
}

void ads_service_dispatch(struct ads_service *s, uint64_t now_ns)
{
	s->now_ns = now_ns;
	rpc_server_dispatch(s->server);
	if (now_ns >= ads_service_due_ns(s))
		send_to_all(s);
}

uint64_t ads_service_due_ns(const struct ads_service *s)
{
	uint64_t due = UINT64_MAX;
	for (const struct client *c = s->clients; c; c = c->next) {
		uint64_t its = c->sending ? UINT64_MAX : ads_stream_due_ns(c->stream);
		due = its < due ? its : due;
	}
	return due;
}

void ads_service_publish(struct ads_service *s, struct resource_set *set, uint64_t now_ns)
{
	struct resource_set *before = s->set;
	s->now_ns = now_ns;
	s->set = set;
	send_to_all(s);
	resource_set_free(before);
}

const struct resource_set *ads_service_set(const struct ads_service *s)
{
	return s->set;
}
