// SPDX-License-Identifier: Apache-2.0
// An IP host: a queue of each of its ports, with net, TCP and their timers on top. The owner runs
// the protocol on its connections: the balancer's worker (worker.h), or a tool.
// Thread: host_new() and host_free() on the thread that started EAL, while nobody else uses it; the
// rest on the polling thread.
#pragma once

#include "dataplane/net/net.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/err.h"
#include "lb/base/pool.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

struct exception_end;
struct host;
struct lb_capture;
struct lb_command;
struct lb_link;
struct lb_own_ranges;
struct port;
struct port_queue;
struct relay_end;
struct rte_mbuf;

struct host_port {
	struct port *port; // borrowed, outlives the host; NULL = the host opens the device itself
	const char *device; // DPDK's devargs, see port.h; only if port is NULL
	uint16_t mtu, vlan; // as in struct port_conf; only if port is NULL
	struct net_prefix addresses[NET_MAX_ADDRESSES]; // the first is the default source
	uint32_t n_addresses; // at least 1
	// See struct net_port_conf.
	struct ip_addr gateways[NET_MAX_GATEWAYS];
	bool first_gateway;
	struct net_watch watch;
	bool accept_ra;
	bool has_kernel; // behind it: its addresses are shared (net/foreign.h)
};

struct host_conf {
	const struct host_port *ports; // copied
	uint32_t n_ports; // 1..NET_MAX_PORTS
	const struct net_vip *vips; // copied
	uint32_t n_vips, n_vip_places; // see net_set_vips()
	const struct net_tunnels *tunnels; // borrowed; NULL = none (net_set_tunnels())
	struct lb_gateways *gateways; // borrowed; NULL = its own (net_share_gateways())
	uint32_t queue; // of every port
	uint32_t max_conns; // of any state but TIME_WAIT
	uint32_t max_half_open, max_passive, max_time_wait; // of TCP connections, see tcp.h
	uint32_t max_neighbors; // neighbors in use at one time
	uint32_t n_chunks; // of 2 KiB: all bytes queued anywhere
	uint32_t tcp_send_limit; // bytes queued per connection
	uint32_t tcp_recv_window; // bytes advertised per connection
	uint32_t tcp_window_max; // what both may grow to
	bool (*is_ours)(void *ctx, const struct tcp_flow *); // see tcp.h
	void *is_ours_ctx;
	struct exception_end *exception; // borrowed; NULL = no port has a kernel behind it
	struct relay_end *relay; // borrowed; NULL = no other process is to have a port
};

// Allocates all memory. Returns NULL with reterr on failure.
struct host *host_new(const struct host_conf *, struct lb_err *reterr);
// Call after the owner freed its own objects; resets remaining connections. NULL is fine.
void host_free(struct host *);

// Borrowed for the host's life.
struct tcp_stack *host_tcp(struct host *);
struct twheel *host_wheel(struct host *);
struct pool *host_chunks(struct host *);
struct net *host_net(struct host *);
struct port_queue *const *host_queues(const struct host *); // one of each port
// True if the devices' peers are there (a memif is up when the other process has connected).
bool host_is_up(const struct host *);
// Announces our addresses (gratuitous ARP), now and whenever a device returns.
void host_announce(struct host *);
// Call once a second: a host that announces does so anew where a link came up (port_watch()).
void host_watch_links(struct host *);
// Call before connecting to dst: sets *ret to its source. Returns NULL, or why dst is unreachable.
// The first argument is the host, as for proxy_conf.source_for.
const char *host_source_for(void *host, const struct ip_addr *dst, struct ip_addr *ret);
// net_serve() of the host, as for proxy_conf.serve.
void host_serve(void *host, uint32_t place, const struct ip_addr *);
// net_change_vips() of the host, as for proxy_conf.own.
void host_own(void *host, const struct lb_own_ranges *);

// Uses the relays that there are by now.
void host_follow_relays(struct host *);

// Carries out what the control thread wants of the network layer. False = it is not about that.
bool host_carry_out(struct host *, struct lb_link *, const struct lb_command *);

// From now on frames that the capture asks for are copied to it, on the ports that it names; NULL =
// no longer. It is borrowed meanwhile, and the caller tells it of turns. Not while frames are
// processed.
void host_tap(struct host *, struct lb_capture *);

// Processes one received frame, which stays the caller's.
void host_input(struct host *, uint32_t port, struct rte_mbuf *);
// Removes frames for other workers from a burst; returns how many frames stay, in front.
typedef uint32_t (*host_sort_fn)(
	void *ctx, uint32_t port, struct rte_mbuf **frames, uint32_t n_frames);
// Processes received frames. sort NULL = all are ours. Returns true if there were any.
bool host_poll(struct host *, host_sort_fn sort, void *ctx);
// Begins a turn: processes frames, then fires timers up to now_ns. Returns true if there were any.
bool host_receive(struct host *, uint64_t now_ns);
// Ends a turn: sends the connections' output and the devices' batches. Returns true if there was
// any.
bool host_flush(struct host *);
// Waits for frames, at most that long. If a device has no descriptor for poll(2), or if there are
// more than two hosts, it only sleeps.
void host_rest(struct host *const *, uint32_t n_hosts, uint64_t ns);

struct counter_set host_port_counters(const struct host *, uint32_t port);
// Adds the counter groups "port0", …, and "kernel0", … of ports with a kernel. The host outlives
// their use.
void host_add_groups(struct host *, struct lb_link *);
