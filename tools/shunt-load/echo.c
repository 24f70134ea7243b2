// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/echo.h"

#include "lb/base/container_of.h"
#include "lb/base/grpc_status.h"
#include "lb/base/pool.h"
#include "tools/shunt-load/body.h"
#include "tools/shunt-load/conn_h2.h"
#include "tools/shunt-load/plan.h"
#include "tools/shunt-load/seen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define MAX_REQUESTS 65536

struct echo_conn {
	struct conn conn; // first
	struct echo *echo;
	LIST_ENTRY(echo_conn) link;
};

struct job {
	struct echo *echo;
	struct h2_stream *stream;
	struct body_in in;
	struct body_out out;
	bool is_grpc;
	bool is_head; // wants no body
	bool is_ours; // of shunt-load
	bool is_begun; // the answer's HEADERS are out
	bool is_ended; // the whole answer is queued
	enum echo_fault fault;
};

struct echo {
	struct echo_conf conf;
	struct side side;
	struct pool conns, jobs;
	LIST_HEAD(, echo_conn) all;
	uint32_t tag; // of the requests in `seen`; 0 = none
	struct seen seen;
	uint64_t now_ns;
	uint64_t last_id;
	uint64_t until_fault;
	struct echo_result result;
};

static const char *const fault_names[ECHO_N_FAULTS] = {
	"none", "alter", "cut", "swap", "status", "reset", "silent"};

const char *echo_fault_name(enum echo_fault f)
{
	return fault_names[f];
}

static void forget(struct job *j)
{
	h2_stream_set_user(j->stream, NULL);
	pool_put(&j->echo->jobs, j);
}

// Something can't be sent for want of memory, or must not.
static void give_up(struct job *j, enum h2_error code)
{
	struct echo *e = j->echo;
	struct h2_stream *s = j->stream;
	e->result.aborted++;
	forget(j);
	h2_stream_reset(s, code);
}

// The head of the answer; without a body it is all of it.
static bool send_head(struct job *j, uint16_t status, int grpc_status, int64_t length)
{
	char length_text[24], grpc_text[12];
	struct field fields[3] = {{.name = STR("content-type"),
		.value = j->is_grpc ? STR("application/grpc") : STR("application/octet-stream")}};
	size_t n = 1;
	if (length >= 0 && !j->is_grpc) {
		int len = snprintf(length_text, sizeof(length_text), "%lld", (long long)length);
		fields[n++] = (struct field){
			.name = STR("content-length"), .value = {length_text, (size_t)len}};
	}
	if (grpc_status >= 0 && j->is_grpc) {
		int len = snprintf(grpc_text, sizeof(grpc_text), "%d", grpc_status);
		fields[n++] = (struct field){
			.name = STR("grpc-status"), .value = {grpc_text, (size_t)len}};
	}
	struct h2_message m = {.kind = H2_RESPONSE,
		.status = status,
		.end_stream = grpc_status >= 0 || (length == 0 && !j->is_grpc),
		.content_length = -1,
		.fields = fields,
		.n_fields = n};
	j->is_begun = true;
	j->is_ended = m.end_stream;
	return h2_stream_send_message(j->stream, &m);
}

static bool send_trailers(struct job *j)
{
	struct field f = {.name = STR("grpc-status"), .value = STR("0")};
	struct h2_message m = {.kind = H2_TRAILERS, .fields = &f, .n_fields = 1};
	j->is_ended = true;
	return h2_stream_send_message(j->stream, &m);
}

// A body of our own making goes on. False = out of memory.
static bool push(struct job *j)
{
	if (j->is_ended)
		return true;
	if (!body_out_push(&j->out, j->stream))
		return false;
	if (!body_out_done(&j->out))
		return true;
	j->is_ended = true;
	return !j->is_grpc || send_trailers(j);
}

static bool send_made(struct job *j, uint64_t id, uint64_t size)
{
	j->out = (struct body_out){
		.id = id, .size = size, .is_grpc = j->is_grpc, .ends = !j->is_grpc};
	return send_head(j, 200, -1, (int64_t)size) && push(j);
}

// The one answer of a spoiled size is small enough to go at once.
static bool send_spoiled(struct job *j, uint64_t id, uint64_t size)
{
	uint8_t bytes[BODY_GRPC_PREFIX + 4096];
	size_t n = j->is_grpc ? BODY_GRPC_PREFIX : 0;
	size = size < 4096 ? size : 4096;
	size = size ? size : 1;
	for (size_t i = 0; i < n; i++)
		bytes[i] = i == 3 ? (uint8_t)(size >> 8) : i == 4 ? (uint8_t)size : 0;
	body_fill(id, 0, bytes + n, size);
	n += size;
	if (j->fault == ECHO_FAULT_ALTER)
		bytes[n - 1] ^= 1;
	else if (size > 1)
		n--;
	if (!send_head(j, 200, -1, -1) || !h2_stream_send_data(j->stream, bytes, n, !j->is_grpc))
		return false;
	j->is_ended = true;
	return !j->is_grpc || send_trailers(j);
}

