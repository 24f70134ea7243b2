// SPDX-License-Identifier: Apache-2.0
// bench_request: a unary gRPC request through all that a worker does for it, from the frame of a
// memif that its client sent to the one that the client gets: port, Ethernet, IP, TCP, HTTP/2,
// route, pick, the same again on the backend's side, and back. tools/bench proxy runs it. Clients
// and backends are on another host of the same program (dataplane/host.h), which callgrind does
// not count; times are of both.
//
// 64x1: each request comes alone, in a frame of its own each way. 8x32: those of 8 connections, 32
// on each, come together, and several share a frame. captured: the same while the worker copies all
// frames for a packet capture, whose reader only throws them away: what writes them to a file is
// another thread. vhosts: requests are counted by virtual host, too. gateway, gateways: clients and
// backends are behind one, or behind two between which flows choose; the other host is these, too.
#include "dataplane/eal.h"
#include "dataplane/host.h"
#include "dataplane/proxy/proxy.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "lb/pick/capture.h"
#include "lb/pick/link.h"
#include "tests/bench/eal_bench.h"
#include "tests/bench/far.h"
#include "tests/bench/pipe_control.h"
#include "tests/bench/ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURN_NS 2000
#define MAX_CLIENTS 64
#define MAX_BACKENDS 64 // connections to them
#define CLIENT_PORT 80
#define BACKEND_PORT 50051
#define IN_MAX (256u << 10)
#define WARM_TURNS 4000 // until all have met: names of neighbors, connections, first requests

#define MAX_GATEWAYS 2

struct bed_conf {
	uint32_t n_clients, n_streams;
	uint32_t n_gateways; // 0 = all are on our link
	bool captured;
	bool counts_vhosts;
};

struct bed;

// The far end of a connection.
struct end {
	struct bed *bed;
	struct tcp_conn *conn; // NULL = not established yet
	bool is_client;
	struct far far;
	uint8_t in[IN_MAX]; // a frame that has not come whole
	size_t in_len;
};

struct bed {
	struct pipe_control *common;
	struct lb_link *link;
	uint64_t now_ns; // for both hosts
	// The worker, as dataplane/worker.c runs it.
	struct host *host;
	struct lb_frontend_conf frontend;
	struct proxy *proxy;
	struct lb_capture *capture; // NULL = none
	// The other host.
	struct host *far_host;
	struct end clients[MAX_CLIENTS], backends[MAX_BACKENDS];
	uint32_t n_clients, n_streams, n_backends;
	bool together; // all clients ask at once; else one after the other
	uint32_t next_client;
	uint64_t n_done, n_served;
};

static void give(struct end *e)
{
	if (!e->conn || !e->far.out_len)
		return;
	CHECK(buf_append(tcp_conn_sendq(e->conn), host_chunks(e->bed->far_host), e->far.out,
		e->far.out_len));
	e->far.out_len = 0;
	tcp_conn_push(e->conn);
}

static void on_established(struct tcp_conn *c, void *user)
{
	struct end *e = user;
	e->conn = c;
	far_hello(&e->far, true);
	give(e);
}

static size_t on_data(struct tcp_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct end *e = user;
	struct bed *b = e->bed;
	CHECK(e->in_len + len <= IN_MAX);
	memcpy(e->in + e->in_len, p, len);
	e->in_len += len;
	size_t n = far_hear(
		&e->far, e->is_client, e->in, e->in_len, e->is_client ? &b->n_done : &b->n_served);
	e->in_len -= n;
	memmove(e->in, e->in + n, e->in_len);
	give(e);
	return len;
}

static void on_send_room(struct tcp_conn *c, void *user)
{
}

static void on_eof(struct tcp_conn *c, void *user)
{
	CHECK(false); // connections last
}

static void on_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	CHECK(false);
}

static const struct tcp_conn_ops end_ops = {.on_established = on_established,
	.on_data = on_data,
	.on_send_room = on_send_room,
	.on_eof = on_eof,
	.on_closed = on_closed};

static const struct tcp_conn_ops *accept_backend(void *bed, struct tcp_conn *c, void **ret_user)
{
	struct bed *b = bed;
	CHECK(b->n_backends < MAX_BACKENDS);
	struct end *e = &b->backends[b->n_backends++];
	e->bed = b;
	e->conn = c;
	far_hello(&e->far, false); // goes with its first answer
	*ret_user = e;
	return &end_ops;
}

