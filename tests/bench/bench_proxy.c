// SPDX-License-Identifier: Apache-2.0
// bench_proxy: a unary gRPC request through the whole of the proxy (pipe_world.h). tools/bench runs
// it.
//
// 64x1: each request comes alone. 8x32: those of 8 connections, 32 on each, come together.
#include "tests/bench/pipe_world.h"
#include "tests/bench/ways.h"

static void *world_of(uint32_t n_clients, uint32_t n_streams, bool together)
{
	struct pipe_world_conf conf = {n_clients, n_streams, together};
	return pipe_world_new(pipe_control_new(1), &conf);
}

int main(int argc, char **argv)
{
	static struct bench_way ways[2]; // static: leak checkers find the worlds by it
	ways[0] =
		(struct bench_way){"shunt", "64x1", 64, pipe_world_run, world_of(64, 1, false), 0};
	ways[1] =
		(struct bench_way){"shunt", "8x32", 256, pipe_world_run, world_of(8, 32, true), 0};
	return bench_ways("proxy", ways, 2, argc, argv);
}
