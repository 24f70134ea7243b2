// SPDX-License-Identifier: Apache-2.0
// Client connections: accepted on a frontend, fed to HTTP/2, closed. request.h handles their
// streams.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/client_buffer.h"
#include "dataplane/proxy/conn.h"
#include "dataplane/proxy/counters.h"
#include "dataplane/proxy/leave.h"
#include "dataplane/proxy/queue.h"
#include "dataplane/proxy/source.h"
#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct proxy_client_backend;
struct proxy_client_header;
struct proxy_client_hello;
struct proxy_client_tlvs;

struct proxy_client {
	struct proxy_conn conn; // first
	struct list_link link; // in the proxy's list of clients, while conn.h2 is set
	struct proxy_source *source; // it counts there
	struct ip_addr address; // of its other end, or that its PROXY header names (PP-01)
	struct proxy_client_header *header; // owned; NULL = complete, or none is wanted
	const struct tcp_conn_ops *behind_header; // NULL = none is wanted
	struct proxy_client_tlvs *tlvs; // owned; of its header, for backends; NULL = none
	struct proxy_client_hello *hello; // owned; NULL = it has its chain
	struct list_link waits; // in source->waiting while input waits
	struct list_link idle; // in a list of proxy_idle while it has no open stream
	uint64_t idle_since_ns; // while it is there
	struct list_link answered; // requests answered in full while their body still comes
	LIST_HEAD(, proxy_client_backend) backends; // connections of its own (client_backend.h)
	struct twheel_timer window_timer; // fires when a stream has waited too long for window
	struct twheel_timer block_timer; // fires when a header block has been open for too long
	struct twheel_timer progress_timer; // fires when a request may have been idle for too long
	struct proxy_leave leave;
	struct proxy_client_buffer buffer;
	uint64_t generation; // its chain's generation at accept; 0 = it had no listener
	uint64_t body_sent_ns; // when a byte of any body left for it last
	uint64_t measured_ns, measured_taken; // pressure.c: since when, and from which byte on
	uint64_t random; // random per connection, for hashing (HP-08)
	uint32_t block_id; // stream of the open header block; 0 = none
	uint16_t port; // of `address`
	struct ip_port target; // where it went, if its PROXY header says so
	uint16_t frontend; // of shunt.yaml
	// The place of the vip by which it came, and 1. 0 = none, or its listener is being left.
	uint16_t vip;
	// The snapshot's frontend with its routes, for life: the same, or a chain. While there is a
	// hello: the same.
	uint16_t chain;
	bool held; // its input waits for an answer or for window (h2_conn_holds)
	bool has_asked; // sent a request, ever
	bool has_target;
	bool cut; // its time to leave is over: on_expired() ends it in order (leave.h)
	bool broke_protocol; // the connection ended because the client broke the protocol
	bool drained; // the last GOAWAY is sent: close when no streams are left
};

// A tcp_accept_fn; arg is a proxy_listener.
const struct tcp_conn_ops *proxy_client_accept(void *arg, struct tcp_conn *, void **ret_user);
// The first of the proxy's clients, or the one after `c`; NULL = none. Newcomers are put in front.
struct proxy_client *proxy_client_first(const struct proxy *);
struct proxy_client *proxy_client_after(const struct proxy_client *c);
// Sends GOAWAY, then FIN.
void proxy_client_close(struct proxy_client *, enum h2_error);
// Sends RST at once.
void proxy_client_abort(struct proxy_client *);
