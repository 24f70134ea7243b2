// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/proxy.h"

#include "dataplane/h1/h1.h"
#include "dataplane/proxy/attempt.h"
#include "dataplane/proxy/backend.h"
#include "dataplane/proxy/backend_tell.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/client_header.h"
#include "dataplane/proxy/client_hello.h"
#include "dataplane/proxy/drain.h"
#include "dataplane/proxy/http1.h"
#include "dataplane/proxy/listen.h"
#include "dataplane/proxy/peer.h"
#include "dataplane/proxy/pressure.h"
#include "dataplane/proxy/probe.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/terms.h"
#include "dataplane/proxy/upstream.h"
#include "dataplane/proxy/work.h"
#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/pick/link.h"
#include "lb/route/route.h"
#include "lb/snapshot.h"

#include <stdlib.h>

// Picks for waiting requests in one turn: they must not hold up those that can be served.
#define WALK_BUDGET 1024

static int init_memory(struct proxy *p, const struct h2_conf *h2)
{
	if (proxy_queues_init(&p->queues, p->conf.max_queued) || proxy_notices_init(&p->notices))
		return -1;
	if (pool_init(&p->requests, sizeof(struct proxy_request), p->conf.max_requests) ||
		pool_init(&p->clients, sizeof(struct proxy_client), p->conf.max_clients) ||
		proxy_client_headers_init(p) || proxy_client_hellos_init(p) ||
		pool_init(&p->upstreams, sizeof(struct proxy_upstream), h2->max_conns) ||
		proxy_client_backends_init(&p->client_backends, h2->max_conns) ||
		proxy_probes_init(p, h2->max_conns))
		return -1;
	if (p->link->access && pool_init(&p->access_records, sizeof(struct lb_access_record),
				       p->conf.max_requests))
		return -1;
	if (p->link->trace &&
		pool_init(&p->trace_tags, sizeof(struct lb_trace_tags), p->conf.max_requests))
		return -1;
	uint64_t own[2] = {rand_u64(&p->rand), rand_u64(&p->rand)};
	const uint8_t *key = proxy_handshakes_source_key(&p->conf.handshakes);
	if (proxy_sources_init(
		    &p->sources, p->conf.max_clients, key ? key : (const uint8_t *)own) ||
		proxy_shares_init(&p->shares, p->conf.max_requests) ||
		proxy_lines_init(&p->lines, p->conf.max_requests))
		return -1;
	p->positions = cacheline_alloc(LB_MAX_SLOTS, sizeof(*p->positions));
	p->backends = cacheline_alloc(LB_MAX_ENDPOINTS, sizeof(*p->backends));
	p->ready = cacheline_alloc(LB_MAX_ENDPOINTS / 64, sizeof(*p->ready));
	proxy_latency_init(&p->latency, p->link);
	if (!p->positions || !p->backends || !p->ready ||
		proxy_scratch_init(
			&p->scratch, p->link->worker, h2->max_header_fields, h2->max_header_bytes))
		return -1;
	// Rotations start anywhere, so that workers don't all begin with the same backend (MC-10).
	for (uint32_t i = 0; i < LB_MAX_SLOTS; i++)
		p->positions[i] = (uint32_t)rand_u64(&p->rand);
	return 0;
}

// Without threads for handshakes nothing of it is needed.
static int init_tls(struct proxy *p, uint32_t max_conns)
{
	struct tls_conf conf = {.max_conns = max_conns, .now_ns = &p->now_ns};
	if (proxy_handshakes_init(
		    &p->handshakes, &p->conf.handshakes, &proxy_secure_handshake_events) ||
		pool_init(&p->secures, sizeof(struct proxy_secure), max_conns) ||
		pool_init(&p->peers, sizeof(struct proxy_peer), p->conf.max_clients) ||
		pool_init(&p->names, TLSHS_MAX_NAME + 1, p->conf.max_clients))
		return -1;
	if (!p->conf.handshakes.n_links)
		return 0;
	p->tls = tls_context_new(&conf, p->chunks);
	return p->tls ? 0 : -1;
}

