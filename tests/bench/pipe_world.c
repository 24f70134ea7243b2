// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/pipe_world.h"

#include "dataplane/h2/frame.h"
#include "dataplane/proxy/proxy.h"
#include "lb/base/check.h"
#include "lb/pick/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/bench/pipe_tcp.h"
#include "tests/bench/pipe_tls.h"
#include "tests/sim/proxy/control.h"

#include <nghttp2/nghttp2.h>

#include <stdlib.h>

#define N_BACKENDS 4
#define BODY 64
#define TURN_NS 2000
#define TAKE_MAX (1u << 20)

// The far end of a connection.
struct far {
	struct tcp_conn *conn;
	uint32_t next_id; // client
	bool is_warm; // its HPACK table holds all that will ever be in it
	uint32_t received; // body bytes without a WINDOW_UPDATE
	uint8_t out[256 << 10]; // to be given to the proxy
	size_t out_len;
};

// Header blocks of a connection's first use, and of every later one.
struct blocks {
	uint8_t request[2][512], head[2][128], trailers[2][128];
	size_t request_len[2], head_len[2], trailers_len[2];
};

struct pipe_world {
	struct pipe_world_conf conf;
	const struct pipe_control *common;
	struct lb_link *link;
	uint64_t now_ns;
	struct pool chunks;
	struct twheel *wheel;
	struct tcp_stack tcp;
	struct proxy_frontend frontends[N_FRONTENDS];
	struct proxy *proxy;
	struct pipe_tls *tls; // of clients; NULL = plain text
	struct tlshs_link *links[1]; // with its thread
	struct far clients[PIPE_MAX_CLIENTS], backends[PIPE_MAX_CONNS];
	bool is_secure; // clients speak it: the first ones did not
	uint32_t n_seen_conns; // of tcp, whose far end is there
	uint32_t next_client;
	uint64_t n_done, n_served;
	uint8_t taken[TAKE_MAX];
};

static struct blocks blocks;

struct pipe_control {
	struct wire wire; // only its time
	struct control control;
	struct lb_shared *shared;
	struct lb_link *links[PIPE_MAX_WORKERS];
	uint32_t n_workers, n_worlds;
	struct lb_slot *slot; // NULL = nothing is published yet
};

// tests/sim/proxy/control.c takes of the simulation's wire only this, and the time.
struct ip_addr wire_address(uint32_t host, uint32_t last)
{
	return ip_from_v4(10u << 24 | host << 8 | last);
}

