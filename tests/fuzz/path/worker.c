// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/path/worker.h"

#include "lb/base/check.h"
#include "lb/pick/link.h"

#include <stdlib.h>
#include <string.h>

#define HOST_PROXY 1
#define HOST_BACKENDS 2
#define N_EVENTS 64 // room in the ring to the control thread
#define TURN_NS (20 * NS_PER_US)
#define MAX_TURNS 200

const uint8_t path_mac[6] = {2, 0, 0, 0, 0, 1};

static uint8_t *device_reserve(void *ctx, size_t len)
{
	struct path_worker *w = ctx;
	CHECK(!w->open && len <= PATH_FRAME_MAX);
	w->open = true;
	w->open_len = len;
	return w->out + VLAN_TAG;
}

static void device_send(void *ctx, size_t len)
{
	struct path_worker *w = ctx;
	CHECK(w->open && len == w->open_len);
	w->open = false;
	uint8_t *frame = w->out + VLAN_TAG;
	if (w->mode.vlan) {
		frame = vlan_insert(frame, PATH_VLAN);
		len += VLAN_TAG;
	}
	w->on_frame(w->ctx, frame, len);
}

static void device_cancel(void *ctx)
{
	struct path_worker *w = ctx;
	CHECK(w->open);
	w->open = false;
}

static void on_segment(void *ctx, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	tcp_stack_input(ctx, flow, segment, len);
}

static void on_unreachable(void *ctx, const struct tcp_flow *flow, uint32_t seq)
{
	tcp_stack_unreachable(ctx, flow, seq);
}

static void on_too_big(void *ctx, const struct tcp_flow *flow, uint32_t seq, uint32_t mtu)
{
	tcp_stack_too_big(ctx, flow, seq, mtu);
}

static const char *source_for(void *ctx, const struct ip_addr *dst, struct ip_addr *ret)
{
	*ret = wire_address(HOST_PROXY | (ip_is_v4(dst) ? 0 : WIRE_V6), 100);
	return dst->b[14] == HOST_BACKENDS ? NULL : "no route";
}

struct ip_addr path_frontend_address(const struct path_worker *w, uint32_t frontend)
{
	return wire_address(HOST_PROXY | (w->mode.clients_v6 ? WIRE_V6 : 0), frontend + 1);
}

uint32_t path_backends(const struct path_worker *w)
{
	return HOST_BACKENDS | (w->mode.backends_v6 ? WIRE_V6 : 0);
}

static void make_net(struct path_worker *w)
{
	struct net_port_conf port = {
		.device = {device_reserve, device_send, device_cancel, w},
		.mtu = 1500,
		.addresses = {{wire_address(HOST_PROXY, 1), 16}, {wire_address(HOST_PROXY, 2), 16},
			{wire_address(HOST_PROXY, 100), 16},
			{wire_address(HOST_PROXY | WIRE_V6, 1), 64},
			{wire_address(HOST_PROXY | WIRE_V6, 2), 64},
			{wire_address(HOST_PROXY | WIRE_V6, 100), 64}},
		.n_addresses = w->mode.clients_v6 || w->mode.backends_v6 ? 6 : 3,
	};
	memcpy(port.mac, path_mac, sizeof(port.mac));
	w->net = net_new(&port, 1, 64, w->wheel, 1);
	CHECK(w->net);
	struct tcp_conf conf = {.max_conns = PATH_CLIENTS + 16,
		.max_passive = PATH_CLIENTS,
		.max_half_open = PATH_CLIENTS,
		.max_time_wait = 16,
		.send_limit = 32 << 10,
		.recv_window = 32 << 10,
		.window_max = 128 << 10,
		.secret = "fuzz",
		.seed = 1};
	struct tcp_io io = net_tcp_io(w->net);
	w->tcp = tcp_stack_new(&conf, &io, &w->chunks, w->wheel);
	CHECK(w->tcp);
	net_set_tcp(w->net, &(struct net_tcp){on_segment, on_unreachable, on_too_big, w->tcp});
}

static void on_neighbor(void *proxy, const struct ip_addr *ip)
{
	proxy_neighbor(proxy, ip);
}

static void make_proxy(struct path_worker *w)
{
	for (uint32_t i = 0; i < PATH_FRONTENDS; i++)
		w->frontends[i] = (struct lb_frontend_conf){.address = path_frontend_address(w, i),
			.port = 80,
			.authority = i == 1 ? "pinned.test" : NULL,
			.wait_for_ready = LB_WAIT_HEADER,
			.reply_details = i == 1};
	struct proxy_conf conf = {.frontends = w->frontends,
		.n_frontends = PATH_FRONTENDS,
		.n_workers = 1,
		.max_clients = PATH_CLIENTS,
		.max_requests = PATH_REQUESTS,
		.max_queued = PATH_QUEUED,
		.max_conns_per_endpoint = 2,
		.connect_timeout_ns = 20 * SECOND,
		.terms = {.listener_drain_ns = 30 * SECOND,
			.client_silence = {.tcp_keepalive_ns = 60 * SECOND},
			.backend_silence = {.tcp_keepalive_ns = 3 * SECOND},
			.idle_timeout_ns = 300 * SECOND,
			.max_attempts = 4,
			.retry_idempotent = true},
		.window_max = 128 << 10,
		.seed = 1,
		.source_for = source_for};
	struct h2_conf h2 = {.max_conns = PATH_CLIENTS + 16,
		.max_streams = 2 * PATH_REQUESTS,
		.max_concurrent_streams = PATH_STREAMS,
		.stream_window = 16 << 10,
		.conn_window = 64 << 10,
		.max_header_bytes = 16 << 10,
		.max_header_fields = 64,
		.seed = 2};
	w->proxy = proxy_new(&conf, &h2, w->tcp, w->wheel, &w->chunks, w->link);
	CHECK(w->proxy);
	net_set_on_neighbor(w->net, on_neighbor, w->proxy);
}

