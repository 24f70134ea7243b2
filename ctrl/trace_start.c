// SPDX-License-Identifier: Apache-2.0
#include "ctrl/trace_start.h"

#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/rpc/unary.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"

#include <stdlib.h>
#include <unistd.h>

#define METHOD "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

struct traces {
	struct rpc_unary *client;
	struct trace_exporter *exporter;
	struct lb_trace *workers[LB_MAX_WORKERS];
	const char **frontends; // owned
	char host[65];
};

static void send_batch(void *ctx, const uint8_t *bytes, size_t len)
{
	const struct traces *t = ctx;
	rpc_unary_call(t->client, METHOD, bytes, len, TRACE_TIMEOUT_NS);
}

static void on_done(void *ctx, const struct rpc_result *r)
{
	const struct traces *t = ctx;
	trace_exporter_sent(t->exporter, r->status, r->text, r->answer, r->len);
}

static void on_ready(void *ctx)
{
	const struct traces *t = ctx;
	rpc_unary_dispatch(t->client);
}

static int start(struct traces *t, const struct config *c, struct lb_link *const *links,
	struct loop *loop, struct rand *rand)
{
	t->frontends = calloc(c->n_frontends, sizeof(*t->frontends));
	if (!t->frontends)
		return -1;
	for (unsigned i = 0; i < c->n_frontends; i++)
		t->frontends[i] = c->frontends[i].name;
	for (unsigned i = 0; i < c->n_workers; i++)
		t->workers[i] = links[i]->trace;
	if (gethostname(t->host, sizeof(t->host) - 1))
		t->host[0] = 0;
	const struct trace_exporter_conf conf = {
		.workers = t->workers,
		.n_workers = c->n_workers,
		.frontends = t->frontends,
		.n_frontends = c->n_frontends,
		.service_name = c->tracing->service_name ? c->tracing->service_name : "shunt",
		.version = SHUNT_VERSION,
		.host = t->host,
		.clock_ns = loop_clock_ns,
		.wall_ns = loop_wall_ns,
		.rand = rand,
		.send = send_batch,
		.ctx = t,
	};
	t->client = rpc_unary_new(c->tracing->collector, on_done, t);
	t->exporter = trace_exporter_new(&conf);
	if (!t->client || !t->exporter)
		return -1;
	return loop_watch_fd(loop, rpc_unary_fd(t->client), on_ready, t);
}

int traces_start(const struct config *c, struct lb_link *const *links, struct loop *loop,
	struct rand *rand, struct traces **ret, struct lb_err *reterr)
{
	if (!c->tracing)
		return 0;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret || start(*ret, c, links, loop, rand))
		return lb_err_set(reterr, "tracing: out of memory");
	return 0;
}

void traces_tick(struct traces *t)
{
	if (t)
		trace_exporter_tick(t->exporter);
}

void traces_rename(struct traces *t, uint32_t frontend, const char *name)
{
	if (t)
		t->frontends[frontend] = name;
}

const struct trace_exporter *traces_exporter(const struct traces *t)
{
	return t ? t->exporter : NULL;
}

void traces_free(struct traces *t)
{
	if (!t)
		return;
	rpc_unary_free(t->client);
	trace_exporter_free(t->exporter);
	free(t->frontends);
	free(t);
}
