// SPDX-License-Identifier: Apache-2.0
// The inside of a worker's proxy, for the files of this folder only.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/client_backend.h"
#include "dataplane/proxy/conf.h"
#include "dataplane/proxy/counters.h"
#include "dataplane/proxy/drain.h"
#include "dataplane/proxy/handshakes.h"
#include "dataplane/proxy/idle.h"
#include "dataplane/proxy/inflight.h"
#include "dataplane/proxy/latency.h"
#include "dataplane/proxy/line.h"
#include "dataplane/proxy/notice.h"
#include "dataplane/proxy/pressure_walk.h"
#include "dataplane/proxy/probe.h"
#include "dataplane/proxy/queue.h"
#include "dataplane/proxy/reclaim.h"
#include "dataplane/proxy/round_trips.h"
#include "dataplane/proxy/scratch.h"
#include "dataplane/proxy/share.h"
#include "dataplane/proxy/source.h"
#include "dataplane/proxy/work_turn.h"
#include "dataplane/tcp/tcp.h"
#include "dataplane/tls/hello.h"
#include "lb/base/counter.h"
#include "lb/base/pool.h"
#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "lb/pick/limits.h"
#include "lb/pick/quota_cache.h"
#include "lb/vips.h"

#include <sys/queue.h>

struct proxy_attempt_events;
struct proxy_backend;
struct proxy_client;
struct proxy_conn;
struct proxy_request;

struct proxy_listener {
	struct proxy *proxy;
	uint32_t frontend;
	bool wants_header; // of PROXY (client_header.h)
	bool is_vip; // of a Listener's own address
	uint32_t vip; // if so: its place in the snapshot's table
	struct ip_port at; // where it listens; port 0 = nowhere
	// Of a frontend: its clients are to be gone by then, and nobody is accepted
	// (LB_COMMAND_LEAVE, or it is in shunt.yaml no more). 0 = clients are accepted.
	uint64_t gone_by_ns;
	bool is_left; // likewise: by shunt.yaml, for good
	bool is_counted; // likewise: in frontend_uses, as it accepts clients
	uint64_t live; // likewise: number of what the snapshot says of it; 0 = nothing so far
	uint64_t owner; // likewise: that of who was here then (lb/live_frontend.h)
};

struct proxy {
	const struct lb_snapshot *snapshot; // of this turn; NULL between turns
	struct lb_link *link;
	struct lb_shared *shared; // the link's
	struct h2_context *h2;
	struct h1_context *h1; // of clients that speak it
	struct tcp_stack *tcp;
	struct twheel *wheel;
	struct pool *chunks;
	uint64_t now_ns; // of this turn
	uint64_t version; // of the snapshot last used to pick for the queues
	struct rand rand;

	struct pool requests, clients, client_headers, client_tlvs, client_hellos, upstreams,
		secures, peers, names;
	struct pool access_records; // only if there is an access log
	struct pool trace_tags; // only if there are traces
	const struct proxy_request *fresh; // is being routed; NULL = none
	const struct h2_message *fresh_head; // its
	struct proxy_sources sources; // of clients
	struct proxy_work work; // of their input
	uint8_t hello_bytes[TLS_HELLO_STREAM_MAX]; // of the hello that is being read
	struct tls_context *tls; // NULL = no connection gets TLS
	struct proxy_handshakes handshakes;
	struct list_link secures_again; // connections with TLS that wait for a turn
	struct proxy_idle idle; // clients
	struct proxy_shares shares; // of breakers' places
	struct proxy_reclaim reclaim; // of places whose requests wait for their clients
	struct proxy_lines lines; // of requests that wait at backends
	STAILQ_HEAD(, proxy_conn) dirty; // connections to pump at the end of the turn
	struct list_link client_list; // clients whose HTTP/2 is running, the newest first
	// Connections that wait to send or receive FIN: of clients, and others.
	struct list_link lingering_clients, lingering;

	const struct proxy_attempt_events *attempts; // implemented by attempt.c
	struct proxy_queues queues;
	uint32_t *positions; // [LB_MAX_SLOTS], lb_pick_ctx.positions
	struct proxy_notices notices;
	struct lb_quota_cache quota_cache; // of breakers
	struct proxy_backend *backends; // [LB_MAX_ENDPOINTS]
	struct proxy_client_backends client_backends;
	uint64_t *ready; // [LB_MAX_ENDPOINTS / 64], lb/pick/picker.h
	STAILQ_HEAD(, proxy_backend) serve; // backends whose waiting requests may find room
	STAILQ_HEAD(, proxy_backend) tell; // backends of which the control thread is yet to be told
	struct twheel_timer retry_timer; // fires when the first backend may be tried again
	uint64_t retry_at_ns; // when retry_timer fires, while armed
	struct twheel_timer again; // causes another turn when this one left work over

	struct proxy_latency latency;
	struct proxy_scratch scratch;
	bool freeing; // nothing new is started
	struct proxy_drain drain;
	struct proxy_probes probes; // health checks
	struct proxy_inflight inflight; // what an operator asked for
	struct proxy_pressure pressure; // on the chunks
	struct proxy_round_trips round_trips; // of connections
	// [conf.n_frontends] owned; what shunt.yaml says of each: conf's, or the snapshot's, which
	// the first turn with another one changes before anybody looks.
	const struct lb_frontend_conf **frontends;
	uint64_t n_live; // the snapshot's, of the last one that was followed
	struct proxy_listener listeners[LB_MAX_FRONTENDS];
	struct proxy_listener vips[LB_MAX_VIPS];
	uint64_t ranges_version; // of the list that was followed last; 0 = none
	uint64_t vips_version; // of the table that was followed last; 0 = none
	tcp_accept_fn accept; // of listeners
	struct proxy_conf conf;
	uint32_t client_stream_window; // HTTP/2's at first
	uint32_t unbound_window; // of a client's connection for which nothing is bound
	uint64_t counters[PROXY_N_COUNTERS];
};

static inline void proxy_count(struct proxy *p, enum proxy_counter which)
{
	counter_add(&p->counters[which], 1);
}
