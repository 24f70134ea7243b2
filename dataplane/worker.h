// SPDX-License-Identifier: Apache-2.0
// One worker: a pinned thread that owns everything a connection needs (queues, buffers, timers,
// net, tcp, proxy) and runs their poll loop. It communicates with the control thread only through
// link and slot.
// Thread: all functions on ctrl; the loop itself runs on the worker's lcore.
#pragma once

#include "dataplane/host.h"
#include "dataplane/proxy/proxy.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct exception;
struct handover;
struct lb_link;
struct lb_slot;
struct steer;
struct tlshs_threads;
struct worker;

enum worker_idle {
	WORKER_IDLE_POLL, // never sleeps: lowest latency, a whole core
	WORKER_IDLE_BACKOFF, // sleeps after tens of microseconds without work
};

// Sizes of everything a worker ever allocates, all in worker_new(). Memory is only reserved then;
// it becomes resident on first use. Sizes are not divided among workers: a hash decides which
// worker a client gets, so each must be able to carry more than its share.
struct worker_limits {
	uint32_t max_conns; // TCP connections, both sides together
	uint32_t max_requests; // requests in progress
	uint32_t max_queued; // of them, waiting for a backend connection
	uint32_t max_conns_per_endpoint;
	uint32_t max_neighbors; // neighbors in use at one time
	uint32_t n_chunks; // of 2 KiB: all bytes queued anywhere
	uint32_t tcp_send_limit; // bytes queued per connection
	uint32_t tcp_recv_window; // bytes advertised per connection
	uint32_t window_max; // bytes in flight of a connection that these may grow to
};

// Handshakes of TLS that a worker has at a thread at a time.
#define WORKER_MAX_HANDSHAKES 2048

struct worker_conf {
	uint32_t index; // from 0: core index of eal_conf, queue of every port
	enum worker_idle idle;
	// Borrowed, outlive the worker; all workers have the same.
	struct steer *steer;
	struct handover *handover;
	struct exception *exception; // NULL = no port has a kernel behind it
	struct tlshs_threads *handshakes; // with WORKER_MAX_HANDSHAKES of a link
	uint32_t n_handshake_threads; // from 1
	struct worker_limits limits;
	struct host_port ports[NET_MAX_PORTS]; // each with its port, in shunt.yaml's order
	uint32_t n_ports;
	struct net_vip vips[NET_MAX_VIPS];
	uint32_t n_vips;
	uint32_t n_vip_places; // of snapshots' vips
	struct relays *relays; // borrowed; NULL = no other process is to have a port
	enum lb_company company; // at first
	uint32_t port_part, n_port_parts; // of source ports (tcp_stack_set_ports()); 0 = all
	// Borrowed, outlive the worker. Each address must be one of a port's, or of a VIP prefix.
	const struct lb_frontend_conf *frontends;
	uint32_t n_frontends;
	uint64_t connect_timeout_ns; // 0 = 20 s
	struct lb_terms terms; // at first: snapshots may bring others
	// Borrowed, outlive the worker. Gets the counter groups "net", "tcp", "h2", "proxy", "tls",
	// "tls_clients", "tls_backends", "handover", "port0", …, "kernel0", …, and all its pools.
	struct lb_link *link;
	const struct lb_slot *slot;
};

// Allocates everything; nothing runs yet. Returns NULL with reterr (also if out of memory). conf is
// copied, except for what it borrows.
struct worker *worker_new(const struct worker_conf *, struct lb_err *reterr);
// Returns 0 or -errno (its lcore is busy).
[[nodiscard]] int worker_start(struct worker *);
// Asks the loop to end.
void worker_stop(struct worker *);
// Waits until the loop has ended. Returns at once if it was never started.
void worker_join(struct worker *);
// Call when all workers are joined or were never started, with ports still open. Resets remaining
// connections. NULL is fine.
void worker_free(struct worker *);