// An answer to shunt-load, or to who sent nothing that could come back.
static bool answer_made(struct job *j, uint64_t id, uint64_t size)
{
	struct echo *e = j->echo;
	uint64_t before = e->last_id;
	e->last_id = id;
	switch (j->fault) {
	case ECHO_FAULT_ALTER:
	case ECHO_FAULT_CUT:
		return send_spoiled(j, id, size);
	case ECHO_FAULT_SWAP:
		return send_made(j, before, size);
	default:
		return send_made(j, id, size);
	}
}

static bool answer_ours(struct job *j)
{
	struct echo *e = j->echo;
	uint64_t size = j->in.is_grpc ? j->in.said : j->in.at;
	if (!j->in.id_known || !body_in_is(&j->in, size)) {
		e->result.altered++;
		return send_head(j, j->is_grpc ? 200 : 400, GRPC_DATA_LOSS, -1);
	}
	if (e->tag && body_id_tag(j->in.id) == e->tag)
		e->result.doubled += seen_before(&e->seen, body_id_seq(j->in.id));
	return answer_made(j, j->in.id, j->out.size);
}

// The request is there as a whole.
static void end_request(struct job *j)
{
	struct echo *e = j->echo;
	bool ok = true;
	if (j->fault == ECHO_FAULT_SILENT || j->is_ended)
		return;
	if (j->fault == ECHO_FAULT_RESET) {
		give_up(j, H2_INTERNAL_ERROR);
		return;
	}
	if (j->fault == ECHO_FAULT_STATUS && !j->is_begun)
		ok = send_head(j, j->is_grpc ? 200 : 503, GRPC_UNAVAILABLE, -1);
	else if (j->is_head)
		ok = send_head(j, 200, 0, e->conf.answer_size);
	else if (j->is_ours)
		ok = answer_ours(j);
	else if (j->is_begun && j->is_grpc)
		ok = send_trailers(j);
	else if (j->is_begun) {
		j->is_ended = true;
		ok = h2_stream_send_data(j->stream, NULL, 0, true);
	} else if (j->is_grpc)
		ok = send_head(j, 200, 0, -1);
	else
		ok = answer_made(j, 0, e->conf.answer_size);
	if (!ok) {
		e->result.no_memory++;
		give_up(j, H2_REFUSED_STREAM);
	}
}

static bool read_hex(struct str s, uint64_t *ret)
{
	uint64_t id = 0;
	if (s.len != 16)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.p[i];
		if (c >= '0' && c <= '9')
			id = id << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			id = id << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	*ret = id;
	return true;
}

static void read_fields(struct job *j, const struct h2_message *m)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		if (str_eq(f->name, STR(PLAN_ANSWER_FIELD)))
			j->is_ours = str_number(f->value, UINT32_MAX, &j->out.size);
		else if (str_eq(f->name, STR(PLAN_ID_FIELD)))
			j->in.id_known = read_hex(f->value, &j->in.id);
	}
}

static enum echo_fault draw_fault(struct echo *e)
{
	if (!e->conf.fault_every || ++e->until_fault < e->conf.fault_every)
		return ECHO_FAULT_NONE;
	e->until_fault = 0;
	e->result.faults++;
	return e->conf.fault;
}

static void on_message(struct h2_conn *h2, struct h2_stream *s, const struct h2_message *m)
{
	struct echo *e = ((struct echo_conn *)h2_conn_user(h2))->echo;
	struct job *j = h2_stream_user(s);
	if (m->kind != H2_REQUEST) { // trailers
		if (j && m->end_stream)
			end_request(j);
		return;
	}
	e->result.requests++;
	j = pool_take(&e->jobs);
	if (!j) {
		e->result.no_memory++;
		h2_stream_reset(s, H2_REFUSED_STREAM);
		return;
	}
	*j = (struct job){.echo = e,
		.stream = s,
		.is_grpc = m->is_grpc,
		.is_head = str_eq(m->method, STR("HEAD"))};
	j->in.is_grpc = m->is_grpc;
	h2_stream_set_user(s, j);
	read_fields(j, m);
	j->fault = draw_fault(e);
	if (m->bad) {
		if (!send_head(j, m->bad, GRPC_INTERNAL, -1))
			give_up(j, H2_INTERNAL_ERROR);
	} else if (m->end_stream) {
		end_request(j);
	}
}

// Somebody else's bytes go back as they come; the window opens again as they leave.
static bool send_back(struct job *j, const uint8_t *p, size_t len)
{
	if (len == 0)
		return true;
	if (!j->is_begun && !send_head(j, 200, -1, -1))
		return false;
	return h2_stream_send_data(j->stream, p, len, false);
}

