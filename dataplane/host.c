// SPDX-License-Identifier: Apache-2.0
#include "dataplane/exception.h"
#include "dataplane/host_impl.h"
#include "dataplane/net/ping.h"
#include "dataplane/net/tell.h"
#include "dataplane/port.h"
#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "lb/own_ranges.h"
#include "lb/pick/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define MAX_RESTING (2 * NET_MAX_PORTS)

static void on_segment(void *ctx, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	tcp_stack_input(ctx, flow, segment, len);
}

static void on_marked(void *ctx, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	tcp_stack_input_marked(ctx, flow, segment, len);
}

static void on_unreachable(void *ctx, const struct tcp_flow *flow, uint32_t seq)
{
	tcp_stack_unreachable(ctx, flow, seq);
}

static void on_too_big(void *ctx, const struct tcp_flow *flow, uint32_t seq, uint32_t mtu)
{
	tcp_stack_too_big(ctx, flow, seq, mtu);
}

// What a device or a kernel says of a checksum is of the outer packet.
static void on_through(void *ctx, uint32_t overhead)
{
	tcp_stack_set_overhead(ctx, overhead);
	tcp_stack_set_verified(ctx, false);
}

static bool knows(void *ctx, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	return tcp_stack_knows(ctx, flow, segment, len);
}

static bool pass(void *ctx, const struct tcp_flow *flow)
{
	struct host *h = ctx;
	h->passed = h->at_shared && net_is_shared(h->net, &flow->local);
	return h->passed;
}

static uint64_t clock_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

static bool has_ip6(const struct host_port *p)
{
	for (uint32_t i = 0; i < p->n_addresses; i++)
		if (!ip_is_v4(&p->addresses[i].ip))
			return true;
	return false;
}

static int open_ports(struct host *h, const struct host_conf *conf, struct lb_err *reterr)
{
	for (uint32_t i = 0; i < conf->n_ports; i++) {
		const struct host_port *from = &conf->ports[i];
		DCHECK(from->n_addresses >= 1 && from->n_addresses <= NET_MAX_ADDRESSES);
		struct port_conf own = {.index = i,
			.device = from->device,
			.mtu = from->mtu,
			.vlan = from->vlan,
			.n_queues = 1,
			.has_ip6 = has_ip6(from)};
		h->ports[i] = from->port ? from->port : port_new(&own, reterr);
		if (!h->ports[i])
			return -EINVAL;
		h->owns[i] = !from->port;
		h->queues[i] = port_queue_of(h->ports[i], conf->queue);
		port_queue_set_relay(h->queues[i], conf->relay, i);
		h->n_ports++;
	}
	return 0;
}

static struct net *make_net(struct host *h, const struct host_conf *conf, uint64_t seed)
{
	struct net_port_conf ports[NET_MAX_PORTS] = {0};
	for (uint32_t i = 0; i < h->n_ports; i++) {
		const struct host_port *from = &conf->ports[i];
		struct net_port_conf *to = &ports[i];
		to->device = port_queue_device(h->queues[i]);
		memcpy(to->mac, port_mac(h->ports[i]), sizeof(to->mac));
		to->mtu = port_mtu(h->ports[i]);
		to->n_addresses = from->n_addresses;
		memcpy(to->addresses, from->addresses, sizeof(to->addresses));
		memcpy(to->gateways, from->gateways, sizeof(to->gateways));
		to->first_gateway = from->first_gateway;
		to->watch = from->watch;
		to->accept_ra = from->accept_ra;
		to->is_shared = from->has_kernel;
		h->shared |= (uint32_t)from->has_kernel << i;
	}
	return net_new(ports, h->n_ports, conf->max_neighbors, h->wheel, seed);
}

