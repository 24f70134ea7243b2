// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/h2/h2_peer.h"

#include "lb/base/time.h"

const char *const get_request[] = {
	":method", "GET", ":scheme", "http", ":authority", "a.test", ":path", "/", NULL};
const char *const ok_response[] = {":status", "200", NULL};

static const char *const error_names[] = {"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR",
	"FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
	"REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
	"INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"};

static const char *error_name(uint32_t code)
{
	return code < 14 ? error_names[code] : "?";
}

__attribute__((format(printf, 2, 3))) static void say(struct peer *p, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(p->log + p->log_len, sizeof(p->log) - p->log_len, format, args);
	va_end(args);
	assert_true(n >= 0 && (size_t)n < sizeof(p->log) - p->log_len);
	p->log_len += (size_t)n;
}

void peer_clear_log(struct peer *p)
{
	p->log_len = 0;
	p->log[0] = '\0';
}

struct peer_stream *peer_stream_of(struct peer *p, uint32_t id)
{
	for (size_t i = 0; i < p->n_streams; i++)
		if (p->streams[i].id == id)
			return &p->streams[i];
	return NULL;
}

struct peer_stream *peer_add_stream(struct peer *p, struct h2_stream *s)
{
	assert_true(p->n_streams < PEER_MAX_STREAMS);
	struct peer_stream *ps = &p->streams[p->n_streams++];
	free(ps->body);
	*ps = (struct peer_stream){.stream = s, .id = h2_stream_id(s)};
	return ps;
}

static void on_message(struct h2_conn *c, struct h2_stream *s, const struct h2_message *m)
{
	static const char *const kinds[] = {"request", "informational", "response", "trailers"};
	struct peer *p = h2_conn_user(c);
	say(p, "%s(%u", kinds[m->kind], h2_stream_id(s));
	if (m->kind == H2_REQUEST) {
		say(p, " %.*s %.*s %.*s %.*s", (int)m->method.len, m->method.p, (int)m->scheme.len,
			m->scheme.p, (int)m->authority.len, m->authority.p, (int)m->path.len,
			m->path.p);
		peer_add_stream(p, s);
	}
	if (m->status)
		say(p, " %u", m->status);
	if (m->bad)
		say(p, " bad=%u", m->bad);
	if (m->is_grpc)
		say(p, " grpc");
	if (m->content_length >= 0)
		say(p, " length=%lld", (long long)m->content_length);
	for (size_t i = 0; i < m->n_fields; i++)
		say(p, " %.*s=%.*s%s", (int)m->fields[i].name.len, m->fields[i].name.p,
			(int)m->fields[i].value.len, m->fields[i].value.p,
			m->fields[i].never_index ? "!" : "");
	say(p, "%s) ", m->end_stream ? " end" : "");
	if (m->end_stream)
		peer_stream_of(p, h2_stream_id(s))->got_end = true;
	if (p->on_message)
		p->on_message(p, s, m);
}

static void on_data(
	struct h2_conn *c, struct h2_stream *s, const uint8_t *data, size_t len, bool end_stream)
{
	struct peer *p = h2_conn_user(c);
	struct peer_stream *ps = peer_stream_of(p, h2_stream_id(s));
	assert_non_null(ps);
	assert_false(ps->got_end);
	ps->body = realloc(ps->body, ps->received + len + 1);
	if (len)
		memcpy(ps->body + ps->received, data, len);
	ps->received += len;
	ps->body[ps->received] = '\0';
	ps->got_end = end_stream;
	if (p->log_data)
		say(p, "data(%u %zu%s) ", h2_stream_id(s), len, end_stream ? " end" : "");
	if (p->consume)
		h2_stream_consumed(s, len);
	if (p->on_data)
		p->on_data(p, s, data, len, end_stream);
}

static void on_sent(struct h2_conn *c, struct h2_stream *s, size_t n)
{
	struct peer *p = h2_conn_user(c);
	struct peer_stream *ps = peer_stream_of(p, h2_stream_id(s));
	if (ps)
		ps->sent += n;
	if (p->on_sent)
		p->on_sent(p, s, n);
}

static void on_closed(
	struct h2_conn *c, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	struct peer *p = h2_conn_user(c);
	say(p, "closed(%u %s%s%s) ", h2_stream_id(s), error_name(code), by_peer ? " peer" : "",
		unprocessed ? " unprocessed" : "");
	struct peer_stream *ps = peer_stream_of(p, h2_stream_id(s));
	if (ps) {
		assert_false(ps->closed);
		ps->closed = true;
		ps->stream = NULL;
		ps->code = code;
		ps->by_peer = by_peer;
		ps->unprocessed = unprocessed;
	}
	if (p->on_closed)
		p->on_closed(p, s);
}

