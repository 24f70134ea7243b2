// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/pipe_world.h"

#include "dataplane/proxy/proxy.h"
#include "lb/base/check.h"
#include "lb/pick/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/bench/far.h"
#include "tests/bench/pipe_control.h"
#include "tests/bench/pipe_tcp.h"
#include "tests/bench/pipe_tls.h"

#include <stdlib.h>

#define TURN_NS 2000
#define TAKE_MAX (1u << 20)

// The far end of a connection, and what it is connected by.
struct end {
	struct tcp_conn *conn;
	struct far far;
};

struct pipe_world {
	struct pipe_world_conf conf;
	const struct pipe_control *common;
	struct lb_link *link;
	uint64_t now_ns;
	struct pool chunks;
	struct twheel *wheel;
	struct tcp_stack tcp;
	struct lb_frontend_conf frontends[N_FRONTENDS];
	struct proxy *proxy;
	struct pipe_tls *tls; // of clients; NULL = plain text
	struct tlshs_link *links[1]; // with its thread
	struct end clients[PIPE_MAX_CLIENTS], backends[PIPE_MAX_CONNS];
	bool is_secure; // clients speak it: the first ones did not
	uint32_t n_seen_conns; // of tcp, whose far end is there
	uint32_t next_client;
	uint64_t n_done, n_served;
	uint8_t taken[TAKE_MAX];
};

// What the proxy sent there: whole frames, since all that it wrote is taken at once.
static void hear(struct pipe_world *w, struct end *e, bool is_client)
{
	size_t len = pipe_take(&w->tcp, e->conn, w->taken, TAKE_MAX);
	if (is_client && w->is_secure)
		pipe_tls_hear(w->tls, w->taken, &len);
	uint64_t *n = is_client ? &w->n_done : &w->n_served;
	CHECK(far_hear(&e->far, is_client, w->taken, len, n) == len);
}

static void begin_turn(struct pipe_world *w)
{
	const struct lb_snapshot *snapshot = w->common->control.snapshot;
	struct lb_command c;
	if (w->common->slot) {
		lb_slot_quiescent();
		snapshot = lb_slot_read(w->common->slot);
	}
	w->now_ns += TURN_NS;
	proxy_begin_turn(w->proxy, snapshot, w->now_ns);
	while (spsc_read(&w->link->commands, &c))
		proxy_command(w->proxy, &c);
	twheel_advance(w->wheel, w->now_ns);
}

static void give(struct end *e)
{
	if (e->far.out_len)
		pipe_give(e->conn, e->far.out, e->far.out_len);
	e->far.out_len = 0;
}

// Connections that the proxy opened get their backend.
static void meet(struct pipe_world *w)
{
	for (; w->n_seen_conns < w->tcp.n_conns; w->n_seen_conns++) {
		struct tcp_conn *c = &w->tcp.conns[w->n_seen_conns];
		struct end *e = &w->backends[w->n_seen_conns];
		if (!c->connecting)
			continue;
		e->conn = c;
		far_hello(&e->far, false);
	}
	pipe_establish(&w->tcp);
}

// What clients have to say, and what comes of it, until they hear of it. A turn has begun.
static void round_trip(struct pipe_world *w, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++)
		give(&w->clients[i]);
	if (w->tls)
		pipe_tls_turn(w->tls);
	proxy_end_turn(w->proxy);
	begin_turn(w);
	for (uint32_t i = 0; i < w->n_seen_conns; i++) {
		struct end *e = &w->backends[i];
		if (!e->conn || (!e->conn->sendq.len && !e->far.out_len))
			continue;
		hear(w, e, false);
		give(e);
	}
	proxy_end_turn(w->proxy);
	for (uint32_t i = first; i < first + n; i++)
		hear(w, &w->clients[i], true);
}

static void come(struct pipe_world *w, struct end *e)
{
	pipe_reconnect(&w->tcp, e->conn);
	e->far.is_warm = false;
	e->far.received = 0;
	far_hello(&e->far, true);
}

// The handshake of a client that has come, up to where it may say what it has to. A turn has begun.
static void shake(struct pipe_world *w, struct end *e)
{
	size_t len;
	const uint8_t *hello = pipe_tls_hello(w->tls, &len);
	pipe_give(e->conn, hello, len);
	pipe_tls_turn(w->tls);
	proxy_end_turn(w->proxy);
	begin_turn(w);
	len = pipe_take(&w->tcp, e->conn, w->taken, TAKE_MAX);
	pipe_tls_speak(w->tls, len, e->far.out, &e->far.out_len);
}

static void leave(struct pipe_world *w, uint32_t first, uint32_t n)
{
	begin_turn(w);
	for (uint32_t i = first; i < first + n; i++) {
		w->clients[i].far.out_len = 0;
		pipe_close(&w->tcp, w->clients[i].conn);
	}
	proxy_end_turn(w->proxy);
}

