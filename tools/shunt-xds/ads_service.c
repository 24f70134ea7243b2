// SPDX-License-Identifier: Apache-2.0
// Each client has at most one message under way; when that has left, the stream is asked for the
// next.
#include "tools/shunt-xds/ads_service.h"

#include "ctrl/base/whole_file.h"
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
#include <sys/queue.h>

#define N_CLIENTS_MAX 10000
#define REQUEST_LEN_MAX (16 << 20) // some 200,000 names
#define METHODS "/envoy.service.discovery.v3.AggregatedDiscoveryService/"

typedef Envoy__Service__Discovery__V3__DiscoveryRequest sotw_request;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest delta_request;

static const char *const protocol_labels[] = {[ADS_SOTW] = "sotw", [ADS_DELTA] = "delta"};

struct client {
	struct ads_service *service;
	LIST_ENTRY(client) link;
	struct rpc_call *call;
	enum ads_protocol protocol;
	struct ads_stream *stream;
	bool sending, ended;
	uint64_t number; // for the log
	char *peer;
};

struct ads_service {
	struct rpc_server *server;
	struct catalog *catalog;
	LIST_HEAD(, client) clients;
	uint64_t n_clients_ever;
	uint64_t now_ns; // of this turn
};

static void client_free(struct client *c)
{
	ads_stream_free(c->stream);
	free(c->peer);
	free(c);
}

static struct client *client_new(
	struct ads_service *s, struct rpc_call *call, enum ads_protocol protocol, const char *peer)
{
	struct client *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct client){.service = s,
		.call = call,
		.protocol = protocol,
		.stream = ads_stream_new(protocol, s->catalog),
		.number = ++s->n_clients_ever,
		.peer = strdup(peer)};
	if (c->stream && c->peer)
		return c;
	client_free(c);
	return NULL;
}

static void *on_open(void *ctx, struct rpc_call *call, struct str method, const char *peer)
{
	struct ads_service *s = ctx;
	bool is_delta = str_eq(method, STR(METHODS "DeltaAggregatedResources"));
	if (!is_delta && !str_eq(method, STR(METHODS "StreamAggregatedResources"))) {
		char text[128];
		snprintf(text, sizeof(text), "%.*s", (int)method.len, method.p);
		log_warn("method is not served", "peer=%s method=%s", log_quote(peer),
			log_quote(text));
		return NULL;
	}
	struct client *c = client_new(s, call, is_delta ? ADS_DELTA : ADS_SOTW, peer);
	if (!c) {
		rpc_call_end(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
		return NULL;
	}
	LIST_INSERT_HEAD(&s->clients, c, link);
	log_info("client connected", "client=%" PRIu64 " protocol=%s peer=%s", c->number,
		protocol_labels[c->protocol], log_quote(peer));
	return c;
}

static void end(struct client *c, enum rpc_status status, const char *text)
{
	if (!c->ended)
		log_warn("client is sent away", "client=%" PRIu64 " error=%s", c->number,
			log_quote(text));
	c->ended = true;
	rpc_call_end(c->call, status, text);
}

static void give_up(struct client *c, int error)
{
	char text[400];
	const char *why = error == -E2BIG ? "too many subscriptions" : "out of memory";
	if (error == -EMSGSIZE) {
		snprintf(text, sizeof(text), "client %" PRIu64 " (%s): %s", c->number, c->peer,
			c->service->catalog->source->refusal);
		why = text;
	}
	end(c, RPC_RESOURCE_EXHAUSTED, why);
}

// Sends the next response that is due, if nothing is under way.
static void send_next(struct client *c)
{
	struct ads_response response;
	uint8_t *bytes;
	size_t len;
	if (c->sending || c->ended)
		return;
	int r = ads_stream_drain(c->stream, c->service->now_ns, &response);
	if (r == 1)
		r = ads_response_encode(&response, &bytes, &len) < 0 ? -ENOMEM : 1;
	if (r < 0)
		give_up(c, r);
	if (r <= 0)
		return;
	c->sending = true;
	log_info("response sent",
		"client=%" PRIu64 " type=%s version=%016" PRIx64 " nonce=%" PRIu64
		" resources=%zu removed=%zu errors=%zu bytes=%zu",
		c->number, response.type->label, response.version, response.nonce, response.n,
		response.n_removed, response.n_errors, len);
	rpc_call_send(c->call, bytes, len);
	free(bytes);
}

// What both protocols have in a request, for the log.
struct request_view {
	const char *type_url, *nonce;
	const Google__Rpc__Status *error;
	const Envoy__Config__Core__V3__Node *node;
};

static void log_request(const struct client *c, const struct request_view *m,
	const struct ads_request_result *result)
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
	const char *label = result->type->info.label;
	if (result->kind == ADS_REQUEST_NACK)
		log_warn("client refuses",
			"client=%" PRIu64 " event=nack type=%s version=%016" PRIx64
			" nonce=%s code=%d error=%s",
			c->number, label, result->version, log_quote(m->nonce), (int)m->error->code,
			log_quote(m->error->message));
	else
		log_write(result->kind == ADS_REQUEST_SUBSCRIBE ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
			"request",
			"client=%" PRIu64 " event=%s type=%s version=%016" PRIx64
			" names=%zu wildcard=%d node=%s",
			c->number, kinds[result->kind], label, result->version, result->n_names,
			result->wildcard, log_quote(m->node ? m->node->id : ""));
}

