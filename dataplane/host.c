// SPDX-License-Identifier: Apache-2.0
#include "dataplane/host.h"

#include "dataplane/port.h"
#include "lb/base/check.h"

#include <rte_mbuf.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define MAX_BURSTS 4 // in one turn
#define MAX_NEIGHBOURS 4096
#define MAX_RESTING 8

struct host {
	struct port *port;
	struct port_queue *queue; // borrowed, the port's only one
	struct pool chunks;
	struct twheel *wheel;
	struct net *net;
	struct tcp_stack *tcp;
};

static void on_segment(void *ctx, const struct ip_addr *local, const struct ip_addr *remote,
	const uint8_t *segment, size_t len)
{
	tcp_stack_input(ctx, local, remote, segment, len);
}

static void on_unreachable(void *ctx, const struct tcp_flow *flow)
{
	tcp_stack_unreachable(ctx, flow);
}

static uint64_t clock_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static struct net *make_net(struct host *h, const struct host_conf *conf, uint64_t seed)
{
	struct net_port_conf port = {
		.device = port_queue_device(h->queue),
		.mtu = port_mtu(h->port),
		.n_addresses = conf->n_addresses,
		.gateway = conf->gateway,
	};
	memcpy(port.mac, port_mac(h->port), sizeof(port.mac));
	memcpy(port.addresses, conf->addresses, conf->n_addresses * sizeof(conf->addresses[0]));
	return net_new(&port, 1, MAX_NEIGHBOURS, h->wheel, seed);
}

static struct tcp_stack *make_tcp(
	struct host *h, const struct host_conf *conf, const uint8_t secret[16], uint64_t seed)
{
	struct tcp_conf tcp = {
		.max_conns = conf->max_conns,
		.max_half_open = conf->max_conns,
		.max_time_wait = conf->max_conns < 16384 ? 16384 : conf->max_conns,
		.send_limit = conf->tcp_send_limit,
		.recv_window = conf->tcp_recv_window,
		.seed = seed,
	};
	memcpy(tcp.secret, secret, sizeof(tcp.secret));
	struct tcp_io io = net_tcp_io(h->net);
	return tcp_stack_new(&tcp, &io, &h->chunks, h->wheel);
}

// 0, or -EINVAL with reterr.
static int make(struct host *h, const struct host_conf *conf, struct lb_err *reterr)
{
	uint64_t seeds[2];
	uint8_t secret[16];
	if (getrandom(seeds, sizeof(seeds), 0) != sizeof(seeds) ||
		getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return lb_err_set(reterr, "the kernel gives no random bytes");
	struct port_conf port = {.index = conf->index, .device = conf->device, .n_queues = 1};
	h->port = port_new(&port, reterr);
	if (!h->port)
		return -EINVAL;
	h->queue = port_queue_of(h->port, 0);
	if (buf_pool_init(&h->chunks, conf->n_chunks) == 0)
		h->wheel = twheel_new(clock_ns());
	if (h->wheel)
		h->net = make_net(h, conf, seeds[0]);
	if (h->net)
		h->tcp = make_tcp(h, conf, secret, seeds[1]);
	if (!h->tcp)
		return lb_err_set(reterr, "%s: out of memory", conf->device);
	struct net_tcp up = {.input = on_segment, .unreachable = on_unreachable, .ctx = h->tcp};
	net_set_tcp(h->net, &up);
	return 0;
}

struct host *host_new(const struct host_conf *conf, struct lb_err *reterr)
{
	DCHECK(conf->n_addresses >= 1 && conf->n_addresses <= NET_MAX_ADDRESSES);
	struct host *h = calloc(1, sizeof(*h));
	if (!h) {
		lb_err_set(reterr, "%s: out of memory", conf->device);
		return NULL;
	}
	if (make(h, conf, reterr) != 0) {
		host_free(h);
		return NULL;
	}
	return h;
}

void host_free(struct host *h)
{
	if (!h)
		return;
	if (h->tcp)
		port_queue_flush(h->queue);
	tcp_stack_free(h->tcp);
	net_free(h->net);
	twheel_free(h->wheel);
	pool_fini(&h->chunks);
	port_free(h->port);
	free(h);
}

struct tcp_stack *host_tcp(struct host *h)
{
	return h->tcp;
}

struct twheel *host_wheel(struct host *h)
{
	return h->wheel;
}

struct pool *host_chunks(struct host *h)
{
	return &h->chunks;
}

bool host_is_up(const struct host *h)
{
	return port_is_up(h->port);
}

void host_announce(struct host *h)
{
	net_announce(h->net);
	port_queue_flush(h->queue);
}

const char *host_prepare(struct host *h, const struct ip_addr *dst)
{
	struct ip_addr source;
	if (!net_source_for(h->net, dst, &source))
		return "no route";
	return net_prepare(h->net, dst) ? NULL : "no room for another neighbour";
}

bool host_receive(struct host *h, uint64_t now_ns)
{
	struct rte_mbuf *frames[PORT_BURST];
	bool any = false;
	twheel_advance(h->wheel, now_ns);
	uint32_t n = PORT_BURST;
	for (int burst = 0; burst < MAX_BURSTS && n == PORT_BURST; burst++) {
		n = port_queue_rx(h->queue, frames);
		for (uint32_t i = 0; i < n; i++)
			net_input(h->net, 0, rte_pktmbuf_mtod(frames[i], uint8_t *),
				rte_pktmbuf_data_len(frames[i]));
		rte_pktmbuf_free_bulk(frames, n);
		any |= n > 0;
	}
	return any;
}

bool host_flush(struct host *h)
{
	tcp_stack_flush(h->tcp);
	return port_queue_flush(h->queue) > 0;
}

void host_rest(struct host *const *hosts, uint32_t n_hosts, uint64_t ns)
{
	struct pollfd fds[MAX_RESTING];
	nfds_t n = 0;
	DCHECK(n_hosts <= MAX_RESTING);
	for (uint32_t i = 0; i < n_hosts; i++) {
		int fd = port_queue_wait_fd(hosts[i]->queue);
		if (fd >= 0)
			fds[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	// An interface that is down makes poll(2) return at once: whoever waits then polls.
	struct timespec most = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	ppoll(fds, n, &most, NULL);
}

struct counter_set host_port_counters(const struct host *h)
{
	return port_queue_counters(h->queue);
}
