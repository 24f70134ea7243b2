// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/proxy/world.h"

#include "lb/base/check.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/books.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rand *world_rand(struct world *w)
{
	return &w->wire.rand;
}

bool world_chance(struct world *w, uint32_t percent)
{
	return rand_below(world_rand(w), 100) < percent;
}

uint64_t world_counter(const struct world *w, const char *name)
{
	return books_counter(w->proxy, name);
}

uint64_t world_shaken(const struct world *w, enum proxy_handshake_side side, enum tlshs_outcome how)
{
	return proxy_handshake_counters(w->proxy, side).values[how];
}

uint32_t world_chunks_used(const struct world *w)
{
	return w->wire.hosts[HOST_PROXY].chunks.n_used;
}

#define CONTROL_NS (20 * MS)

static struct books books(const struct world *w)
{
	return (struct books){.proxy = w->proxy,
		.link = w->link,
		.control = &w->control,
		.max_requests = w->conf.max_requests,
		.max_queued = w->conf.max_queued + MAX_BACKENDS};
}

static void check_invariants(struct world *w)
{
	struct books b = books(w);
	books_check(&b);
	if (world_chunks_used(w) > w->max_chunks)
		w->max_chunks = world_chunks_used(w);
}

static void proxy_begin(void *ctx)
{
	struct world *w = ctx;
	struct lb_command c;
	control_turn(&w->control);
	wire_watch(&w->wire.hosts[HOST_PROXY], true);
	proxy_begin_turn(w->proxy, w->control.snapshot, w->wire.now_ns);
	while (spsc_read(&w->link->commands, &c))
		proxy_command(w->proxy, &c);
	wire_watch(&w->wire.hosts[HOST_PROXY], false);
}

static void proxy_end(void *ctx)
{
	struct world *w = ctx;
	wire_watch(&w->wire.hosts[HOST_PROXY], true);
	proxy_end_turn(w->proxy);
	wire_watch(&w->wire.hosts[HOST_PROXY], false);
	check_invariants(w);
	if (w->conf.n_handshake_slots && desk_turn(&w->desk))
		w->wire.hosts[HOST_PROXY].due = true;
}

static void clients_end(void *ctx)
{
	struct world *w = ctx;
	for (uint32_t i = 0; i < w->conf.n_clients; i++)
		client_pump(&w->clients[i]);
}

static void backends_end(void *ctx)
{
	struct world *w = ctx;
	for (uint32_t i = 0; i < w->conf.n_backends; i++)
		backend_pump(&w->backends[i]);
}

static const char *source_for(void *ctx, const struct ip_addr *dst, struct ip_addr *ret)
{
	*ret = wire_address(HOST_PROXY, 100);
	return dst->b[14] == HOST_BACKENDS ? NULL : "no route";
}

struct world_conf world_conf_default(uint64_t seed)
{
	return (struct world_conf){.seed = seed,
		.n_clients = 4,
		.n_backends = 4,
		.n_workers = 1,
		.max_clients = 64,
		.max_queued = 1024,
		.max_requests = 2048,
		.max_conns_per_endpoint = 2,
		.n_chunks = 16384,
		.backend_streams = 100,
		.stream_window = 65535,
		.listener_drain_ns = 600 * SECOND,
		.idle_timeout_ns = 300 * SECOND,
		.client_buffer = 1 << 20,
		.max_attempts = 8,
		.n_events = 256};
}

static struct h2_conf h2_conf(const struct world *w, uint32_t max_concurrent)
{
	return (struct h2_conf){.max_conns = 128,
		.max_streams = 8192,
		.max_concurrent_streams = max_concurrent,
		.stream_window = w->conf.stream_window,
		.conn_window = 1 << 20,
		.max_header_bytes = 16 << 10,
		.max_header_fields = 100,
		.now_ns = &w->wire.now_ns,
		.seed = w->conf.seed};
}

// Of a peer; window: of its streams, and of a connection where that is more. 0 = the world's.
static struct h2_conf peer_conf(const struct world *w, uint32_t max_concurrent, uint32_t window)
{
	struct h2_conf c = h2_conf(w, max_concurrent);
	if (window)
		c.stream_window = window;
	if (c.conn_window < window)
		c.conn_window = window;
	return c;
}

static void enter_control(const struct world *w, bool enters)
{
	if (w->conf.in_control)
		w->conf.in_control(enters);
}

struct lb_terms world_terms(const struct world *w)
{
	const struct world_conf *c = &w->conf;
	return (struct lb_terms){
		.client_silence = {0, 60 * SECOND, c->ping_interval_ns, c->ping_timeout_ns},
		.backend_silence = {0, 3 * SECOND, c->ping_interval_ns, c->ping_timeout_ns},
		.idle_timeout_ns = c->idle_timeout_ns,
		.max_age_ns = c->max_age_ns,
		.max_age_grace_ns = c->max_age_grace_ns,
		.stream_idle_ns = LB_NO_TIMEOUT,
		.listener_drain_ns = c->listener_drain_ns,
		.max_streams = CLIENT_STREAMS,
		.client_buffer = c->client_buffer,
		.max_attempts = c->max_attempts,
		.retry_idempotent = !c->no_idempotent_retry,
	};
}