void path_worker_init(struct path_worker *w, struct path_mode mode)
{
	w->mode = mode;
	wire_init(&w->wire, 1);
	w->wheel = twheel_new(w->wire.now_ns);
	CHECK(w->wheel && buf_pool_init(&w->chunks, PATH_CHUNKS) == 0);
	w->shared = lb_shared_new();
	w->link = lb_link_new(0, 0, w->shared);
	CHECK(w->link);
	spsc_fini(&w->link->events);
	CHECK(spsc_init(&w->link->events, sizeof(struct lb_event), N_EVENTS) == 0);
	make_net(w);
	make_proxy(w);
	control_init(&w->control, &w->wire, w->link, 1);
}

static void check_books(const struct path_worker *w, bool closed)
{
	struct books b = {.proxy = w->proxy,
		.link = w->link,
		.control = &w->control,
		.max_requests = PATH_REQUESTS,
		.max_queued = PATH_QUEUED + 8};
	if (closed)
		books_check_closed(&b);
	else
		books_check(&b);
}

static void check_pools(const struct path_worker *w)
{
	struct pool_list l = {0};
	proxy_list_pools(w->proxy, &l);
	tcp_stack_list_pools(w->tcp, &l);
	net_list_pools(w->net, &l);
	for (uint32_t i = 0; i < l.n; i++) {
		// Sources are remembered for their budgets.
		bool may_keep = strcmp(l.views[i].name, "sources") == 0;
		CHECK(may_keep || *l.views[i].n_used == 0);
	}
	CHECK(w->chunks.n_used == 0);
	CHECK(tcp_stack_n_conns(w->tcp) == 0);
}

void path_worker_fini(struct path_worker *w)
{
	check_books(w, true);
	check_pools(w);
	proxy_free(w->proxy);
	control_fini(&w->control);
	tcp_stack_free(w->tcp);
	net_free(w->net);
	lb_link_free(w->link);
	lb_shared_free(w->shared);
	pool_fini(&w->chunks);
	twheel_free(w->wheel);
	for (uint32_t i = 0; i < w->n_in; i++)
		free(w->in[i].bytes);
	wire_fini(&w->wire);
}

void path_worker_receive(struct path_worker *w, const uint8_t *frame, size_t len)
{
	if (w->n_in == PATH_FRAMES)
		return;
	uint8_t *bytes = malloc(len ? len : 1);
	CHECK(bytes);
	memcpy(bytes, frame, len);
	w->in[w->n_in++] = (struct path_frame){(uint32_t)len, bytes};
}

// As a port with a VLAN has it: its frames come without their tags, and no others do.
static void input(struct path_worker *w, struct path_frame *f)
{
	uint8_t *frame = f->bytes;
	if (w->mode.vlan) {
		if (vlan_of(frame, f->len) != PATH_VLAN)
			return;
		frame = vlan_strip(frame);
	}
	net_input(w->net, 0, frame, f->len - (uint32_t)(frame - f->bytes));
	CHECK(!w->open);
}

static void turn(struct path_worker *w)
{
	struct path_frame in[PATH_FRAMES];
	uint32_t n = w->n_in; // those that come from now on are of the next turn
	memcpy(in, w->in, n * sizeof(in[0]));
	w->n_in = 0;
	w->wire.now_ns += TURN_NS;
	twheel_set_now(w->wheel, w->wire.now_ns);
	control_turn(&w->control);
	proxy_begin_turn(w->proxy, w->control.snapshot, w->wire.now_ns);
	struct lb_command c;
	while (spsc_read(&w->link->commands, &c))
		proxy_command(w->proxy, &c);
	for (uint32_t i = 0; i < n; i++) {
		input(w, &in[i]);
		free(in[i].bytes);
	}
	twheel_advance(w->wheel, w->wire.now_ns);
	proxy_end_turn(w->proxy);
	check_books(w, false);
	tcp_stack_flush(w->tcp);
}

void path_worker_settle(struct path_worker *w)
{
	turn(w);
	for (uint32_t i = 0; w->n_in && i < MAX_TURNS; i++)
		turn(w);
}

static uint64_t next_ns(const struct path_worker *w)
{
	uint64_t at = twheel_next_ns(w->wheel), control = twheel_next_ns(w->control.wheel);
	return at < control ? at : control;
}

void path_worker_wait(struct path_worker *w, uint64_t ns)
{
	uint64_t until = w->wire.now_ns + ns;
	for (uint32_t i = 0; i < MAX_TURNS && next_ns(w) < until; i++) {
		if (next_ns(w) > w->wire.now_ns)
			w->wire.now_ns = next_ns(w);
		path_worker_settle(w);
	}
	if (w->wire.now_ns < until)
		w->wire.now_ns = until;
	path_worker_settle(w);
}