static void on_data(
	struct h2_conn *h2, struct h2_stream *s, const uint8_t *p, size_t len, bool end_stream)
{
	struct job *j = h2_stream_user(s);
	if (!j || j->is_ours || j->is_ended || j->is_head || j->fault != ECHO_FAULT_NONE) {
		h2_stream_consumed(s, len);
		if (j && j->is_ours)
			body_in_feed(&j->in, p, len);
	} else if (!send_back(j, p, len)) {
		j->echo->result.no_memory++;
		give_up(j, H2_INTERNAL_ERROR);
		return;
	}
	if (j && end_stream)
		end_request(j);
}

static void on_sent(struct h2_conn *h2, struct h2_stream *s, size_t n)
{
	struct job *j = h2_stream_user(s);
	if (!j)
		return;
	if (j->out.size == 0 && !j->is_ours)
		h2_stream_consumed(s, n);
	else if (!push(j))
		give_up(j, H2_INTERNAL_ERROR);
}

static void on_closed(
	struct h2_conn *h2, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	struct job *j = h2_stream_user(s);
	if (!j)
		return;
	if (j->is_ended)
		j->echo->result.answered++;
	else
		j->echo->result.aborted++;
	pool_put(&j->echo->jobs, j);
}

static const struct h2_events events = {
	.on_message = on_message, .on_data = on_data, .on_sent = on_sent, .on_closed = on_closed};

static void on_over(struct conn *conn, const char *why)
{
	CONTAINER_OF(conn, struct echo_conn, conn)->echo->result.open--;
}

static void on_gone(struct conn *conn)
{
	struct echo_conn *k = CONTAINER_OF(conn, struct echo_conn, conn);
	LIST_REMOVE(k, link);
	pool_put(&k->echo->conns, k);
}

static const struct conn_ops conn_ops = {.over = on_over, .gone = on_gone};

static const struct tcp_conn_ops *accept_one(void *arg, struct tcp_conn *tcp, void **ret_user)
{
	struct echo *e = arg;
	struct echo_conn *k = pool_take(&e->conns);
	const struct tcp_conn_ops *ops = k ? conn_accept(&k->conn, &e->side, &conn_ops, tcp) : NULL;
	if (!ops) {
		e->result.refused++;
		pool_put(&e->conns, k);
		return NULL;
	}
	k->echo = e;
	LIST_INSERT_HEAD(&e->all, k, link);
	e->result.accepted++;
	e->result.open++;
	*ret_user = k;
	return ops;
}

static bool make(struct echo *e)
{
	const struct echo_conf *conf = &e->conf;
	struct h2_conf h2 = {
		.max_conns = conf->max_conns,
		.max_streams = MAX_REQUESTS,
		.max_concurrent_streams = conf->max_streams,
		.stream_window = 256 * 1024,
		.conn_window = 4 * 1024 * 1024,
		.max_header_bytes = 64 * 1024,
		.max_header_fields = 256,
		.now_ns = &e->now_ns,
		.seed = conf->seed,
	};
	e->side = (struct side){.tcp = conf->tcp,
		.wheel = conf->wheel,
		.chunks = conf->chunks,
		.protocol = &conn_h2_protocol,
		.context = conn_h2_new(&h2, H2_SERVER, &events, conf->chunks)};
	if (!e->side.context || !side_init(&e->side, conf->tls, conf->max_conns, &e->now_ns) ||
		pool_init(&e->conns, sizeof(struct echo_conn), conf->max_conns) != 0 ||
		pool_init(&e->jobs, sizeof(struct job), MAX_REQUESTS) != 0)
		return false;
	for (uint32_t i = 0; i < conf->n_addresses; i++)
		if (tcp_listen(conf->tcp, &conf->addresses[i], conf->port, accept_one, e) != 0)
			return false;
	return true;
}

struct echo *echo_new(const struct echo_conf *conf)
{
	struct echo *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->conf = *conf;
	if (make(e))
		return e;
	echo_free(e);
	return NULL;
}

void echo_free(struct echo *e)
{
	if (!e)
		return;
	for (struct echo_conn *k = LIST_FIRST(&e->all); k; k = LIST_NEXT(k, link))
		if (k->conn.tcp)
			conn_abort(&k->conn, "the end");
	side_fini(&e->side);
	conn_h2_free(e->side.context);
	pool_fini(&e->conns);
	pool_fini(&e->jobs);
	free(e);
}

void echo_watch(struct echo *e, uint32_t tag)
{
	e->tag = tag;
	memset(&e->seen, 0, sizeof(e->seen));
}

void echo_close(struct echo *e)
{
	for (struct echo_conn *k = LIST_FIRST(&e->all); k; k = LIST_NEXT(k, link)) {
		if (!k->conn.session)
			continue;
		h2_conn_drain_end(k->conn.session, H2_NO_ERROR);
		conn_pump(&k->conn);
		conn_close(&k->conn, "the end");
	}
}

void echo_heal(struct echo *e)
{
	e->conf.fault_every = 0;
}

void echo_begin_turn(struct echo *e, uint64_t now_ns)
{
	e->now_ns = now_ns;
}

bool echo_end_turn(struct echo *e)
{
	return side_pump(&e->side);
}

const struct echo_result *echo_result(const struct echo *e)
{
	return &e->result;
}
