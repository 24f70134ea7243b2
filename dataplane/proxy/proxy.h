// SPDX-License-Identifier: Apache-2.0
// The proxy of one worker: client connections on one side, pooled backend connections on the other,
// every request bridged from one to the other and ended with exactly one cause (lb/pick/cause.h).
// It knows tcp/, h2/ and lb/, no device and no control plane.
// Thread: the owning worker. No call takes a lock, allocates from libc, logs or makes a system call
// after proxy_new().
#pragma once

#include "dataplane/h2/h2.h"
#include "dataplane/proxy/conf.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/counter.h"
#include "lb/base/ip.h"
#include "lb/base/pool.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_command;
struct lb_link;
struct lb_snapshot;
struct proxy;

// Listens on every frontend. tcp, wheel, chunks and link are borrowed and outlive it. h2_conf's
// connections and streams are of both sides together: a live request has two streams. Its clock is
// the proxy's unless it has one. NULL = out of memory or an address is taken.
struct proxy *proxy_new(const struct proxy_conf *, const struct h2_conf *, struct tcp_stack *,
	struct twheel *, struct pool *chunks, struct lb_link *);
void proxy_free(struct proxy *);

// The snapshot of this turn; nothing keeps it beyond proxy_end_turn(). A new version re-picks the
// queued requests (MC-17). now_ns is the time of the turn, to which the wheel is advanced after
// this: all that it and the TCP stack call back happens between the two.
void proxy_begin_turn(struct proxy *, const struct lb_snapshot *, uint64_t now_ns);
// One command of the control thread (lb/pick/link.h); outcomes go to the link's event ring.
void proxy_command(struct proxy *, const struct lb_command *);
// A host is there on a link (net_set_on_neighbor); the control thread hears of no more than a
// hundred a second.
void proxy_neighbor(struct proxy *, const struct ip_addr *);
// Pumps every connection that something happened to, once, and forgets the snapshot. Call before
// tcp_stack_flush().
void proxy_end_turn(struct proxy *);

struct counter_set proxy_counters(const struct proxy *); // refusals, queueing, pool sizes
void proxy_list_pools(const struct proxy *, struct pool_list *); // its own and h2's
struct counter_set proxy_h2_counters(const struct proxy *); // h2_context_counters() of its own