void pipe_world_run(void *ctx, uint64_t n_ops)
{
	struct pipe_world *w = ctx;
	const struct pipe_world_conf *conf = &w->conf;
	uint64_t begun = w->n_done, asked = 0;
	while (asked < n_ops) {
		uint32_t first = conf->together ? 0 : w->next_client;
		uint32_t n = conf->together ? conf->n_clients : 1;
		begin_turn(w);
		for (uint32_t i = first; conf->once && i < first + n; i++)
			come(w, &w->clients[i]);
		for (uint32_t i = first; i < first + n; i++)
			for (uint32_t k = 0; k < conf->n_streams && asked < n_ops; k++, asked++)
				far_ask(&w->clients[i].far);
		if (w->is_secure)
			shake(w, &w->clients[first]);
		round_trip(w, first, n);
		if (conf->once)
			leave(w, first, n);
		w->next_client = (w->next_client + 1) % conf->n_clients;
		if (w->link->access)
			w->link->access->ring.tail = w->link->access->ring.head;
		if (w->link->trace)
			w->link->trace->ring.tail = w->link->trace->ring.head;
	}
	CHECK(w->n_done - begun == n_ops);
}

static const char *source_for(void *ctx, const struct ip_addr *dst, struct ip_addr *ret)
{
	*ret = wire_address(1, 100);
	return NULL;
}

static void new_proxy(struct pipe_world *w)
{
	for (uint32_t i = 0; i < N_FRONTENDS; i++)
		w->frontends[i] =
			(struct lb_frontend_conf){.address = wire_address(1, i + 1), .port = 80};
	struct proxy_conf conf = {.frontends = w->frontends,
		.n_frontends = 1,
		.n_workers = w->common->n_workers,
		.max_clients = PIPE_MAX_CLIENTS,
		.max_requests = 2048,
		.max_queued = 1024,
		.max_conns_per_endpoint = 4,
		.connect_timeout_ns = 20 * SECOND,
		.source_for = source_for};
	if (w->tls) {
		w->links[0] = pipe_tls_link(w->tls);
		conf.handshakes = (struct proxy_handshakes_conf){w->links, 1, 16};
	}
	struct h2_conf h2 = {.max_conns = 128,
		.max_streams = 8192,
		.max_concurrent_streams = 100,
		.stream_window = 65535,
		.conn_window = 1 << 20,
		.max_header_bytes = 16 << 10,
		.max_header_fields = 100};
	w->wheel = twheel_new(w->now_ns);
	CHECK(w->wheel && buf_pool_init(&w->chunks, 16384) == 0);
	w->tcp.chunks = &w->chunks;
	w->proxy = proxy_new(&conf, &h2, &w->tcp, w->wheel, &w->chunks, w->link);
	CHECK(w->proxy);
}

// What the simulated control thread does not listen to: it knows what the others than the first
// worker answer (tests/sim/proxy/control.h).
static void forget_events(struct pipe_world *w)
{
	struct lb_event e;
	while (w->link->worker > 0 && spsc_read(&w->link->events, &e))
		;
}

static uint32_t n_met(const struct pipe_world *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < PIPE_MAX_CONNS; i++)
		n += w->backends[i].conn && w->backends[i].far.is_warm;
	return n;
}

// Clients that come from now on have TLS.
static void secure(struct pipe_control *c, struct pipe_world *w)
{
	CHECK(w->conf.once && !w->conf.together && w->conf.n_streams == 1 && c->n_workers == 1);
	c->control.credentials[1] = pipe_tls_credential(w->tls);
	c->control.frontend_credential = 1;
	control_set_credentials(&c->control);
	w->is_secure = true;
}

static void trace(struct pipe_control *c, struct pipe_world *w, const struct lb_tracing *tracing)
{
	w->link->trace = lb_trace_new();
	c->control.tracing = *tracing;
	control_set_filters(&c->control, 0, NULL, 0, LB_NO_TIMEOUT, 0);
}

struct pipe_world *pipe_world_new(struct pipe_control *c, const struct pipe_world_conf *conf)
{
	struct pipe_world *w = calloc(1, sizeof(*w));
	CHECK(w && c->n_worlds < c->n_workers && conf->n_clients <= PIPE_MAX_CLIENTS);
	w->conf = *conf;
	w->common = c;
	w->link = c->links[c->n_worlds++];
	w->now_ns = c->wire.now_ns;
	w->link->access = conf->log || conf->tracing ? lb_access_new(conf->log) : NULL;
	if (conf->tracing)
		trace(c, w, conf->tracing);
	w->tls = conf->tls ? pipe_tls_new() : NULL;
	new_proxy(w);
	begin_turn(w); // who is accepted sees its snapshot
	for (uint32_t i = 0; i < conf->n_clients; i++) {
		w->clients[i].conn = pipe_connect(&w->tcp);
		far_hello(&w->clients[i].far, true);
	}
	// Requests, too, since they alone connect a worker to endpoints that another one's
	// connection has made READY (MC-04).
	uint64_t n_asked = 0;
	for (int i = 0; i < 32; i++) {
		control_turn(&c->control);
		begin_turn(w);
		for (uint32_t k = 0; i >= 8 && i < 24 && k < conf->n_clients; k++, n_asked++)
			far_ask(&w->clients[k].far);
		round_trip(w, 0, conf->n_clients);
		meet(w);
		forget_events(w);
	}
	CHECK(w->n_done == n_asked && n_met(w) == PIPE_BACKENDS);
	if (conf->once)
		leave(w, 0, conf->n_clients);
	if (conf->tls)
		secure(c, w);
	return w;
}
