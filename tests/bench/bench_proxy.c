// SPDX-License-Identifier: Apache-2.0
// bench_proxy: a unary gRPC request through the whole of the proxy (pipe_world.h). tools/bench runs
// it.
//
// 64x1: each request comes alone. 8x32: those of 8 connections, 32 on each, come together. once:
// each alone, on a connection that its client opens for it and closes behind it. 64x1-log and
// 8x32-log: with an access log that is told of errors and of one request in a hundred; 64x1-all: of
// all requests. 64x1-trace and 8x32-trace: with traces of one request in a hundred. times: of a
// request that comes alone only what its times take (dataplane/proxy/latency.h), which the others
// have within.
#include "dataplane/proxy/latency.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/check.h"
#include "lb/pick/access.h"
#include "lb/pick/link.h"
#include "lb/route/tracing.h"
#include "tests/bench/pipe_control.h"
#include "tests/bench/pipe_world.h"
#include "tests/bench/ways.h"

#define TURN_NS 2000

static struct bench_way way_of(const char *name, struct pipe_world_conf conf)
{
	struct pipe_world *w = pipe_world_new(pipe_control_new(1, SECOND), &conf);
	uint32_t n = conf.n_clients * conf.n_streams;
	return (struct bench_way){"shunt", name, n, pipe_world_run, w, 0};
}

static struct {
	struct proxy proxy; // no more of it than times need
	struct proxy_request request;
} timed;

// Two turns each: the request comes, and its answer.
static void times_run(void *ctx, uint64_t n_ops)
{
	struct proxy *p = &timed.proxy;
	struct proxy_request *r = &timed.request;
	uint64_t now_ns = p->now_ns;
	for (uint64_t i = 0; i < n_ops; i++) {
		p->now_ns = now_ns += TURN_NS;
		proxy_latency_begin_turn(p);
		r->began_ns = r->whole_ns = now_ns;
		r->backend_ns = 0;
		proxy_latency_sent(r);
		p->now_ns = now_ns += TURN_NS;
		proxy_latency_begin_turn(p);
		proxy_latency_attempt_over(r);
		proxy_latency_request_over(r);
	}
}

static struct bench_way times(void)
{
	timed.proxy.link = lb_link_new(0, 0, lb_shared_new());
	CHECK(timed.proxy.link);
	proxy_latency_init(&timed.proxy.latency, timed.proxy.link);
	timed.request.proxy = &timed.proxy;
	return (struct bench_way){"shunt", "times", 1, times_run, NULL, 0};
}

int main(int argc, char **argv)
{
	static const struct lb_access_filter errors = {
		.sample = LB_ACCESS_SAMPLE_ALL / 100, .causes = UINT32_MAX, .min_status = 500};
	static const struct lb_access_filter all = {.sample = LB_ACCESS_SAMPLE_ALL};
	static const struct lb_tracing traces = {.on = true,
		.path_max = LB_TRACE_PATH_MAX,
		.client = LB_TRACE_ALL,
		.random = LB_TRACE_ALL / 100,
		.overall = LB_TRACE_ALL};
	static struct bench_way ways[9]; // static: leak checkers find the worlds by it
	ways[0] = way_of("64x1", (struct pipe_world_conf){.n_clients = 64, .n_streams = 1});
	ways[1] = way_of("8x32",
		(struct pipe_world_conf){.n_clients = 8, .n_streams = 32, .together = true});
	ways[2] = way_of(
		"once", (struct pipe_world_conf){.n_clients = 64, .n_streams = 1, .once = true});
	ways[3] = way_of("64x1-log",
		(struct pipe_world_conf){.n_clients = 64, .n_streams = 1, .log = &errors});
	ways[4] = way_of("8x32-log",
		(struct pipe_world_conf){
			.n_clients = 8, .n_streams = 32, .together = true, .log = &errors});
	ways[5] = way_of(
		"64x1-all", (struct pipe_world_conf){.n_clients = 64, .n_streams = 1, .log = &all});
	ways[6] = way_of("64x1-trace",
		(struct pipe_world_conf){.n_clients = 64, .n_streams = 1, .tracing = &traces});
	ways[7] = way_of("8x32-trace",
		(struct pipe_world_conf){
			.n_clients = 8, .n_streams = 32, .together = true, .tracing = &traces});
	ways[8] = times();
	return bench_ways("proxy", ways, 9, argc, argv);
}
