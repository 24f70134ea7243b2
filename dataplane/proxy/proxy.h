// SPDX-License-Identifier: Apache-2.0
// The proxy of one worker: client connections on one side, pooled backend connections on the
// other. It forwards every request from one to the other and ends it with exactly one cause
// (lb/pick/cause.h). It knows tcp/, h2/ and lb/, but no device and no control plane.
// Thread: the owning worker. After proxy_new() no call takes a lock, allocates from libc, logs
// or makes a system call.
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

// Listens on every frontend. tcp, wheel, chunks and link are borrowed and outlive the proxy.
// h2_conf counts connections and streams of both sides: a live request has two streams. If
// h2_conf has no clock, the proxy's is used. Returns NULL if out of memory or an address is
// taken.
struct proxy *proxy_new(const struct proxy_conf *, const struct h2_conf *, struct tcp_stack *,
	struct twheel *, struct pool *chunks, struct lb_link *);
void proxy_free(struct proxy *);

// Sets the snapshot of this turn; nothing keeps it beyond proxy_end_turn(). A new version makes
// queued requests pick again (MC-17). now_ns is the time of the turn. The caller then advances
// the wheel to it: all callbacks of the wheel and the TCP stack happen between this and
// proxy_end_turn().
void proxy_begin_turn(struct proxy *, const struct lb_snapshot *, uint64_t now_ns);
// Carries out one command of the control thread (lb/pick/link.h); results go to the link's event
// ring.
void proxy_command(struct proxy *, const struct lb_command *);
// A neighbor was seen on a link (net_set_on_neighbor). At most a hundred a second are reported
// to the control thread.
void proxy_neighbor(struct proxy *, const struct ip_addr *);
// Pumps every marked connection once and forgets the snapshot. Call it before tcp_stack_flush().
void proxy_end_turn(struct proxy *);

struct counter_set proxy_counters(const struct proxy *); // refusals, queueing, pool sizes
void proxy_list_pools(struct proxy *, struct pool_list *); // its own and h2's
// h2_context_counters() of the proxy's HTTP/2
struct counter_set proxy_h2_counters(const struct proxy *);
// h1_context_counters(), likewise
struct counter_set proxy_h1_counters(const struct proxy *);
// Where there are threads for handshakes: of records, and how handshakes ended.
struct counter_set proxy_tls_counters(const struct proxy *);
struct counter_set proxy_handshake_counters(const struct proxy *, enum proxy_handshake_side);
// Threads are at handshakes, and wake nobody: the next turn is to follow soon.
bool proxy_is_shaking(const struct proxy *);
