// SPDX-License-Identifier: Apache-2.0
// An IP host on one DPDK device, for a thread that polls and has no control plane: device, queue,
// net, TCP and their timers. What speaks over its connections is the owner's; the balancer's own
// thread is worker.h.
// Thread: host_new() and host_free() on the one that started EAL; the rest on the polling thread,
// which may be the same.
#pragma once

#include "dataplane/net/net.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/err.h"
#include "lb/base/pool.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

struct host;

struct host_conf {
	uint32_t index; // of this host in the process, for error texts
	const char *device; // DPDK's devargs, see port.h
	const struct net_prefix *addresses; // copied; the first is the source where none is said
	uint32_t n_addresses; // 1..NET_MAX_ADDRESSES
	struct ip_addr gateway; // all zero = none
	uint32_t max_conns; // of any state but TIME_WAIT
	uint32_t n_chunks; // of 2 KiB: all bytes queued anywhere
	uint32_t tcp_send_limit; // bytes queued per connection
	uint32_t tcp_recv_window; // bytes advertised per connection
};

// Opens the device and takes all memory. NULL = failed; reterr says why.
struct host *host_new(const struct host_conf *, struct lb_err *reterr);
// What its owner has on the stack is gone before: connections that are left are reset. NULL is
// fine.
void host_free(struct host *);

// Borrowed, as long as the host lives.
struct tcp_stack *host_tcp(struct host *);
struct twheel *host_wheel(struct host *);
struct pool *host_chunks(struct host *);
// The peer of the device is there (a memif is up when the other process has connected).
bool host_is_up(const struct host *);
// Tells the link who we are (gratuitous ARP).
void host_announce(struct host *);
// Before a connection to dst. NULL = fine, or why it cannot be reached.
const char *host_prepare(struct host *, const struct ip_addr *dst);

// A turn begins: timers up to now_ns, then the frames that arrived. True = there was something.
bool host_receive(struct host *, uint64_t now_ns);
// It ends: what the connections have to send, and the device's batch. True = there was something.
bool host_flush(struct host *);
// Waits for frames, at most that long; a device without a descriptor for poll(2) just waits.
void host_rest(struct host *const *, uint32_t n_hosts, uint64_t ns);

struct counter_set host_port_counters(const struct host *);
