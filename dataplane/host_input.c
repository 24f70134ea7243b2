// SPDX-License-Identifier: Apache-2.0
// Received frames: to the protocols, and besides, of ports that are watched, copies of them to a
// capture and what is not ours to the kernel.
#include "dataplane/exception.h"
#include "dataplane/host_impl.h"
#include "dataplane/net/foreign.h"
#include "dataplane/port.h"

#include <rte_mbuf.h>

static inline void input(struct host *h, uint32_t port, const struct rte_mbuf *m)
{
	tcp_stack_set_verified(h->tcp, port_frame_is_verified(m));
	net_input(h->net, port, rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m));
}

static struct lb_capture_cause cause_of(struct host *h)
{
	int net = net_take_drop(h->net), tcp = tcp_stack_take_drop(h->tcp);
	if (net >= 0)
		return (struct lb_capture_cause){LB_CAPTURE_NET, (uint8_t)net};
	if (tcp >= 0)
		return (struct lb_capture_cause){LB_CAPTURE_TCP, (uint8_t)tcp};
	return (struct lb_capture_cause){.layer = LB_CAPTURE_TAKEN};
}

static void share(struct host *h, uint32_t port, const struct rte_mbuf *m,
	const struct lb_capture_cause *cause)
{
	// What a tunnel brought is for VIPs, whatever became of it.
	if (net_take_tunnelled(h->net) || (!h->passed && cause->layer == LB_CAPTURE_TCP))
		return;
	const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	size_t len = rte_pktmbuf_data_len(m);
	int dropped = cause->layer == LB_CAPTURE_NET ? cause->counter : -1;
	enum net_foreign why =
		h->passed ? NET_FOREIGN_TCP : net_foreign_of(h->net, port, frame, len, dropped);
	if (why != NET_NOT_FOREIGN && len == rte_pktmbuf_pkt_len(m))
		exception_end_give(h->exception, port, why, frame, len, port_frame_is_unmade(m),
			twheel_now(h->wheel));
}

// Before the protocols have it: what the frame leads to is copied behind it.
static inline void show(struct net_tap *tap, const struct rte_mbuf *m)
{
	net_tap_take(tap, LB_CAPTURE_RX, rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m),
		rte_pktmbuf_pkt_len(m));
}

static void set_cause(struct net_tap *tap, struct lb_capture_cause cause)
{
	if (tap->received)
		tap->received->cause = cause;
}

// Of a port that a kernel, or another process, has besides; which may be tapped, too. With a relay
// its kernel is nobody's.
static __attribute__((noinline)) void input_shared(
	struct host *h, uint32_t port, struct rte_mbuf *const *frames, uint32_t n)
{
	bool has_kernel = h->shared >> port & 1;
	for (uint32_t i = 0; i < n; i++) {
		const struct rte_mbuf *m = frames[i];
		struct net_tap *tap = h->rx_taps[port];
		if (tap)
			show(tap, m);
		(void)net_take_tunnelled(h->net);
		h->any_drop = 0; // of others
		h->passed = false;
		h->at_shared = has_kernel;
		input(h, port, m);
		h->at_shared = false;
		struct lb_capture_cause cause = cause_of(h);
		if (tap)
			set_cause(tap, cause);
		if (has_kernel)
			share(h, port, m, &cause);
		else
			host_relay_give(h, port, m, &cause);
	}
}

static __attribute__((noinline)) void show_cause(struct host *h, uint32_t port)
{
	set_cause(h->rx_taps[port], cause_of(h));
}

static inline void input_tapped(struct host *h, uint32_t port, const struct rte_mbuf *m)
{
	show(h->rx_taps[port], m);
	h->any_drop = 0; // of others
	input(h, port, m);
	if (__builtin_expect(h->any_drop != 0, 0))
		show_cause(h, port);
}

static __attribute__((noinline)) void input_tapped_many(
	struct host *h, uint32_t port, struct rte_mbuf *const *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		input_tapped(h, port, frames[i]);
}

static void input_many(struct host *h, uint32_t port, struct rte_mbuf *const *frames, uint32_t n)
{
	if (!(h->watched >> port & 1))
		for (uint32_t i = 0; i < n; i++)
			input(h, port, frames[i]);
	else if ((h->shared | h->relayed) >> port & 1)
		input_shared(h, port, frames, n);
	else if (n == 1) // as most are where little comes: without the registers of a loop
		input_tapped(h, port, frames[0]);
	else
		input_tapped_many(h, port, frames, n);
}

void host_input(struct host *h, uint32_t port, struct rte_mbuf *m)
{
	input_many(h, port, &m, 1);
}

// What others have for the port's device: the kernel behind it, or another process.
static __attribute__((noinline)) bool send_of_others(struct host *h, uint32_t port)
{
	if (h->shared >> port & 1)
		return exception_end_send(h->exception, port, h->net);
	return host_relay_send(h, port);
}

// Of a port whose device is another process's: what that gives us of it.
static __attribute__((noinline)) bool poll_far(
	struct host *h, uint32_t port, host_sort_fn sort, void *ctx)
{
	struct rte_mbuf *frames[PORT_BURST];
	if (port_queue_far(h->queues[port]) == RELAY_NONE)
		return false;
	uint32_t n = PORT_BURST, n_all = 0;
	for (int burst = 0; burst < PORT_MAX_BURSTS && n == PORT_BURST; burst++) {
		n = port_queue_rx_far(h->queues[port], frames);
		uint32_t kept = sort ? sort(ctx, port, frames, n) : n;
		input_many(h, port, frames, kept);
		port_queue_done(h->queues[port], frames, kept);
		n_all += n;
	}
	return host_relay_send(h, port) || n_all > 0;
}

bool host_poll(struct host *h, host_sort_fn sort, void *ctx)
{
	struct rte_mbuf *frames[PORT_BURST];
	bool any = false;
	net_follow_gateways(h->net);
	for (uint32_t p = 0; p < h->n_ports; p++) {
		if (!port_queue_is_live(h->queues[p]) && !host_settle(h, p)) {
			any |= poll_far(h, p, sort, ctx);
			continue;
		}
		uint32_t n = PORT_BURST;
		for (int burst = 0; burst < PORT_MAX_BURSTS && n == PORT_BURST; burst++) {
			n = port_queue_rx(h->queues[p], frames);
			uint32_t kept = sort ? sort(ctx, p, frames, n) : n;
			input_many(h, p, frames, kept);
			port_queue_done(h->queues[p], frames, kept);
			any |= n > 0;
		}
		if (h->served >> p & 1)
			any |= send_of_others(h, p);
	}
	return any;
}

bool host_receive(struct host *h, uint64_t now_ns)
{
	twheel_set_now(h->wheel, now_ns);
	bool any = host_poll(h, NULL, NULL);
	twheel_advance(h->wheel, now_ns);
	return any;
}