static void again_fire(struct twheel_timer *t)
{
	// That a turn happens is all: its end does the work.
}

// Both protocols of clients, whose lists are held to the same bounds.
static int init_http(struct proxy *p, const struct h2_conf *h2)
{
	const struct h1_conf h1 = {.max_conns = p->conf.max_clients,
		.max_header_bytes = h2->max_header_bytes,
		.max_header_fields = h2->max_header_fields};
	p->h2 = h2_context_new(h2, p->chunks);
	p->h1 = h1_context_new(&h1, p->chunks);
	if (!p->h2 || !p->h1)
		return -1;
	h2_context_set_carrier(p->h2, &proxy_http1_carrier, p->h1);
	return 0;
}

struct proxy *proxy_new(const struct proxy_conf *conf, const struct h2_conf *h2,
	struct tcp_stack *tcp, struct twheel *wheel, struct pool *chunks, struct lb_link *link)
{
	CHECK(conf->n_frontends <= LB_MAX_FRONTENDS && conf->n_workers > 0);
	struct proxy *p = cacheline_alloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->conf = *conf;
	p->tcp = tcp;
	p->wheel = wheel;
	p->chunks = chunks;
	p->link = link;
	p->shared = link->shared;
	p->again.fire = again_fire;
	STAILQ_INIT(&p->dirty);
	list_init(&p->client_list);
	list_init(&p->lingering_clients);
	list_init(&p->lingering);
	list_init(&p->secures_again);
	STAILQ_INIT(&p->serve);
	STAILQ_INIT(&p->tell);
	proxy_idle_init(&p->idle);
	proxy_reclaim_init(&p->reclaim);
	proxy_work_init(&p->work);
	p->attempts = &proxy_attempt_events;
	p->quota_cache.n_workers = conf->n_workers;
	rand_init(&p->rand, conf->seed);
	p->now_ns = twheel_now(wheel);
	struct h2_conf h2_conf = *h2;
	if (!h2_conf.now_ns)
		h2_conf.now_ns = &p->now_ns;
	proxy_terms_begin(p, &h2_conf);
	if (init_http(p, &h2_conf) || init_memory(p, h2) || init_tls(p, h2->max_conns) ||
		proxy_listen_begin(p, proxy_client_accept)) {
		proxy_free(p);
		return NULL;
	}
	proxy_round_trips_begin(p);
	return p;
}

static void free_conns(struct proxy *p)
{
	proxy_listen_end(p);
	for (struct proxy_client *c; (c = proxy_client_first(p));)
		proxy_client_abort(c);
	for (uint32_t i = 0; p->upstreams.n_used && i < LB_MAX_ENDPOINTS; i++)
		proxy_backend_part(&p->backends[i]);
	proxy_probes_abort(p);
	proxy_conn_flush_all(p);
	tcp_stack_flush(p->tcp);
	proxy_conn_end_lingering(p);
	proxy_conn_flush_all(p);
}