static nghttp2_nv pair(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
		strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static size_t deflate(nghttp2_hd_deflater *d, uint8_t *out, size_t size, nghttp2_nv *f, size_t n)
{
	ssize_t len = nghttp2_hd_deflate_hd(d, out, size, f, n);
	CHECK(len > 0);
	return (size_t)len;
}

static void make_blocks(void)
{
	nghttp2_nv request[] = {pair(":method", "POST"), pair(":scheme", "http"),
		pair(":path", "/one/helloworld.greeter.v1.Greeter/SayHello"),
		pair(":authority", "greeter.default.svc.cluster.local:50051"),
		pair("te", "trailers"), pair("content-type", "application/grpc"),
		pair("user-agent", "grpc-go/1.62.0"), pair("grpc-accept-encoding", "gzip"),
		pair("x-request-id", "5f0c5a1c3e2b4d6f"), pair("x-tenant", "blue")};
	nghttp2_nv head[] = {pair(":status", "200"), pair("content-type", "application/grpc")};
	nghttp2_nv trailers[] = {pair("grpc-status", "0")};
	nghttp2_hd_deflater *client, *backend;
	CHECK(nghttp2_hd_deflate_new(&client, 4096) == 0);
	CHECK(nghttp2_hd_deflate_new(&backend, 4096) == 0);
	struct blocks *b = &blocks;
	for (int i = 0; i < 2; i++) {
		b->request_len[i] = deflate(client, b->request[i], 512, request, 10);
		b->head_len[i] = deflate(backend, b->head[i], 128, head, 2);
		b->trailers_len[i] = deflate(backend, b->trailers[i], 128, trailers, 1);
	}
	nghttp2_hd_deflate_del(client);
	nghttp2_hd_deflate_del(backend);
}

static void put_frame(
	struct far *f, uint8_t type, uint8_t flags, uint32_t id, const void *payload, size_t len)
{
	CHECK(f->out_len + H2_FRAME_HEAD + len <= sizeof(f->out));
	uint8_t *p = f->out + f->out_len;
	h2_frame_pack(p, &(struct h2_frame){
				 .length = (uint32_t)len, .type = type, .flags = flags, .id = id});
	if (len)
		memcpy(p + H2_FRAME_HEAD, payload, len);
	f->out_len += H2_FRAME_HEAD + len;
}

static void hello(struct far *f, bool is_client)
{
	if (is_client) {
		memcpy(f->out, H2_PREFACE, H2_PREFACE_LEN);
		f->out_len = H2_PREFACE_LEN;
		f->next_id = 1;
	}
	put_frame(f, H2_SETTINGS, 0, 0, NULL, 0);
	put_frame(f, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0);
}

static const uint8_t body[BODY] = {[4] = BODY - 5}; // one message of gRPC's

static void ask(struct far *f)
{
	const struct blocks *b = &blocks;
	uint32_t id = f->next_id;
	f->next_id += 2;
	put_frame(f, H2_HEADERS, H2_FLAG_END_HEADERS, id, b->request[f->is_warm],
		b->request_len[f->is_warm]);
	put_frame(f, H2_DATA, H2_FLAG_END_STREAM, id, body, BODY);
	f->is_warm = true;
}

static void answer(struct far *f, uint32_t id)
{
	const struct blocks *b = &blocks;
	put_frame(f, H2_HEADERS, H2_FLAG_END_HEADERS, id, b->head[f->is_warm],
		b->head_len[f->is_warm]);
	put_frame(f, H2_DATA, 0, id, body, BODY);
	put_frame(f, H2_HEADERS, H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM, id,
		b->trailers[f->is_warm], b->trailers_len[f->is_warm]);
	f->is_warm = true;
}

// What the proxy sent there: whole frames, since all that it wrote is taken at once.
static void read_frames(struct pipe_world *w, struct far *f, bool is_client)
{
	size_t len = pipe_take(&w->tcp, f->conn, w->taken, TAKE_MAX);
	const uint8_t *p = w->taken;
	if (is_client && w->is_secure)
		pipe_tls_hear(w->tls, w->taken, &len);
	if (!is_client && len >= H2_PREFACE_LEN && memcmp(p, H2_PREFACE, H2_PREFACE_LEN) == 0) {
		p += H2_PREFACE_LEN;
		len -= H2_PREFACE_LEN;
	}
	while (len) {
		CHECK(len >= H2_FRAME_HEAD);
		struct h2_frame frame = h2_frame_unpack(p);
		size_t whole = H2_FRAME_HEAD + frame.length;
		CHECK(whole <= len && frame.type != H2_RST_STREAM && frame.type != H2_GOAWAY);
		bool end = frame.flags & H2_FLAG_END_STREAM;
		if (frame.type == H2_DATA)
			f->received += frame.length;
		if (frame.type == H2_DATA && end && !is_client) {
			answer(f, frame.id);
			w->n_served++;
		}
		w->n_done += is_client && frame.type == H2_HEADERS && end;
		p += whole;
		len -= whole;
	}
	if (f->received > 16384) {
		uint8_t credit[4];
		h2_write_u32(credit, f->received);
		put_frame(f, H2_WINDOW_UPDATE, 0, 0, credit, 4);
		f->received = 0;
	}
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

static void give(struct far *f)
{
	if (f->out_len)
		pipe_give(f->conn, f->out, f->out_len);
	f->out_len = 0;
}

// Connections that the proxy opened get their backend.
static void meet(struct pipe_world *w)
{
	for (; w->n_seen_conns < w->tcp.n_conns; w->n_seen_conns++) {
		struct tcp_conn *c = &w->tcp.conns[w->n_seen_conns];
		struct far *f = &w->backends[w->n_seen_conns];
		if (!c->connecting)
			continue;
		f->conn = c;
		hello(f, false);
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
		struct far *f = &w->backends[i];
		if (!f->conn || (!f->conn->sendq.len && !f->out_len))
			continue;
		read_frames(w, f, false);
		give(f);
	}
	proxy_end_turn(w->proxy);
	for (uint32_t i = first; i < first + n; i++)
		read_frames(w, &w->clients[i], true);
}

static void come(struct pipe_world *w, struct far *f)
{
	pipe_reconnect(&w->tcp, f->conn);
	f->is_warm = false;
	f->received = 0;
	hello(f, true);
}

// The handshake of a client that has come, up to where it may say what it has to. A turn has begun.
static void shake(struct pipe_world *w, struct far *f)
{
	size_t len;
	const uint8_t *hello = pipe_tls_hello(w->tls, &len);
	pipe_give(f->conn, hello, len);
	pipe_tls_turn(w->tls);
	proxy_end_turn(w->proxy);
	begin_turn(w);
	len = pipe_take(&w->tcp, f->conn, w->taken, TAKE_MAX);
	pipe_tls_speak(w->tls, len, f->out, &f->out_len);
}

static void leave(struct pipe_world *w, uint32_t first, uint32_t n)
{
	begin_turn(w);
	for (uint32_t i = first; i < first + n; i++) {
		w->clients[i].out_len = 0;
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
				ask(&w->clients[i]);
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
			(struct proxy_frontend){.address = wire_address(1, i + 1), .port = 80};
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

struct pipe_control *pipe_control_new(uint32_t n_workers)
{
	struct pipe_control *c = calloc(1, sizeof(*c));
	CHECK(c && n_workers <= PIPE_MAX_WORKERS);
	if (!blocks.request_len[0])
		make_blocks();
	c->n_workers = n_workers;
	c->shared = lb_shared_new();
	CHECK(c->shared);
	for (uint32_t i = 0; i < n_workers; i++) {
		c->links[i] = lb_link_new(i, (int)i, c->shared);
		CHECK(c->links[i]);
	}
	c->wire.now_ns = SECOND;
	rand_init(&c->wire.rand, 1);
	control_init(&c->control, &c->wire, c->links[0], n_workers);
	control_set_endpoints(&c->control, 0, 2, (1u << N_BACKENDS) - 1);
	return c;
}

void pipe_control_publish(struct pipe_control *c)
{
	struct lb_snapshot *copy = lb_snapshot_copy(c->control.snapshot);
	CHECK(copy && !c->slot);
	c->slot = lb_slot_new(copy);
	CHECK(c->slot);
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
		n += w->backends[i].conn && w->backends[i].is_warm;
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
		hello(&w->clients[i], true);
	}
	// Requests, too, since they alone connect a worker to endpoints that another one's
	// connection has made READY (MC-04).
	uint64_t n_asked = 0;
	for (int i = 0; i < 32; i++) {
		control_turn(&c->control);
		begin_turn(w);
		for (uint32_t k = 0; i >= 8 && i < 24 && k < conf->n_clients; k++, n_asked++)
			ask(&w->clients[k]);
		round_trip(w, 0, conf->n_clients);
		meet(w);
		forget_events(w);
	}
	CHECK(w->n_done == n_asked && n_met(w) == N_BACKENDS);
	if (conf->once)
		leave(w, 0, conf->n_clients);
	if (conf->tls)
		secure(c, w);
	return w;
}