static int take_sotw(struct client *c, const void *message)
{
	const sotw_request *m = message;
	const struct request_view view = {m->type_url, m->response_nonce, m->error_detail, m->node};
	struct ads_request_result result;
	int r = ads_stream_feed_sotw(c->stream, m, c->service->now_ns, &result);
	if (r == 0)
		log_request(c, &view, &result);
	return r;
}

static int take_delta(struct client *c, const void *message)
{
	const delta_request *m = message;
	const struct request_view view = {m->type_url, m->response_nonce, m->error_detail, m->node};
	struct ads_request_result result;
	int r = ads_stream_feed_delta(c->stream, m, c->service->now_ns, &result);
	if (r == 0)
		log_request(c, &view, &result);
	return r;
}

static void on_message(void *call_ctx, const uint8_t *bytes, size_t len)
{
	struct client *c = call_ctx;
	bool is_delta = c->protocol == ADS_DELTA;
	struct lb_err err = {""};
	void *m = proto_unpack(
		is_delta ? &envoy__service__discovery__v3__delta_discovery_request__descriptor
			 : &envoy__service__discovery__v3__discovery_request__descriptor,
		bytes, len, &err);
	if (!m) {
		lb_err_within(&err, "request is not understood");
		end(c, RPC_INVALID_ARGUMENT, err.text);
		return;
	}
	int r = is_delta ? take_delta(c, m) : take_sotw(c, m);
	proto_free(m);
	if (r < 0)
		give_up(c, r);
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
	log_info("client gone", "client=%" PRIu64 " peer=%s", c->number, log_quote(c->peer));
	LIST_REMOVE(c, link);
	client_free(c);
}

static int check_file(const char *path, bool is_secret, struct lb_err *reterr)
{
	struct whole_file file = {NULL, 0};
	int r = path ? whole_file_read(path, is_secret, &file, reterr) : 0;
	whole_file_fini(&file);
	return r == -EINVAL ? lb_err_within(reterr, "%s", path) : r;
}

// Later on a file may be missing for a while; at the start it is misspelt.
static int check_files(const struct rpc_server_tls *tls, struct lb_err *reterr)
{
	int r = tls ? check_file(tls->cert, false, reterr) : 0;
	if (tls && r == 0)
		r = check_file(tls->key, true, reterr);
	if (tls && r == 0)
		r = check_file(tls->client_ca, false, reterr);
	return r;
}

int ads_service_new(const char *address, const struct rpc_server_tls *tls, struct catalog *catalog,
	struct ads_service **ret, struct lb_err *reterr)
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
	const struct rpc_server_conf conf = {address, N_CLIENTS_MAX, REQUEST_LEN_MAX, tls};
	int r = check_files(tls, reterr);
	if (r == 0)
		r = rpc_server_new(&conf, &events, s, &s->server, reterr);
	if (r < 0) {
		free(s);
		return r;
	}
	s->catalog = catalog;
	*ret = s;
	return 0;
}

void ads_service_free(struct ads_service *s)
{
	if (!s)
		return;
	rpc_server_free(s->server);
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
	for (struct client *c = LIST_FIRST(&s->clients); c; c = LIST_NEXT(c, link))
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
	for (const struct client *c = LIST_FIRST(&s->clients); c; c = LIST_NEXT(c, link)) {
		uint64_t its = c->sending || c->ended ? UINT64_MAX : ads_stream_due_ns(c->stream);
		due = its < due ? its : due;
	}
	return due;
}

void ads_service_publish(struct ads_service *s, uint64_t now_ns)
{
	s->now_ns = now_ns;
	send_to_all(s);
}
