// SPDX-License-Identifier: Apache-2.0
#include "ctrl/status/health.h"

#include "ctrl/status/service.h"
#include "grpc/health/v1/health.pb-c.h"
#include "lb/base/container_of.h"
#include "lb/base/err.h"
#include "proto/wire.h"

#include <stdlib.h>
#include <sys/queue.h>

typedef Grpc__Health__V1__HealthCheckResponse Response;
typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus Status;

#define SERVING GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
#define NOT_SERVING GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING
#define SERVICE_UNKNOWN GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN

struct call {
	struct status_call base; // first member
	struct health *health;
	LIST_ENTRY(call) link; // in the watches
	bool watches, known; // its request has come; it names a service that is here
	bool sending;
	Status told;
};

struct health {
	Status status;
	LIST_HEAD(, call) watches;
};

static void send(struct call *c, Status status)
{
	uint8_t bytes[16];
	Response m = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
	m.status = status;
	c->told = status;
	c->sending = true;
	rpc_call_send(c->base.rpc, bytes, protobuf_c_message_pack(&m.base, bytes));
}

static void tell_news(struct call *c)
{
	if (c->known && !c->sending && c->told != c->health->status)
		send(c, c->health->status);
}

void health_set_serving(struct health *h, bool serving)
{
	h->status = serving ? SERVING : NOT_SERVING;
	for (struct call *c = LIST_FIRST(&h->watches); c; c = LIST_NEXT(c, link))
		tell_news(c);
}

// 1 = the request asks for the daemon, 0 = for something else, negative = the call was ended.
static int read_request(const struct status_call *base, const uint8_t *bytes, size_t len)
{
	struct lb_err err = {0};
	Grpc__Health__V1__HealthCheckRequest *m =
		proto_unpack(&grpc__health__v1__health_check_request__descriptor, bytes, len, &err);
	if (!m) {
		rpc_call_end(base->rpc, RPC_INVALID_ARGUMENT, err.text);
		return -1;
	}
	bool known = !m->service[0];
	proto_free(m);
	rpc_call_pause(base->rpc); // there is one request
	return known;
}

static void on_check(struct status_call *base, const uint8_t *bytes, size_t len)
{
	struct call *c = CONTAINER_OF(base, struct call, base);
	int known = read_request(base, bytes, len);
	if (known == 0)
		rpc_call_end(base->rpc, RPC_NOT_FOUND, "unknown service");
	if (known <= 0)
		return;
	send(c, c->health->status);
	rpc_call_finish(base->rpc);
}

static void on_watch(struct status_call *base, const uint8_t *bytes, size_t len)
{
	struct call *c = CONTAINER_OF(base, struct call, base);
	struct health *h = c->health;
	int known = read_request(base, bytes, len);
	if (known < 0)
		return;
	c->watches = true;
	c->known = known;
	LIST_INSERT_HEAD(&h->watches, c, link);
	send(c, known ? h->status : SERVICE_UNKNOWN);
}

// Heard of only before the request, since nothing is read after that.
static void on_half_close(struct status_call *base)
{
	rpc_call_end(base->rpc, RPC_INVALID_ARGUMENT, "no request");
}

static void on_sent(struct status_call *base)
{
	struct call *c = CONTAINER_OF(base, struct call, base);
	c->sending = false;
	tell_news(c);
}

static void on_closed(struct status_call *base)
{
	struct call *c = CONTAINER_OF(base, struct call, base);
	if (c->watches)
		LIST_REMOVE(c, link);
	free(c);
}

static struct status_call *call_open(
	struct health *h, struct rpc_call *rpc, const struct status_call_ops *ops)
{
	struct call *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct call){.base = {ops, rpc}, .health = h};
	return &c->base;
}

struct status_call *health_open_check(struct health *h, struct rpc_call *rpc)
{
	static const struct status_call_ops ops = {on_check, on_half_close, on_sent, on_closed};
	return call_open(h, rpc, &ops);
}

struct status_call *health_open_watch(struct health *h, struct rpc_call *rpc)
{
	static const struct status_call_ops ops = {on_watch, on_half_close, on_sent, on_closed};
	return call_open(h, rpc, &ops);
}

struct health *health_new(void)
{
	struct health *h = calloc(1, sizeof(*h));
	if (h)
		h->status = NOT_SERVING;
	return h;
}

void health_free(struct health *h)
{
	free(h);
}