static struct tcp_stack *make_tcp(
	struct host *h, const struct host_conf *conf, const uint8_t secret[16], uint64_t seed)
{
	struct tcp_conf tcp = {
		.max_conns = conf->max_conns,
		.max_half_open = conf->max_half_open,
		.max_passive = conf->max_passive,
		.max_time_wait = conf->max_time_wait,
		.send_limit = conf->tcp_send_limit,
		.recv_window = conf->tcp_recv_window,
		.window_max = conf->tcp_window_max,
		.is_ours = conf->is_ours,
		.is_ours_ctx = conf->is_ours_ctx,
		.pass = h->shared ? pass : NULL,
		.pass_ctx = h,
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
		return lb_err_set(reterr, "getrandom() failed");
	h->exception = conf->exception;
	h->relay = conf->relay;
	if (open_ports(h, conf, reterr) != 0)
		return -EINVAL;
	if (buf_pool_init(&h->chunks, conf->n_chunks) == 0)
		h->wheel = twheel_new(clock_ns());
	if (h->wheel)
		h->net = make_net(h, conf, seeds[0]);
	if (h->net && net_set_vips(h->net, conf->vips, conf->n_vips, conf->n_vip_places) == 0)
		h->tcp = make_tcp(h, conf, secret, seeds[1]);
	if (!h->tcp)
		return lb_err_set(reterr, "out of memory");
	net_set_drop_mark(h->net, &h->drop_marks[0]);
	tcp_stack_set_drop_mark(h->tcp, &h->drop_marks[1]);
	h->tunnels = conf->tunnels;
	if (conf->gateways)
		net_share_gateways(h->net, conf->gateways);
	if (conf->tunnels)
		net_set_tunnels(h->net, conf->tunnels);
	struct net_tcp up = {.input = on_segment,
		.unreachable = on_unreachable,
		.too_big = on_too_big,
		.input_marked = on_marked,
		.through = on_through,
		.knows = knows,
		.ctx = h->tcp};
	net_set_tcp(h->net, &up);
	host_follow_relays(h);
	return 0;
}

struct host *host_new(const struct host_conf *conf, struct lb_err *reterr)
{
	DCHECK(conf->n_ports >= 1 && conf->n_ports <= NET_MAX_PORTS);
	struct host *h = cacheline_alloc(1, sizeof(*h));
	if (!h) {
		lb_err_set(reterr, "out of memory");
		return NULL;
	}
	if (make(h, conf, reterr) != 0) {
		host_free(h);
		return NULL;
	}
	return h;
}

// What is batched in the devices' queues.
static bool transmit(struct host *h)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < h->n_ports; i++)
		n += port_queue_flush(h->queues[i]);
	return n > 0;
}