static void on_settings(struct h2_conn *c, uint32_t max_concurrent_streams)
{
	say(h2_conn_user(c), "settings(%u) ", max_concurrent_streams);
}

static void on_goaway(struct h2_conn *c, uint32_t last_id, enum h2_error code)
{
	say(h2_conn_user(c), "goaway(%u %s) ", last_id, error_name(code));
}

static uint64_t round_trip_ns(const struct h2_conn *c)
{
	const struct peer *p = h2_conn_user(c);
	return p->round_trip_ns;
}

static void on_window(struct h2_conn *c, struct h2_stream *s, bool is_short)
{
	struct peer *p = h2_conn_user(c);
	if (p->on_window)
		p->on_window(p, s, is_short);
}

static const struct h2_events events = {
	on_message, on_data, on_sent, on_closed, on_settings, on_goaway, round_trip_ns, on_window};

struct h2_conf peer_conf(void)
{
	return (struct h2_conf){
		.max_conns = 4,
		.max_streams = 256,
		.max_concurrent_streams = 100,
		.stream_window = 65535,
		.conn_window = 65535,
		.max_header_bytes = 16384,
		.max_header_fields = 100,
		.seed = 7,
	};
}

void peer_init(struct peer *p, struct pool *chunks, const struct h2_conf *conf)
{
	*p = (struct peer){.chunks = chunks, .conf = *conf, .consume = true, .log_data = true};
	p->now_ns = NS_PER_SECOND;
	p->conf.now_ns = &p->now_ns;
	p->ctx = h2_context_new(&p->conf, chunks);
	assert_non_null(p->ctx);
}

struct h2_conn *peer_connect(struct peer *p, enum h2_role role)
{
	p->conn = h2_conn_new(p->ctx, role, &events, &p->out, p);
	return p->conn;
}

void peer_disconnect(struct peer *p, enum h2_error code)
{
	h2_conn_free(p->conn, code);
	p->conn = NULL;
	buf_clear(&p->out, p->chunks);
}

void peer_fini(struct peer *p)
{
	peer_disconnect(p, H2_NO_ERROR);
	h2_context_free(p->ctx);
	for (size_t i = 0; i < PEER_MAX_STREAMS; i++)
		free(p->streams[i].body);
}

uint64_t peer_counter(const struct peer *p, const char *name)
{
	struct counter_set set = h2_context_counters(p->ctx);
	for (uint32_t i = 0; i < set.n; i++)
		if (strcmp(set.names[i], name) == 0)
			return counter_read(&set.values[i]);
	fail_msg("no counter %s", name);
	return 0;
}

size_t peer_carry(struct peer *from, struct peer *to, size_t n)
{
	size_t total = 0;
	while (n && from->out.len) {
		size_t len;
		const uint8_t *p = buf_peek(&from->out, &len);
		if (len > n)
			len = n;
		// A copy of just these bytes, so that the sanitizer sees a read beyond them.
		uint8_t *copy = malloc(len);
		memcpy(copy, p, len);
		size_t taken = h2_conn_feed(to->conn, copy, len);
		free(copy);
		buf_consume(&from->out, from->chunks, taken);
		total += taken;
		n -= taken;
		if (taken < len)
			break;
	}
	return total;
}

void peer_settle(struct peer *a, struct peer *b)
{
	for (int i = 0; i < 100000; i++) {
		h2_conn_pump(a->conn, 65536);
		h2_conn_pump(b->conn, 65536);
		if (peer_carry(a, b, SIZE_MAX) + peer_carry(b, a, SIZE_MAX) == 0)
			return;
	}
	fail_msg("does not settle");
}

void raw_bytes(struct raw *r, const void *data, size_t len)
{
	assert_true(r->len + len <= sizeof(r->data));
	if (len)
		memcpy(r->data + r->len, data, len);
	r->len += len;
}

void raw_frame(
	struct raw *r, uint8_t type, uint8_t flags, uint32_t id, const void *payload, size_t len)
{
	uint8_t head[H2_FRAME_HEAD];
	h2_frame_pack(
		head, &(struct h2_frame){
			      .length = (uint32_t)len, .type = type, .flags = flags, .id = id});
	raw_bytes(r, head, sizeof(head));
	raw_bytes(r, payload, len);
}