void proxy_free(struct proxy *p)
{
	if (!p)
		return;
	p->freeing = true;
	if (p->backends)
		free_conns(p);
	twheel_cancel(p->wheel, &p->retry_timer);
	twheel_cancel(p->wheel, &p->again);
	twheel_cancel(p->wheel, &p->idle.timer);
	twheel_cancel(p->wheel, &p->reclaim.timer);
	twheel_cancel(p->wheel, &p->drain.timer);
	twheel_cancel(p->wheel, &p->drain.hush_timer);
	twheel_cancel(p->wheel, &p->inflight.timer);
	twheel_cancel(p->wheel, &p->round_trips.timer);
	lb_quota_cache_return(&p->quota_cache);
	h2_context_free(p->h2);
	proxy_handshakes_fini(&p->handshakes);
	tls_context_free(p->tls);
	pool_fini(&p->secures);
	pool_fini(&p->peers);
	pool_fini(&p->names);
	h1_context_free(p->h1);
	pool_fini(&p->requests);
	pool_fini(&p->access_records);
	pool_fini(&p->trace_tags);
	pool_fini(&p->clients);
	pool_fini(&p->client_headers);
	pool_fini(&p->client_tlvs);
	pool_fini(&p->client_hellos);
	pool_fini(&p->upstreams);
	proxy_client_backends_fini(&p->client_backends);
	proxy_probes_fini(p);
	proxy_sources_fini(&p->sources);
	proxy_shares_fini(&p->shares);
	proxy_lines_fini(&p->lines);
	proxy_queues_fini(&p->queues);
	proxy_notices_fini(p);
	cacheline_free(p->positions);
	cacheline_free(p->backends);
	cacheline_free(p->ready);
	free((void *)p->frontends);
	proxy_scratch_fini(&p->scratch);
	cacheline_free(p);
}

void proxy_begin_turn(struct proxy *p, const struct lb_snapshot *snapshot, uint64_t now_ns)
{
	p->snapshot = snapshot;
	p->now_ns = now_ns;
	proxy_latency_begin_turn(p);
	proxy_work_begin_turn(&p->work);
	if (snapshot->version == p->version)
		return;
	p->version = snapshot->version;
	proxy_terms_follow(p, &snapshot->terms);
	if (proxy_listen_follow(p))
		proxy_drain_see_frontends(p);
	proxy_queues_changed(&p->queues);
	proxy_drain_see_listeners(p);
}

void proxy_command(struct proxy *p, const struct lb_command *c)
{
	switch (c->kind) {
	case LB_COMMAND_CONNECT:
		proxy_backend_connect(p, c->endpoint);
		return;
	case LB_COMMAND_RELEASE:
		proxy_backend_release(p, c->endpoint);
		return;
	case LB_COMMAND_DRAIN:
		proxy_drain_begin(p, c->deadline_ns);
		return;
	case LB_COMMAND_FAREWELL:
		proxy_drain_say_farewell(p, c->deadline_ns);
		return;
	case LB_COMMAND_LEAVE:
		proxy_listen_leave(p, c->frontend, c->deadline_ns);
		proxy_drain_see_frontends(p);
		return;
	case LB_COMMAND_RETURN:
		proxy_listen_return(p, c->frontend);
		proxy_drain_see_frontends(p);
		return;
	case LB_COMMAND_INFLIGHT:
		proxy_inflight_begin(p);
		return;
	case LB_COMMAND_PROBE:
		proxy_probe_begin(p, c->probe);
		return;
	case LB_COMMAND_PROBE_END:
		proxy_probe_end(p, c->probe);
		return;
	case LB_COMMAND_PING: // the worker's
	case LB_COMMAND_CAPTURE:
	case LB_COMMAND_CAPTURE_END:
	case LB_COMMAND_COMPANY:
	case LB_COMMAND_RELAYS:
	case LB_COMMAND_CLEAR_MAXIMA:
		return;
	}
}

void proxy_neighbor(struct proxy *p, const struct ip_addr *ip)
{
	proxy_notice_neighbor(p, ip);
}

static void ask_for_a_turn(struct proxy *p)
{
	uint64_t at = twheel_now(p->wheel);
	if (STAILQ_EMPTY(&p->queues.walks) && !p->drain.next && !proxy_drain_looks(&p->drain)) {
		bool drained_untold = p->drain.step == PROXY_DRAIN_DONE && !p->drain.answered;
		bool is_told = STAILQ_EMPTY(&p->tell) && list_empty(&p->probes.to_tell) &&
		               !p->notices.connects.head && !p->notices.due.head;
		if ((is_told && !drained_untold) || twheel_armed(&p->again))
			return;
		at += TWHEEL_NS_PER_TICK; // the control thread reads its ring when it can
	}
	twheel_arm(p->wheel, &p->again, at);
}