static void new_proxy(struct world *w)
{
	struct host *h = wire_add_host(&w->wire, w->conf.n_chunks, 256, 128 << 10);
	if (w->conf.n_handshake_slots)
		desk_init(&w->desk, w->conf.n_handshake_slots);
	for (uint32_t i = 0; i <= LAST_FRONTEND; i++)
		w->frontends[i] =
			(struct lb_frontend_conf){.address = wire_address(HOST_PROXY, i % 200 + 1),
				.port = (uint16_t)(80 + i / 200),
				.authority = i == 1 ? "pinned.test" : NULL,
				.header = i ? (struct lb_header_conf){0} : w->conf.header,
				.reply_details = true};
	if (w->conf.has_vips)
		w->frontends[VIPS_FRONTEND] = (struct lb_frontend_conf){.by_listeners = true};
	struct proxy_conf conf = {.frontends = w->frontends,
		.n_frontends = LAST_FRONTEND + 1,
		.n_workers = w->conf.n_workers,
		.max_clients = w->conf.max_clients,
		.max_requests = w->conf.max_requests,
		.max_queued = w->conf.max_queued,
		.max_conns_per_endpoint = w->conf.max_conns_per_endpoint,
		.connect_timeout_ns = 20 * SECOND,
		.terms = world_terms(w),
		.window_max = 4 << 20,
		.handshakes = {w->desk.links, w->conf.n_handshake_slots ? 1 : 0, DESK_SEATS},
		.seed = w->conf.seed,
		.source_for = source_for,
		.source_ctx = w};
	struct h2_conf h2 = h2_conf(w, CLIENT_STREAMS);
	h2.now_ns = NULL; // the proxy gives its own
	enter_control(w, true);
	w->shared = lb_shared_new();
	enter_control(w, false);
	w->link = lb_link_new(0, 0, w->shared);
	CHECK(w->link);
	if (w->conf.log || w->conf.listeners_log || w->conf.traces)
		w->link->access = lb_access_new(w->conf.log);
	if (w->conf.traces)
		w->link->trace = lb_trace_new();
	spsc_fini(&w->link->events);
	CHECK(spsc_init(&w->link->events, sizeof(struct lb_event), w->conf.n_events) == 0);
	w->proxy = proxy_new(&conf, &h2, h->tcp, h->wheel, &h->chunks, w->link);
	CHECK(w->proxy);
	h->begin_turn = proxy_begin;
	h->end_turn = proxy_end;
	h->ctx = w;
}

struct world *world_new(const struct world_conf *conf)
{
	struct world *w = calloc(1, sizeof(*w));
	CHECK(w);
	w->conf = *conf;
	wire_init(&w->wire, conf->seed);
	w->wire.loss = conf->loss;
	struct host *clients = wire_add_host(&w->wire, 65536, 256, 64 << 10);
	struct h2_conf client_conf = peer_conf(w, 100, conf->client_window);
	w->client_ctx = h2_context_new(&client_conf, &clients->chunks);
	CHECK(w->client_ctx);
	clients->end_turn = clients_end;
	clients->ctx = w;
	new_proxy(w);
	struct host *backends = wire_add_host(&w->wire, 65536, 256, 64 << 10);
	backends->end_turn = backends_end;
	backends->ctx = w;
	w->backend_conf = peer_conf(w, conf->backend_streams, conf->backend_window);
	for (uint32_t i = 0; i < conf->n_backends; i++) {
		struct backend *b = &w->backends[i];
		*b = (struct backend){.n_done = w->n_done,
			.n_refused = w->n_refused,
			.seen = w->seen,
			.n_ids = MAX_ASKS,
			.served = w->served,
			.n_all_served = &w->n_served,
			.wants_header = conf->to_backends};
		backend_open(b, backends, wire_address(HOST_BACKENDS, i + 1), &w->backend_conf);
	}
	enter_control(w, true);
	control_init(&w->control, &w->wire, w->link, conf->n_workers);
	enter_control(w, false);
	if (conf->to_backends) {
		const struct lb_security_conf headed = {.header = *conf->to_backends};
		w->headed = w->control.security = lb_security_new_as(&headed);
		CHECK(w->headed);
	}
	return w;
}

void world_open_client(struct world *w, uint32_t i, uint32_t frontend)
{
	client_open(&w->clients[i], &w->wire.hosts[HOST_CLIENTS], w->client_ctx, frontend,
		w->frontends[frontend].address, w->frontends[frontend].port);
}

struct ip_port world_vip(uint32_t last)
{
	return (struct ip_port){wire_address(HOST_PROXY, last), 8443};
}