static void far_turn(void *bed)
{
	struct bed *b = bed;
	struct lb_capture *c = b->capture;
	uint32_t len;
	host_receive(b->far_host, b->now_ns);
	host_flush(b->far_host);
	while (c && record_ring_peek(&c->ring, &len))
		record_ring_pass(&c->ring);
}

static void worker_turn(struct bed *b)
{
	struct lb_command command;
	b->now_ns += TURN_NS;
	if (b->capture)
		lb_capture_turn(b->capture, b->now_ns);
	proxy_begin_turn(b->proxy, b->common->control.snapshot, b->now_ns);
	twheel_advance(host_wheel(b->host), b->now_ns);
	while (spsc_read(&b->link->commands, &command))
		proxy_command(b->proxy, &command);
	host_poll(b->host, NULL, NULL);
	proxy_end_turn(b->proxy);
	host_flush(b->host);
}

static void ask(void *bed)
{
	struct bed *b = bed;
	uint32_t first = b->together ? 0 : b->next_client, n = b->together ? b->n_clients : 1;
	for (uint32_t i = first; i < first + n; i++) {
		for (uint32_t k = 0; k < b->n_streams; k++)
			far_ask(&b->clients[i].far);
		give(&b->clients[i]);
	}
	b->next_client = (b->next_client + 1) % b->n_clients;
	far_turn(b);
}

// Whole rounds of all clients, at least n_ops requests.
static void bed_run(void *bed, uint64_t n_ops)
{
	struct bed *b = bed;
	uint32_t n = b->together ? b->n_clients * b->n_streams : 1;
	for (uint64_t n_asked = 0; n_asked < n_ops; n_asked += n) {
		uint64_t end = b->n_done + n;
		bench_aside(ask, b);
		while (b->n_done < end) {
			worker_turn(b);
			bench_aside(far_turn, b);
		}
	}
}

static struct host *make_host(const struct host_port *port)
{
	struct lb_err err;
	struct host_conf conf = {.ports = port,
		.n_ports = 1,
		.max_conns = 256,
		.max_half_open = 128,
		.max_passive = 192,
		.max_time_wait = 64,
		.max_neighbors = 64,
		.n_chunks = 8192,
		.tcp_send_limit = 256 << 10,
		.tcp_recv_window = 256 << 10};
	struct host *h = host_new(&conf, &err);
	if (!h)
		eal_bench_die(&err);
	return h;
}

static void make_hosts(struct bed *b, unsigned link, uint32_t n_gateways)
{
	char device[128];
	struct host_port theirs = {.device = eal_bench_memif(device, sizeof(device), 2 * link)};
	struct net_prefix *to = theirs.addresses;
	*to++ = (struct net_prefix){wire_address(9, 1), 16};
	for (uint32_t i = 1; i <= PIPE_BACKENDS; i++)
		*to++ = (struct net_prefix){wire_address(2, i), 16};
	for (uint32_t i = 0; i < n_gateways; i++)
		*to++ = (struct net_prefix){wire_address(1, 254 - i), 16};
	theirs.n_addresses = (uint32_t)(to - theirs.addresses);
	b->far_host = make_host(&theirs);
	struct host_port ours = {.device = eal_bench_memif(device, sizeof(device), 2 * link + 1),
		.addresses = {{wire_address(1, 1), n_gateways ? 24 : 16}},
		.n_addresses = 1};
	for (uint32_t i = 0; i < n_gateways; i++)
		ours.gateways[i] = wire_address(1, 254 - i);
	b->host = make_host(&ours);
	for (uint32_t i = 1; i <= PIPE_BACKENDS; i++)
		CHECK(tcp_listen(host_tcp(b->far_host), &theirs.addresses[i].ip, BACKEND_PORT,
			      accept_backend, b) == 0);
	while (!host_is_up(b->host) || !host_is_up(b->far_host)) // memif's own thread connects them
		nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
}

static void make_proxy(struct bed *b)
{
	b->frontend = (struct lb_frontend_conf){.address = wire_address(1, 1), .port = CLIENT_PORT};
	struct proxy_conf conf = {.frontends = &b->frontend,
		.n_frontends = 1,
		.n_workers = 1,
		.max_clients = 192,
		.max_requests = 2048,
		.max_queued = 1024,
		.max_conns_per_endpoint = 4,
		.connect_timeout_ns = 20 * NS_PER_SECOND,
		.source_for = host_source_for,
		.serve = host_serve,
		.source_ctx = b->host};
	struct h2_conf h2 = {.max_conns = 256,
		.max_streams = 4096,
		.max_concurrent_streams = 100,
		.stream_window = 65535,
		.conn_window = 1 << 20,
		.max_header_bytes = 16 << 10,
		.max_header_fields = 100};
	b->proxy = proxy_new(
		&conf, &h2, host_tcp(b->host), host_wheel(b->host), host_chunks(b->host), b->link);
	CHECK(b->proxy);
}

