// SPDX-License-Identifier: Apache-2.0
// The proxy of one worker as its own files see it. Nobody outside this folder includes this.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/conf.h"
#include "dataplane/proxy/counters.h"
#include "dataplane/proxy/drain.h"
#include "dataplane/proxy/notice.h"
#include "dataplane/proxy/queue.h"
#include "dataplane/proxy/scratch.h"
#include "dataplane/proxy/share.h"
#include "dataplane/proxy/source.h"
#include "lb/base/counter.h"
#include "lb/base/pool.h"
#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "lb/pick/limits.h"
#include "lb/pick/quota_cache.h"

struct proxy_attempt_events;
struct proxy_backend;
struct proxy_client;
struct proxy_conn;

struct proxy_listener {
	struct proxy *proxy;
	uint32_t frontend;
};

struct proxy {
	const struct lb_snapshot *snapshot; // of this turn, else NULL
	struct lb_link *link;
	struct lb_shared *shared; // the link's
	struct h2_context *h2;
	struct tcp_stack *tcp;
	struct twheel *wheel;
	struct pool *chunks;
	uint64_t now_ns; // of this turn
	uint64_t version; // of the snapshot the queues were last picked with
	struct rand rand;

	struct pool requests, clients, upstreams;
	struct proxy_sources sources; // of clients
	struct proxy_shares shares; // of breakers' places
	struct proxy_conn *dirty_head, *dirty_tail;
	struct proxy_client *client_list; // those with HTTP/2 going on
	struct proxy_conn *lingering; // of both kinds: have FIN to send or to get

	const struct proxy_attempt_events *attempts; // who makes them
	struct proxy_queues queues;
	uint32_t *positions; // [LB_MAX_SLOTS], lb_pick_ctx.positions
	struct proxy_notices notices;
	struct lb_quota_cache quota_cache; // of breakers
	struct proxy_backend *backends; // [LB_MAX_ENDPOINTS]
	uint64_t *ready; // [LB_MAX_ENDPOINTS / 64], lb/pick/picker.h
	struct proxy_backend *serve_head, *serve_tail; // waiting requests may find room
	struct proxy_backend *tell_head, *tell_tail; // the control thread must learn something
	struct twheel_timer retry_timer; // the first backend that may be tried again
	uint64_t retry_at_ns; // its time, while armed
	struct twheel_timer again; // makes a next turn happen when this one left something over

	struct proxy_scratch scratch;
	bool freeing; // nothing is begun any more
	struct proxy_drain drain;
	struct proxy_listener listeners[LB_MAX_FRONTENDS];
	struct proxy_conf conf;
	uint64_t counters[PROXY_N_COUNTERS];
};

static inline void proxy_count(struct proxy *p, enum proxy_counter which)
{
	counter_add(&p->counters[which], 1);
}
