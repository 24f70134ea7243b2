// SPDX-License-Identifier: Apache-2.0
// Hands calls to their services by the method's name.
#include "ctrl/status/status_server.h"

#include "ctrl/rpc/server.h"
#include "ctrl/status/csds.h"
#include "ctrl/status/descriptors.h"
#include "ctrl/status/health.h"
#include "ctrl/status/reflection.h"
#include "ctrl/status/service.h"
#include "ctrl/xds/bootstrap/node.h"
#include "proto/descriptors.h"

#include <errno.h>
#include <stdlib.h>

#define N_CALLS_MAX 100 // at once
#define REQUEST_LEN_MAX (64 << 10)

#define CSDS "envoy.service.status.v3.ClientStatusDiscoveryService"
#define HEALTH "grpc.health.v1.Health"
#define REFLECTION "grpc.reflection.v1.ServerReflection"
#define REFLECTION_ALPHA "grpc.reflection.v1alpha.ServerReflection"

struct status_server {
	struct xds_node node;
	bool has_node;
	struct csds *csds;
	struct health *health;
	struct descriptors *types;
	struct reflection *reflection;
	struct rpc_server *rpc;
};

static struct status_call *open_fetch(struct status_server *s, struct rpc_call *rpc)
{
	return csds_open_fetch(s->csds, rpc);
}

static struct status_call *open_stream(struct status_server *s, struct rpc_call *rpc)
{
	return csds_open_stream(s->csds, rpc);
}

static struct status_call *open_check(struct status_server *s, struct rpc_call *rpc)
{
	return health_open_check(s->health, rpc);
}

static struct status_call *open_watch(struct status_server *s, struct rpc_call *rpc)
{
	return health_open_watch(s->health, rpc);
}

static struct status_call *open_reflection(struct status_server *s, struct rpc_call *rpc)
{
	return reflection_open(s->reflection, rpc);
}

static const char *const services[] = {CSDS, HEALTH, REFLECTION, REFLECTION_ALPHA};

static const struct {
	struct str path;
	struct status_call *(*open)(struct status_server *, struct rpc_call *);
} methods[] = {
	{STR("/" CSDS "/FetchClientStatus"), open_fetch},
	{STR("/" CSDS "/StreamClientStatus"), open_stream},
	{STR("/" HEALTH "/Check"), open_check},
	{STR("/" HEALTH "/Watch"), open_watch},
	{STR("/" REFLECTION "/ServerReflectionInfo"), open_reflection},
	{STR("/" REFLECTION_ALPHA "/ServerReflectionInfo"), open_reflection},
};

static void *on_open(void *ctx, struct rpc_call *rpc, struct str method, const char *peer)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (!str_eq(methods[i].path, method))
			continue;
		struct status_call *c = methods[i].open(ctx, rpc);
		if (!c)
			rpc_call_end(rpc, RPC_RESOURCE_EXHAUSTED, "out of memory");
		return c;
	}
	return NULL;
}

static void on_message(void *ctx, const uint8_t *bytes, size_t len)
{
	struct status_call *c = ctx;
	c->ops->on_message(c, bytes, len);
}

static void on_half_close(void *ctx)
{
	struct status_call *c = ctx;
	c->ops->on_half_close(c);
}

static void on_sent(void *ctx)
{
	struct status_call *c = ctx;
	c->ops->on_sent(c);
}

static void on_closed(void *ctx)
{
	struct status_call *c = ctx;
	c->ops->on_closed(c);
}

static int make_services(struct status_server *s, const struct status_server_conf *conf)
{
	if (xds_node_init(&s->node, conf->bootstrap, conf->user_agent_version))
		return -ENOMEM;
	s->has_node = true;
	s->csds = csds_new(&(struct csds_conf){
		.node = &s->node.msg,
		.wheel = conf->wheel,
		.max_unread_len = conf->max_unread_len,
		.wall_ns = conf->wall_ns,
		.each = conf->each,
		.ctx = conf->ctx,
	});
	s->health = health_new();
	s->types = descriptors_new(proto_descriptors, proto_descriptors_len);
	if (s->types)
		s->reflection =
			reflection_new(s->types, services, sizeof(services) / sizeof(services[0]));
	return s->csds && s->health && s->reflection ? 0 : -ENOMEM;
}

int status_server_new(const struct status_server_conf *conf, struct status_server **ret)
{
	static const struct rpc_events events = {
		.on_open = on_open,
		.on_message = on_message,
		.on_half_close = on_half_close,
		.on_sent = on_sent,
		.on_closed = on_closed,
	};
	struct status_server *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	const struct rpc_server_conf rpc = {
		.n_calls_max = N_CALLS_MAX,
		.message_len_max = REQUEST_LEN_MAX,
		.wait = conf->wait,
		.cut = conf->cut,
		.end_ctx = conf->end_ctx,
	};
	int r = make_services(s, conf);
	if (r == 0)
		r = rpc_server_new(&rpc, &events, s, &s->rpc, NULL); // it binds nothing
	if (r < 0) {
		status_server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void status_server_free(struct status_server *s)
{
	if (!s)
		return;
	rpc_server_free(s->rpc); // closes the calls
	csds_free(s->csds);
	health_free(s->health);
	reflection_free(s->reflection);
	descriptors_free(s->types);
	if (s->has_node)
		xds_node_fini(&s->node);
	free(s);
}

void status_server_connect(struct status_server *s, int fd)
{
	rpc_server_connect(s->rpc, fd);
}

int status_server_fd(const struct status_server *s)
{
	return rpc_server_fd(s->rpc);
}

void status_server_dispatch(struct status_server *s)
{
	rpc_server_dispatch(s->rpc);
}

void status_server_set_serving(struct status_server *s, bool serving)
{
	if (s)
		health_set_serving(s->health, serving);
}
