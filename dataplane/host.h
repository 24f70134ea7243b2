// SPDX-License-Identifier: Apache-2.0
// An IP host: a queue of each of its ports, and net, TCP and their timers above them. What speaks
// over its connections is the owner's: the balancer's own thread (worker.h), or a tool's.
// Thread: host_new() and host_free() on the one that started EAL, while nobody else uses it; the
// rest on the polling thread.
#pragma once

#include "dataplane/net/net.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/err.h"
#include "lb/base/pool.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

struct host;
struct port;
struct port_queue;
struct rte_mbuf;

struct host_port {
	struct port *port; // borrowed, outlives the host; NULL = it opens the device for itself
	const char *device; // DPDK's devargs, see port.h; only without a port
	uint16_t mtu; // of it, as in struct port_conf; only without a port
	struct net_prefix addresses[NET_MAX_ADDRESSES]; // the first is the source if none is said
	uint32_t n_addresses; // at least 1
	struct ip_addr gateway; // all zero = none
};

struct host_conf {
	const struct host_port *ports; // copied
	uint32_t n_ports; // 1..NET_MAX_PORTS
	uint32_t queue; // of every port
	uint32_t max_conns; // of any state but TIME_WAIT
	uint32_t max_half_open, max_time_wait; // of TCP connections, see tcp.h
	uint32_t max_neighbors; // hosts on the links that are sent to at one time
	uint32_t n_chunks; // of 2 KiB: all bytes queued anywhere
	uint32_t tcp_send_limit; // bytes queued per connection
	uint32_t tcp_recv_window; // bytes advertised per connection
	bool (*is_ours)(void *ctx, const struct tcp_flow *); // see tcp.h
	void *is_ours_ctx;
};

// Takes all memory. NULL = failed; reterr says why.
struct host *host_new(const struct host_conf *, struct lb_err *reterr);
// What its owner has on the stack is gone before: connections that are left are reset. NULL is
// fine.
void host_free(struct host *);

// Borrowed, as long as the host lives.
struct tcp_stack *host_tcp(struct host *);
struct twheel *host_wheel(struct host *);
struct pool *host_chunks(struct host *);
struct net *host_net(struct host *);
struct port_queue *const *host_queues(const struct host *); // one of each port
// The peers of the devices are there (a memif is up when the other process has connected).
bool host_is_up(const struct host *);
// Tells the links who we are (gratuitous ARP), now and whenever a device is back.
void host_announce(struct host *);
// Before a connection to dst: *ret is its source. NULL = fine, or why dst cannot be reached. Takes
// the host as proxy_conf.source_for does.
const char *host_source_for(void *host, const struct ip_addr *dst, struct ip_addr *ret);

// Takes out of a burst what others are to have, and returns how many frames stay, in front.
typedef uint32_t (*host_sort_fn)(
	void *ctx, uint32_t port, struct rte_mbuf **frames, uint32_t n_frames);
// The frames that arrived. sort: NULL = all are ours. True = there was something.
bool host_poll(struct host *, host_sort_fn sort, void *ctx);
// A turn begins: timers up to now_ns, then the frames that arrived. True = there were any.
bool host_receive(struct host *, uint64_t now_ns);
// It ends: what the connections have to send, and the devices' batches. True = there was something.
bool host_flush(struct host *);
// Waits for frames, at most that long; a device without a descriptor for poll(2) just waits, and so
// do those of more than two hosts.
void host_rest(struct host *const *, uint32_t n_hosts, uint64_t ns);

struct counter_set host_port_counters(const struct host *, uint32_t port);