void raw_u32_frame(struct raw *r, uint8_t type, uint32_t id, uint32_t value)
{
	uint8_t payload[4];
	h2_write_u32(payload, value);
	raw_frame(r, type, 0, id, payload, 4);
}

static size_t raw_string(uint8_t *out, const char *s)
{
	size_t len = strlen(s), n = 0;
	if (len < 127) {
		out[n++] = (uint8_t)len;
	} else {
		out[n++] = 127;
		size_t rest = len - 127;
		for (; rest >= 128; rest /= 128)
			out[n++] = (uint8_t)(rest % 128 + 128);
		out[n++] = (uint8_t)rest;
	}
	memcpy(out + n, s, len);
	return n + len;
}

size_t raw_fields(uint8_t *out, const char *const *fields)
{
	size_t n = 0;
	for (; *fields; fields += 2) {
		out[n++] = 0; // RFC 7541 6.2.2, new name
		n += raw_string(out + n, fields[0]);
		n += raw_string(out + n, fields[1]);
	}
	return n;
}

void raw_headers(struct raw *r, uint32_t id, bool end_stream, const char *const *fields)
{
	uint8_t block[16384];
	size_t len = raw_fields(block, fields);
	raw_frame(r, H2_HEADERS, H2_FLAG_END_HEADERS | (end_stream ? H2_FLAG_END_STREAM : 0), id,
		block, len);
}

void raw_preface(struct raw *r, enum h2_role ours)
{
	if (ours == H2_CLIENT)
		raw_bytes(r, H2_PREFACE, H2_PREFACE_LEN);
	raw_frame(r, H2_SETTINGS, 0, 0, NULL, 0);
}

size_t peer_feed(struct peer *p, struct raw *r)
{
	uint8_t *copy = malloc(r->len);
	memcpy(copy, r->data, r->len);
	size_t n = h2_conn_feed(p->conn, copy, r->len);
	free(copy);
	r->len = 0;
	return n;
}

static size_t describe(const struct h2_frame *f, const uint8_t *payload, char *out, size_t room)
{
	static const char *const names[] = {"DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS",
		"PUSH_PROMISE", "PING", "GOAWAY", "WINDOW_UPDATE", "CONTINUATION"};
	int n = 0;
	const char *name = f->type < 10 ? names[f->type] : "UNKNOWN";
	const char *end = f->flags & H2_FLAG_END_STREAM && f->type <= H2_HEADERS ? " end" : "";
	switch (f->type) {
	case H2_DATA:
		n = snprintf(out, room, "DATA %u %u%s\n", f->id, f->length, end);
		break;
	case H2_RST_STREAM:
		n = snprintf(
			out, room, "RST_STREAM %u %s\n", f->id, error_name(h2_read_u32(payload)));
		break;
	case H2_GOAWAY:
		n = snprintf(out, room, "GOAWAY %u %s\n", h2_read_u32(payload),
			error_name(h2_read_u32(payload + 4)));
		break;
	case H2_WINDOW_UPDATE:
		n = snprintf(out, room, "WINDOW_UPDATE %u %u\n", f->id, h2_read_u32(payload));
		break;
	case H2_SETTINGS:
	case H2_PING:
		n = snprintf(out, room, "%s%s\n", name, f->flags & H2_FLAG_ACK ? " ack" : "");
		break;
	default:
		n = snprintf(out, room, "%s %u%s\n", name, f->id, end);
		break;
	}
	assert_true(n > 0 && (size_t)n < room);
	return (size_t)n;
}

const char *peer_frames(struct peer *p)
{
	static char text[262144];
	size_t at = 0;
	text[0] = '\0';
	h2_conn_pump(p->conn, SIZE_MAX);
	while (p->out.len) {
		uint8_t head[H2_FRAME_HEAD], payload[8];
		buf_copy_out(&p->out, 0, head, sizeof(head));
		if (memcmp(head, "PRI * HTT", 9) == 0) {
			buf_consume(&p->out, p->chunks, H2_PREFACE_LEN);
			continue;
		}
		struct h2_frame f = h2_frame_unpack(head);
		assert_true(p->out.len >= H2_FRAME_HEAD + f.length);
		buf_copy_out(&p->out, H2_FRAME_HEAD, payload, f.length < 8 ? f.length : 8);
		at += describe(&f, payload, text + at, sizeof(text) - at);
		buf_consume(&p->out, p->chunks, H2_FRAME_HEAD + f.length);
	}
	return text;
}
