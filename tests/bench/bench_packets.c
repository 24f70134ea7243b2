// SPDX-License-Identifier: Apache-2.0
// bench_packets: what a frame takes from a memif through our whole packet path and out again,
// beside frames of that size that are only received and sent, as testpmd's mode io does (which
// tools/bench runs, too, where it is installed). Both ends of the memifs are here, on one thread:
// an operation is a frame received and one sent, by either end.
//
// io: rx_burst, tx_burst. shunt: Ethernet, IPv4, TCP on two hosts (dataplane/host.h); 64
// connections each carry 128 bytes to and fro, so that each frame carries data and an
// acknowledgement. ip6: the same by IPv6, whose frames are 20 bytes longer. captured: shunt's while
// both hosts copy all frames for a packet capture, whose reader only throws them away: what writes
// them to a file is another thread. tagged: all frames have a VLAN's tag, which a memif leaves to
// us. trunk: the same where that VLAN is the second one of its device.
#include "dataplane/host.h"
#include "dataplane/port.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "lb/pick/capture.h"
#include "tests/bench/eal_bench.h"
#include "tests/bench/tcp_end.h"
#include "tests/bench/ways.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_FRAMES 64 // on their way at one time
#define MESSAGE 128
#define FRAME_LEN (14 + 20 + 32 + MESSAGE) // IPv4, and TCP with timestamps
// callgrind makes a turn last fifty times as long, and timers would fire that else never do.
#define TURN_MAX_NS 50000

struct io {
	struct port *ports[2];
	uint16_t ids[2];
	struct rte_mempool *mbufs; // owned; of the first frames
};

struct hosts {
	struct host *hosts[2]; // a client and a server
	struct tcp_end ends[2];
	struct lb_capture *captures[2]; // NULL = none
	uint64_t now_ns; // for both
};

static uint64_t clock_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

static void io_run(void *ctx, uint64_t n_ops)
{
	struct io *io = ctx;
	struct rte_mbuf *frames[PORT_BURST];
	for (uint64_t n_done = 0; n_done < n_ops;)
		for (unsigned i = 0; i < 2; i++) {
			uint16_t n = rte_eth_rx_burst(io->ids[i], 0, frames, PORT_BURST);
			uint16_t n_sent = rte_eth_tx_burst(io->ids[i], 0, frames, n);
			CHECK(n_sent == n); // rings have room for all that there are
			n_done += n;
		}
}

static struct io *io_new(void)
{
	struct io *io = calloc(1, sizeof(*io));
	struct lb_err err;
	char device[128];
	CHECK(io);
	for (unsigned i = 0; i < 2; i++) {
		struct port_conf conf = {.index = i,
			.device = eal_bench_memif(device, sizeof(device), i),
			.n_queues = 1};
		io->ports[i] = port_new(&conf, &err);
		if (!io->ports[i])
			eal_bench_die(&err);
		device[strcspn(device, ",")] = '\0';
		CHECK(rte_eth_dev_get_port_by_name(device, &io->ids[i]) == 0);
	}
	for (unsigned i = 0; i < 2; i++)
		while (!port_is_up(io->ports[i])) // its own thread connects them
			nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	io->mbufs = rte_pktmbuf_pool_create(
		"first", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	CHECK(io->mbufs);
	struct rte_mbuf *frames[N_FRAMES];
	for (unsigned i = 0; i < N_FRAMES; i++) {
		frames[i] = rte_pktmbuf_alloc(io->mbufs);
		CHECK(frames[i]);
		memset(rte_pktmbuf_append(frames[i], FRAME_LEN), 0, FRAME_LEN);
	}
	// The server of a memif has buffers to send from once its client has asked for frames.
	struct rte_mbuf *none;
	CHECK(rte_eth_rx_burst(io->ids[1], 0, &none, 1) == 0);
	CHECK(rte_eth_tx_burst(io->ids[1], 0, frames, N_FRAMES) == N_FRAMES);
	return io;
}

static uint64_t n_frames(struct hosts *w)
{
	return w->ends[0].n_received / MESSAGE + w->ends[1].n_received / MESSAGE;
}

// As a worker does it, but for the command.
static void begin_capture(struct hosts *w, unsigned i)
{
	w->captures[i] = lb_capture_new(LB_CAPTURE_RING);
	CHECK(w->captures[i]);
	w->captures[i]->ask = (struct lb_capture_ask){.ways = (1u << LB_CAPTURE_WAYS) - 1,
		.interfaces = 1,
		.snaplen = LB_CAPTURE_SNAPLEN};
	host_tap(w->hosts[i], w->captures[i]);
}

static void end_turn(struct lb_capture *c, uint64_t now_ns)
{
	uint32_t len;
	lb_capture_turn(c, now_ns);
	while (record_ring_peek(&c->ring, &len))
		record_ring_pass(&c->ring);
}

static void turn(struct hosts *w)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t now = clock_ns();
		w->now_ns = RTE_MIN(now, w->now_ns + TURN_MAX_NS);
		host_receive(w->hosts[i], w->now_ns);
		host_flush(w->hosts[i]);
		if (w->captures[i])
			end_turn(w->captures[i], w->now_ns);
	}
}