static void set_gauges(struct proxy *p)
{
	counter_set_to(&p->counters[PROXY_requests], p->requests.n_used);
	counter_set_to(&p->counters[PROXY_requests_waiting], p->queues.n_waiting);
	counter_set_to(&p->counters[PROXY_requests_paused], p->queues.n_paused);
	counter_set_to(&p->counters[PROXY_clients], p->clients.n_used);
	counter_set_to(&p->counters[PROXY_upstreams], p->upstreams.n_used);
	counter_set_to(&p->counters[PROXY_spare_places], p->quota_cache.n_spare);
}

void proxy_end_turn(struct proxy *p)
{
	uint32_t budget = WALK_BUDGET;
	if (proxy_secure_is_busy(p))
		proxy_secure_turn(p);
	if (!list_empty(&p->work.line))
		proxy_work_serve_line(p);
	proxy_drain_step(p);
	proxy_pressure_relieve(p);
	// Each round moves a request on or writes out what one left to write; rounds end when
	// nothing moves.
	do {
		bool moved = true;
		while (moved) {
			moved = proxy_queues_walk(&p->queues, &budget, proxy_attempt_pick_again);
			moved |= proxy_backend_serve_all(p);
		}
	} while (proxy_conn_flush_all(p) || (p->shares.pool.n_used && proxy_reclaim_turn(p)));
	proxy_backend_tell_all(p);
	proxy_probe_tell_all(p);
	if (!proxy_notice_tell_all(p, &p->notices))
		proxy_count(p, PROXY_events_delayed);
	lb_quota_cache_tidy(&p->quota_cache);
	set_gauges(p);
	ask_for_a_turn(p);
	p->snapshot = NULL;
}

struct counter_set proxy_counters(const struct proxy *p)
{
	static const char *const names[] = {PROXY_COUNTERS(COUNTER_NAME)};
	return (struct counter_set){.names = names, .values = p->counters, .n = PROXY_N_COUNTERS};
}

struct counter_set proxy_h2_counters(const struct proxy *p)
{
	return h2_context_counters(p->h2);
}

struct counter_set proxy_tls_counters(const struct proxy *p)
{
	return tls_context_counters(p->tls);
}

struct counter_set proxy_handshake_counters(const struct proxy *p, enum proxy_handshake_side side)
{
	return proxy_handshakes_counters(&p->handshakes, side);
}

bool proxy_is_shaking(const struct proxy *p)
{
	return proxy_secure_is_busy(p);
}

struct counter_set proxy_h1_counters(const struct proxy *p)
{
	return h1_context_counters(p->h1);
}

void proxy_list_pools(struct proxy *p, struct pool_list *l)
{
	pool_list_add(l, "requests", &p->requests);
	pool_list_add(l, "clients", &p->clients);
	if (p->client_headers.n_total) {
		pool_list_add(l, "client_headers", &p->client_headers);
		pool_list_add(l, "client_tlvs", &p->client_tlvs);
	}
	pool_list_add(l, "client_hellos", &p->client_hellos);
	pool_list_add(l, "upstreams", &p->upstreams);
	pool_list_add(l, "client_backends", &p->client_backends.pool);
	pool_list_add(l, "health_checks", &p->probes.conns);
	pool_list_add(l, "sources", &p->sources.pool);
	pool_list_add(l, "shares", &p->shares.pool);
	pool_list_add(l, "lines", &p->lines.pool);
	if (p->link->access)
		pool_list_add(l, "access_records", &p->access_records);
	if (p->link->trace)
		pool_list_add(l, "trace_tags", &p->trace_tags);
	h2_context_list_pools(p->h2, l);
	h1_context_list_pools(p->h1, l);
	if (!p->tls)
		return;
	pool_list_add(l, "tls_parts", &p->secures);
	pool_list_add(l, "tls_peers", &p->peers);
	pool_list_add(l, "tls_names", &p->names);
	tls_context_list_pools(p->tls, l);
}