static void connect_clients(struct bed *b)
{
	struct tcp_flow flow = {.local = wire_address(9, 1),
		.remote = wire_address(1, 1),
		.remote_port = CLIENT_PORT};
	for (uint32_t i = 0; i < b->n_clients; i++) {
		struct end *e = &b->clients[i];
		e->bed = b;
		e->is_client = true;
		CHECK(tcp_connect(host_tcp(b->far_host), &flow, 10 * NS_PER_SECOND, &end_ops, e));
	}
}

static bool all_have_met(const struct bed *b)
{
	uint32_t n = 0, n_warm = 0;
	for (uint32_t i = 0; i < b->n_clients; i++)
		n += b->clients[i].conn && b->clients[i].far.is_warm;
	for (uint32_t i = 0; i < b->n_backends; i++)
		n_warm += b->backends[i].far.is_warm;
	return n == b->n_clients && n_warm >= PIPE_BACKENDS;
}

// Until all connections are there and each has carried a request.
static void warm_up(struct bed *b)
{
	for (int i = 0; i < WARM_TURNS; i++) {
		b->now_ns += 50 * TURN_NS;
		b->common->wire.now_ns = b->now_ns;
		control_turn(&b->common->control);
		worker_turn(b);
		far_turn(b);
	}
	bed_run(b, 4 * (uint64_t)b->n_clients * b->n_streams);
	control_turn(&b->common->control);
	CHECK(all_have_met(b));
}

// link: of memif, one each
static struct bed *bed_new(unsigned link, const struct bed_conf *conf)
{
	struct bed *b = calloc(1, sizeof(*b));
	CHECK(b && conf->n_clients <= MAX_CLIENTS && conf->n_gateways <= MAX_GATEWAYS);
	b->n_clients = conf->n_clients;
	b->n_streams = conf->n_streams;
	b->together = conf->n_streams > 1;
	make_hosts(b, link, conf->n_gateways);
	b->now_ns = twheel_now(host_wheel(b->host));
	b->common = pipe_control_new(1, b->now_ns);
	b->link = b->common->links[0];
	make_proxy(b);
	worker_turn(b); // who is accepted sees its snapshot
	connect_clients(b);
	if (conf->counts_vhosts)
		control_count_vhosts(&b->common->control);
	warm_up(b);
	if (!conf->captured)
		return b;
	b->capture = lb_capture_new(LB_CAPTURE_RING);
	CHECK(b->capture);
	b->capture->ask = (struct lb_capture_ask){.ways = (1u << LB_CAPTURE_WAYS) - 1,
		.interfaces = 1,
		.snaplen = LB_CAPTURE_SNAPLEN};
	host_tap(b->host, b->capture);
	return b;
}

int main(int argc, char **argv)
{
	eal_bench_start("bench_request");
	static const struct {
		const char *impl, *name;
		struct bed_conf conf;
	} rows[] = {
		{"shunt", "64x1", {.n_clients = 64, .n_streams = 1}},
		{"captured", "64x1", {.n_clients = 64, .n_streams = 1, .captured = true}},
		{"vhosts", "64x1", {.n_clients = 64, .n_streams = 1, .counts_vhosts = true}},
		{"shunt", "8x32", {.n_clients = 8, .n_streams = 32}},
		{"captured", "8x32", {.n_clients = 8, .n_streams = 32, .captured = true}},
		{"gateway", "64x1", {.n_clients = 64, .n_streams = 1, .n_gateways = 1}},
		{"gateways", "64x1", {.n_clients = 64, .n_streams = 1, .n_gateways = 2}},
	};
	enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };
	static struct bench_way ways[N_ROWS]; // static: leak checkers find the beds by it
	for (unsigned i = 0; i < N_ROWS; i++) {
		const struct bed_conf *conf = &rows[i].conf;
		ways[i] = (struct bench_way){rows[i].impl, rows[i].name,
			conf->n_clients * conf->n_streams, bed_run, bed_new(i, conf), 0};
	}
	return bench_ways("request", ways, N_ROWS, argc, argv);
}