static void hosts_run(void *ctx, uint64_t n_ops)
{
	struct hosts *w = ctx;
	uint64_t end = n_frames(w) + n_ops;
	while (n_frames(w) < end)
		turn(w);
}

enum link { PLAIN, IP6, TAGGED, TRUNK };

static struct port *open_port(const struct port_conf *conf)
{
	struct lb_err err;
	struct port *port = port_new(conf, &err);
	if (!port)
		eal_bench_die(&err);
	return port;
}

// Of one host; returns how many ports it has, of which the last one has the address.
static uint32_t describe_ports(
	enum link link, const char *device, const struct ip_addr *ip, struct host_port ports[2])
{
	uint32_t last = link == TRUNK;
	ports[last] = (struct host_port){.device = device,
		.addresses = {{*ip, link == IP6 ? 64 : 24}},
		.n_addresses = 1,
		.vlan = link == TAGGED ? 7 : 0};
	if (link != TRUNK)
		return 1;
	struct port_conf conf = {.device = device, .n_queues = 1, .vlan = 6, .n_vlans = 2};
	ports[0] = (struct host_port){.port = open_port(&conf),
		.addresses = {{ip_from_v4(ip_to_v4(ip) + 256), 24}},
		.n_addresses = 1};
	conf.vlan = 7;
	conf.carrier = ports[0].port;
	ports[1].port = open_port(&conf);
	return 2;
}

// first: of its ends
static struct hosts *hosts_new(unsigned first, enum link link)
{
	static const char *const texts[][2] = {{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}};
	struct hosts *w = calloc(1, sizeof(*w));
	struct lb_err err;
	char device[128];
	CHECK(w);
	struct tcp_flow flow = {.remote_port = 80};
	struct ip_addr *addresses[2] = {&flow.local, &flow.remote};
	for (unsigned i = 0; i < 2; i++) {
		CHECK(ip_parse(texts[link == IP6][i], addresses[i]));
		struct host_port ports[2];
		eal_bench_memif(device, sizeof(device), first + i);
		uint32_t n = describe_ports(link, device, addresses[i], ports);
		struct host_conf conf = {.ports = ports,
			.n_ports = n,
			.max_conns = N_FRAMES,
			.max_half_open = N_FRAMES,
			.max_time_wait = N_FRAMES,
			.max_neighbors = 16,
			.n_chunks = 4096,
			.tcp_send_limit = 256 << 10,
			.tcp_recv_window = 256 << 10};
		w->hosts[i] = host_new(&conf, &err);
		if (!w->hosts[i])
			eal_bench_die(&err);
		w->ends[i].chunks = host_chunks(w->hosts[i]);
	}
	w->now_ns = clock_ns();
	struct tcp_end *client = &w->ends[0];
	CHECK(tcp_listen(host_tcp(w->hosts[1]), &flow.remote, 80, tcp_end_accept, &w->ends[1]) ==
		0);
	for (unsigned i = 0; i < 2; i++)
		while (!host_is_up(w->hosts[i]))
			nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	for (uint32_t i = 0; i < N_FRAMES; i++)
		CHECK(tcp_connect(
			host_tcp(w->hosts[0]), &flow, 10 * NS_PER_SECOND, &tcp_end_ops, client));
	for (uint64_t until = clock_ns() + 10 * NS_PER_SECOND; client->n_conns < N_FRAMES;) {
		CHECK(clock_ns() < until);
		turn(w);
	}
	for (uint32_t i = 0; i < N_FRAMES; i++)
		tcp_end_send(client, client->conns[i], MESSAGE);
	return w;
}

int main(int argc, char **argv)
{
	eal_bench_start("bench_packets");
	static struct bench_way ways[6]; // static: leak checkers find the worlds by it
	ways[0] = (struct bench_way){"io", "memif", N_FRAMES, io_run, io_new(), FRAME_LEN};
	ways[1] = (struct bench_way){
		"shunt", "memif", N_FRAMES, hosts_run, hosts_new(2, PLAIN), FRAME_LEN};
	ways[2] = (struct bench_way){
		"ip6", "memif", N_FRAMES, hosts_run, hosts_new(4, IP6), FRAME_LEN + 20};
	struct hosts *captured = hosts_new(6, PLAIN);
	for (unsigned i = 0; i < 2; i++)
		begin_capture(captured, i);
	ways[3] = (struct bench_way){"captured", "memif", N_FRAMES, hosts_run, captured, FRAME_LEN};
	ways[4] = (struct bench_way){
		"tagged", "memif", N_FRAMES, hosts_run, hosts_new(8, TAGGED), FRAME_LEN};
	ways[5] = (struct bench_way){
		"trunk", "memif", N_FRAMES, hosts_run, hosts_new(10, TRUNK), FRAME_LEN};
	return bench_ways("packets", ways, 6, argc, argv);
}
