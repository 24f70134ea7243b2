// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/load/http1_peer.h"

#include "dataplane/h1/h1.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tools/shunt-load/body.h"
#include "tools/shunt-load/plan.h"
#include "tools/shunt-load/seen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define PIECE 4096
// Less than a segment needs for its way: what comes of it crosses the next request.
#define SOON_NS (100 * NS_PER_US)

struct peer_conn {
	struct http1_peer *peer;
	LIST_ENTRY(peer_conn) link;
	struct tcp_conn *tcp;
	struct h1_conn *h1;
	struct twheel_timer soon;
	struct body_in in; // of the request
	uint64_t size, at; // of the answer's body
	uint64_t id; // that the answer is made of
	enum peer_fault fault;
	bool is_due; // the request is to be answered
	bool answering;
	bool shut; // FIN was sent: nothing is read any more
};

struct http1_peer {
	struct http1_peer_conf conf;
	struct h1_context *h1;
	LIST_HEAD(, peer_conn) all;
	struct seen seen;
	uint64_t last_id, until_fault;
	struct http1_peer_result result;
};

static void shut(struct peer_conn *k)
{
	if (!k->shut)
		tcp_conn_shutdown(k->tcp);
	k->shut = true;
}

static void drop(struct peer_conn *k)
{
	twheel_cancel(k->peer->conf.wheel, &k->soon);
	h1_conn_free(k->h1);
	LIST_REMOVE(k, link);
	free(k);
}

static void write_raw(struct peer_conn *k, struct str text)
{
	CHECK(buf_append(tcp_conn_sendq(k->tcp), k->peer->conf.chunks, text.p, text.len));
	tcp_conn_push(k->tcp);
}

static const struct str surplus = STR("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");

static void on_soon(struct twheel_timer *t)
{
	struct peer_conn *k = CONTAINER_OF(t, struct peer_conn, soon);
	if (k->fault == PEER_FAULT_LATE && !k->shut)
		write_raw(k, surplus);
	else
		shut(k);
}

static void soon(struct peer_conn *k)
{
	struct twheel *wheel = k->peer->conf.wheel;
	k->soon.fire = on_soon;
	twheel_arm(wheel, &k->soon, twheel_now(wheel) + SOON_NS);
}

// Whatever follows a whole answer.
static void end_answer(struct peer_conn *k)
{
	k->answering = false;
	CHECK(h1_conn_send_end(k->h1, NULL));
	if (k->fault == PEER_FAULT_TWICE)
		write_raw(k, surplus);
	else if (k->fault == PEER_FAULT_LATE || k->fault == PEER_FAULT_HANG_UP)
		soon(k);
	if (h1_conn_closes(k->h1))
		shut(k);
}

static void pump(struct peer_conn *k)
{
	uint8_t piece[PIECE];
	uint64_t until = k->fault == PEER_FAULT_CUT ? k->size / 2 : k->size;
	size_t room;
	while (k->at < until && (room = tcp_conn_send_room(k->tcp)) > 0) {
		size_t n = until - k->at < PIECE ? (size_t)(until - k->at) : PIECE;
		n = n < room ? n : room;
		body_fill(k->id, k->at, piece, n);
		k->at += n;
		if (k->at == k->size && k->fault == PEER_FAULT_ALTER)
			piece[n - 1] ^= 1;
		CHECK(h1_conn_send_data(k->h1, piece, n));
	}
	tcp_conn_push(k->tcp);
	if (k->at < until)
		return;
	if (k->fault == PEER_FAULT_CUT)
		shut(k);
	else
		end_answer(k);
}

static void send_head(struct peer_conn *k, uint16_t status)
{
	bool chunked = k->peer->conf.chunked;
	const struct h1_message m = {.kind = H1_RESPONSE,
		.status = status,
		.content_length = chunked ? -1 : (int64_t)k->size};
	if (k->fault == PEER_FAULT_CLOSE)
		h1_conn_drain(k->h1);
	CHECK(h1_conn_send_message(k->h1, &m));
	k->answering = true;
	pump(k);
}

static void send_unframed(struct peer_conn *k)
{
	uint8_t body[PIECE];
	CHECK(k->size <= PIECE);
	body_fill(k->id, 0, body, k->size);
	write_raw(k, STR("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"));
	write_raw(k, (struct str){(const char *)body, k->size});
	shut(k);
}

static void take(struct peer_conn *k)
{
	struct http1_peer *p = k->peer;
	p->result.requests++;
	p->result.altered += !k->in.id_known || !body_in_is(&k->in, k->in.at);
	p->result.doubled += seen_before(&p->seen, body_id_seq(k->in.id));
	k->id = k->fault == PEER_FAULT_SWAP ? p->last_id : k->in.id;
	p->last_id = k->in.id;
}