void host_free(struct host *h)
{
	if (!h)
		return;
	transmit(h); // resets of connections that were cut: peers need not wait for us
	tcp_stack_free(h->tcp);
	net_free(h->net);
	twheel_free(h->wheel);
	pool_fini(&h->chunks);
	for (uint32_t i = 0; i < h->n_ports; i++)
		if (h->owns[i])
			port_free(h->ports[i]);
	cacheline_free(h);
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

struct net *host_net(struct host *h)
{
	return h->net;
}

struct port_queue *const *host_queues(const struct host *h)
{
	return h->queues;
}

bool host_is_up(const struct host *h)
{
	for (uint32_t i = 0; i < h->n_ports; i++)
		if (!port_is_up(h->ports[i]))
			return false;
	return true;
}

static void announce(struct host *h, uint32_t p)
{
	h->n_link_ups[p] = port_link_ups(h->ports[p]);
	net_announce(h->net, p);
}

void host_announce(struct host *h)
{
	h->announces = true;
	for (uint32_t p = 0; p < h->n_ports; p++)
		announce(h, p);
	transmit(h);
}

void host_watch_links(struct host *h)
{
	for (uint32_t p = 0; p < h->n_ports && h->announces; p++)
		if (port_link_ups(h->ports[p]) != h->n_link_ups[p])
			announce(h, p);
}

const char *host_source_for(void *host, const struct ip_addr *dst, struct ip_addr *ret)
{
	struct host *h = host;
	if (!net_source_for(h->net, dst, ret))
		return "no route";
	return net_prepare(h->net, dst) ? NULL : "no room for another neighbor";
}

void host_serve(void *host, uint32_t place, const struct ip_addr *ip)
{
	net_serve(((struct host *)host)->net, place, ip);
}

void host_own(void *host, const struct lb_own_ranges *ranges)
{
	struct net_vip list[NET_MAX_VIPS];
	uint32_t n = 0;
	for (; n < ranges->n && n < NET_MAX_VIPS; n++)
		list[n] = (struct net_vip){ranges->list[n].prefix, ranges->list[n].answers};
	net_change_vips(((struct host *)host)->net, list, n);
}

bool host_carry_out(struct host *h, struct lb_link *link, const struct lb_command *command)
{
	struct lb_inflight *f = link->inflight;
	if (command->kind == LB_COMMAND_PING) {
		net_ping_begin(h->net, &link->ping);
		return true;
	}
	if (command->kind == LB_COMMAND_RELAYS) {
		host_follow_relays(h);
		return true;
	}
	if (command->kind != LB_COMMAND_INFLIGHT || f->query.kind < LB_INFLIGHT_NEIGHBORS)
		return false;
	net_tell_begin(h->net, f);
	return true;
}

bool host_settle(struct host *h, uint32_t p)
{
	if (!port_queue_settle(h->queues[p]))
		return false;
	net_renew_port(h->net, p, port_mac(h->ports[p]));
	if (h->announces)
		announce(h, p);
	return true;
}

static bool is_wanted(const struct lb_capture *to, uint32_t port, enum lb_capture_way way)
{
	return to && to->ask.interfaces >> port & to->ask.ways >> way & 1;
}

// Which ports of a host cost more than others.
static void watch_ports(struct host *h)
{
	h->served = h->shared | h->relayed;
	h->watched = h->served;
	for (uint32_t p = 0; p < h->n_ports; p++)
		h->watched |= (uint32_t)(h->rx_taps[p] != NULL) << p;
}

void host_follow_relays(struct host *h)
{
	if (h->relay)
		relay_end_follow(h->relay);
	h->relayed = 0;
	for (uint32_t p = 0; p < h->n_ports; p++)
		h->relayed |= (uint32_t)(relay_end_has(h->relay, RELAY_TO_OLDER, p) ||
					 relay_end_has(h->relay, RELAY_TO_NEWER, p))
		              << p;
	watch_ports(h);
}

void host_tap(struct host *h, struct lb_capture *to)
{
	for (uint32_t p = 0; p < h->n_ports; p++) {
		struct net_tap *tap = &h->taps[p];
		if (to)
			net_tap_init(tap, to, h->tunnels, p, port_vlan(h->ports[p]));
		h->rx_taps[p] = is_wanted(to, p, LB_CAPTURE_RX) ? tap : NULL;
		port_queue_tap(h->queues[p], is_wanted(to, p, LB_CAPTURE_TX) ? tap : NULL);
	}
	watch_ports(h);
}

bool host_flush(struct host *h)
{
	tcp_stack_flush(h->tcp);
	exception_end_flush(h->exception);
	return transmit(h);
}

void host_rest(struct host *const *hosts, uint32_t n_hosts, uint64_t ns)
{
	struct pollfd fds[MAX_RESTING];
	nfds_t n = 0;
	for (uint32_t i = 0; i < n_hosts; i++)
		for (uint32_t p = 0; p < hosts[i]->n_ports; p++) {
			int fd = port_queue_wait_fd(hosts[i]->queues[p]);
			if (fd >= 0 && n < MAX_RESTING)
				fds[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
		}
	// An interface that is down makes poll(2) return at once: whoever waits then polls.
	struct timespec most = {(time_t)(ns / NS_PER_SECOND), (long)(ns % NS_PER_SECOND)};
	ppoll(fds, n, &most, NULL);
}

struct counter_set host_port_counters(const struct host *h, uint32_t port)
{
	return port_queue_counters(h->queues[port]);
}

void host_add_groups(struct host *h, struct lb_link *link)
{
	if (h->relay)
		lb_link_add_group(link, "relay", relay_end_counters(h->relay));
	for (uint32_t i = 0; i < h->n_ports; i++) {
		snprintf(h->groups[i], sizeof(h->groups[i]), "port%u", i);
		lb_link_add_group(link, h->groups[i], host_port_counters(h, i));
		char *name = h->groups[NET_MAX_PORTS + i];
		if (!(h->shared >> i & 1))
			continue;
		snprintf(name, sizeof(h->groups[i]), "kernel%u", i);
		lb_link_add_group(link, name, exception_end_counters(h->exception, i));
	}
}
