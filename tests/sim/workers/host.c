// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workers/host.h"

#include "lb/base/check.h"
#include "lb/base/time.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static uint8_t *reserve(void *ctx, size_t len)
{
	struct host *h = ctx;
	CHECK(len <= FRAME_MAX && !h->open);
	h->open = malloc(sizeof(*h->open));
	CHECK(h->open);
	h->open->len = (uint32_t)len;
	return h->open->bytes;
}

static void send_frame(void *ctx, size_t len)
{
	struct host *h = ctx;
	CHECK(h->open && h->open->len == len);
	if (!spsc_write(h->out, &h->open)) {
		h->n_lost++;
		free(h->open);
	}
	h->open = NULL;
}

static void cancel(void *ctx)
{
	struct host *h = ctx;
	free(h->open);
	h->open = NULL;
}

static void on_segment(void *ctx, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	tcp_stack_input(ctx, flow, segment, len);
}

static void on_unreachable(void *ctx, const struct tcp_flow *flow, uint32_t seq)
{
	tcp_stack_unreachable(ctx, flow, seq);
}

bool host_init(struct host *h, const struct host_conf *conf)
{
	*h = (struct host){.wheel = twheel_new(clock_ns()), .out = conf->out};
	struct net_port_conf port = {
		.device = {.reserve = reserve, .send = send_frame, .cancel = cancel, .ctx = h},
		.mac = {2, 0, 0, 0, 0, conf->mac},
		.mtu = 1500,
		.addresses = {{ip_from_v4(conf->ip), 24}},
		.n_addresses = 1,
	};
	if (!h->wheel || buf_pool_init(&h->chunks, 8192))
		return false;
	h->net = net_new(&port, 1, 64, h->wheel, conf->seed);
	if (!h->net)
		return false;
	struct tcp_conf tcp = {
		.max_conns = 2048,
		.max_half_open = 1024,
		.max_time_wait = 2048,
		.send_limit = 65536,
		.recv_window = 65536,
		.is_ours = conf->is_ours,
		.is_ours_ctx = conf->is_ours_ctx,
		.seed = conf->seed,
	};
	memcpy(tcp.secret, &conf->seed, sizeof(conf->seed));
	struct tcp_io io = net_tcp_io(h->net);
	h->tcp = tcp_stack_new(&tcp, &io, &h->chunks, h->wheel);
	if (!h->tcp)
		return false;
	struct net_tcp up = {.input = on_segment, .unreachable = on_unreachable, .ctx = h->tcp};
	net_set_tcp(h->net, &up);
	return true;
}

void host_fini(struct host *h)
{
	tcp_stack_free(h->tcp);
	net_free(h->net);
	twheel_free(h->wheel);
	pool_fini(&h->chunks);
}

void host_turn_begins(struct host *h)
{
	twheel_advance(h->wheel, clock_ns());
}

void host_turn_ends(struct host *h)
{
	tcp_stack_flush(h->tcp);
}

uint64_t host_count(const struct host *h, const char *counter)
{
	struct counter_set set = tcp_stack_counters(h->tcp);
	for (uint32_t i = 0; i < set.n; i++)
		if (strcmp(set.names[i], counter) == 0)
			return counter_read(&set.values[i]);
	CHECK(!"a counter");
	return 0;
}