// Not inside the parser's callbacks, which must not end it.
static void answer(struct peer_conn *k)
{
	k->is_due = false;
	if (k->fault != PEER_FAULT_EARLY)
		take(k);
	k->at = 0;
	k->size -= k->fault == PEER_FAULT_SHORT;
	switch (k->fault) {
	case PEER_FAULT_SILENT:
		return;
	case PEER_FAULT_RESET:
		tcp_conn_abort(k->tcp);
		drop(k);
		return;
	case PEER_FAULT_LEAVE:
		shut(k);
		return;
	case PEER_FAULT_UNFRAMED:
		send_unframed(k);
		return;
	default:
		send_head(k,
			k->fault == PEER_FAULT_STATUS || k->fault == PEER_FAULT_EARLY ? 503 : 200);
	}
}

static void read_fields(struct peer_conn *k, const struct h1_message *m)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		char text[17] = "";
		if (str_eq(f->name, STR(PLAN_ANSWER_FIELD)))
			CHECK(str_number(f->value, UINT32_MAX, &k->size));
		if (!str_eq(f->name, STR(PLAN_ID_FIELD)))
			continue;
		CHECK(f->value.len == 16);
		memcpy(text, f->value.p, 16);
		k->in.id = strtoull(text, NULL, 16);
		k->in.id_known = true;
	}
}

static void on_message(struct h1_conn *h1, const struct h1_message *m)
{
	struct peer_conn *k = h1_conn_user(h1);
	struct http1_peer *p = k->peer;
	CHECK(m->kind == H1_REQUEST);
	k->in = (struct body_in){0};
	k->fault = PEER_FAULT_NONE;
	read_fields(k, m);
	if (p->conf.fault_every && ++p->until_fault == p->conf.fault_every) {
		p->until_fault = 0;
		p->result.faults++;
		k->fault = p->conf.fault;
	}
	k->is_due = m->end_stream || k->fault == PEER_FAULT_EARLY;
}

static void on_body(struct h1_conn *h1, const uint8_t *data, size_t len, bool end_stream)
{
	struct peer_conn *k = h1_conn_user(h1);
	body_in_feed(&k->in, data, len);
	k->is_due = end_stream;
}

static const struct h1_events events = {.on_message = on_message, .on_data = on_body};

static size_t on_data(struct tcp_conn *tcp, void *user, const uint8_t *data, size_t len)
{
	struct peer_conn *k = user;
	size_t at = 0;
	uint16_t status;
	// In steps: an early answer goes out before the body is read.
	while (at < len && !k->shut) {
		size_t n = h1_conn_step(k->h1, data + at, len - at);
		CHECK(n && h1_conn_failed(k->h1, &status) == H1_WELL_FORMED);
		at += n;
		if (k->is_due && k->fault == PEER_FAULT_RESET) {
			answer(k); // the last that is seen of it
			return len;
		}
		if (k->is_due)
			answer(k);
	}
	return len;
}

static void on_send_room(struct tcp_conn *tcp, void *user)
{
	struct peer_conn *k = user;
	if (k->answering && !k->shut)
		pump(k);
}

static void on_eof(struct tcp_conn *tcp, void *user)
{
	shut(user);
}

static void on_closed(struct tcp_conn *tcp, void *user, enum tcp_close_reason reason)
{
	drop(user);
}

static const struct tcp_conn_ops ops = {
	.on_data = on_data, .on_send_room = on_send_room, .on_eof = on_eof, .on_closed = on_closed};

static const struct tcp_conn_ops *accept_one(void *arg, struct tcp_conn *tcp, void **ret_user)
{
	struct http1_peer *p = arg;
	struct peer_conn *k = calloc(1, sizeof(*k));
	CHECK(k);
	*k = (struct peer_conn){.peer = p, .tcp = tcp};
	k->h1 = h1_conn_new(p->h1, &events, tcp_conn_sendq(tcp), STR("http"), k);
	CHECK(k->h1);
	LIST_INSERT_HEAD(&p->all, k, link);
	*ret_user = k;
	return &ops;
}

struct http1_peer *http1_peer_new(const struct http1_peer_conf *conf)
{
	const struct h1_conf h1 = {
		.max_conns = conf->max_conns, .max_header_bytes = 16384, .max_header_fields = 100};
	struct http1_peer *p = calloc(1, sizeof(*p));
	CHECK(p);
	p->conf = *conf;
	p->h1 = h1_context_new(&h1, conf->chunks);
	CHECK(p->h1 && tcp_listen(conf->tcp, conf->address, conf->port, accept_one, p) == 0);
	return p;
}

void http1_peer_free(struct http1_peer *p)
{
	if (!p)
		return;
	while (!LIST_EMPTY(&p->all)) {
		struct peer_conn *k = LIST_FIRST(&p->all);
		tcp_conn_abort(k->tcp);
		drop(k);
	}
	h1_context_free(p->h1);
	free(p);
}

const struct http1_peer_result *http1_peer_result(const struct http1_peer *p)
{
	return &p->result;
}