void world_open_client_at(struct world *w, uint32_t i, const struct ip_port *vip)
{
	client_open(&w->clients[i], &w->wire.hosts[HOST_CLIENTS], w->client_ctx, VIPS_FRONTEND,
		vip->ip, vip->port);
}

struct ask *world_ask(struct world *w, const char *route, enum kind kind, uint32_t size)
{
	CHECK(w->n_asks < MAX_ASKS);
	struct ask *a = &w->asks[w->n_asks];
	*a = (struct ask){.id = w->n_asks,
		.kind = kind,
		.route = route,
		.size = size,
		.cancel_after = UINT32_MAX};
	w->n_asks++;
	return a;
}

uint64_t world_ended(const struct world *w, enum lb_cause cause)
{
	return w->link->counters.ended[cause];
}

bool world_all_over(const struct world *w)
{
	for (uint32_t i = 0; i < w->n_asks; i++)
		if (w->asks[i].begun && !w->asks[i].closed)
			return false;
	return true;
}

void world_run(struct world *w, uint64_t for_ns)
{
	uint64_t until = w->wire.now_ns + for_ns;
	while (w->wire.now_ns < until) {
		// The control thread's timers are nobody's host's, so it gets a turn now and then.
		uint64_t next = w->wire.now_ns + CONTROL_NS;
		w->wire.hosts[HOST_PROXY].due = true;
		while (wire_step(&w->wire, next < until ? next : until))
			;
	}
}

void world_show(const struct world *w, const struct ask *a)
{
	fprintf(stderr,
		"ask %u kind %d /%s size %u: http %d grpc %d (%s) received %u end %d closed %d "
		"by_peer "
		"%d code %d cancelled %d broken %d info %u done %u refused %u sent %u "
		"timeout %s fail %s seen %u delivered %u excused %u\n",
		a->id, a->kind, a->route, a->size, a->http_status, a->grpc_status, a->message,
		a->received, a->got_end, a->closed, a->by_peer, a->code, a->cancelled, a->broken,
		a->n_informational, w->n_done[a->id], w->n_refused[a->id], a->sent,
		a->timeout ? a->timeout : "-", a->fail ? a->fail : "-", w->seen[a->id].n,
		w->seen[a->id].n_delivered, w->seen[a->id].n_excused);
}

static void world_show_open(const struct world *w)
{
	for (uint32_t i = 0; i < w->n_asks; i++)
		if (w->asks[i].begun && !w->asks[i].closed)
			world_show(w, &w->asks[i]);
	struct counter_set set = proxy_counters(w->proxy);
	for (uint32_t i = 0; i < set.n; i++)
		fprintf(stderr, "%s %llu\n", set.names[i], (unsigned long long)set.values[i]);
}

void world_finish(struct world *w, uint64_t within_ns)
{
	uint64_t until = w->wire.now_ns + within_ns;
	while (!world_all_over(w)) {
		if (w->wire.now_ns >= until) {
			world_show_open(w);
			CHECK(!"over in time");
		}
		world_run(w, 10 * MS);
	}
}

static void check_nothing_left(struct world *w)
{
	struct books b = books(w);
	books_check_closed(&b);
	CHECK(world_chunks_used(w) == 0);
	CHECK(tcp_stack_n_conns(w->wire.hosts[HOST_PROXY].tcp) == 0);
	struct pool_list pools = {0};
	proxy_list_pools(w->proxy, &pools);
	for (uint32_t i = 0; i < pools.n; i++)
		if (strncmp(pools.views[i].name, "tls_", 4) == 0 ||
			strcmp(pools.views[i].name, "client_backends") == 0)
			CHECK(*pools.views[i].n_used == 0);
	CHECK(!proxy_is_shaking(w->proxy));
}

void world_free(struct world *w)
{
	w->wire.loss = 0;
	for (uint32_t i = 0; i < w->conf.n_clients; i++)
		client_abort(&w->clients[i]);
	for (uint32_t i = 0; i < N_CLUSTERS; i++) {
		control_set_endpoints(&w->control, i, HOST_BACKENDS, 0);
		control_set_hosts(&w->control, i, HOST_BACKENDS, NULL, 0);
	}
	// A client whose RST was lost, or came before the data in front of it (RFC 5961 3.2), is
	// missed a minute and the user timeout later.
	world_run(w, 100 * SECOND);
	check_nothing_left(w);
	for (uint32_t i = 0; i < w->conf.n_backends; i++)
		backend_fini(&w->backends[i]);
	proxy_free(w->proxy);
	if (w->conf.n_handshake_slots)
		desk_fini(&w->desk);
	h2_context_free(w->client_ctx);
	control_fini(&w->control);
	lb_security_put(w->headed);
	lb_link_free(w->link);
	lb_shared_free(w->shared);
	wire_fini(&w->wire);
	free(w);
}
