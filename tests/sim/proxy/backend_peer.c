// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/proxy_header.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "tests/sim/proxy/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DELIVERED 8192
#define SECURE_ROOM (64 << 10) // of output that waits to be sealed
struct backend_conn {
	struct backend_conn *next;
	struct backend *backend;
	struct tcp_conn *tcp;
	struct h2_conn *h2;
	struct tls_end secure;
	struct proxy_header header; // without versions: none is wanted
	uint8_t tlvs[PROXY_HEADER_TLVS_MAX]; // the header's
	double n_resets; // that are not forgotten yet
	uint64_t reset_ns; // the last one
	bool is_shy;
	uint32_t lose_in; // turns, this one included; 0 = never
	uint32_t number, n_begun;
	uint32_t n_delivered;
	uint32_t
		delivered[MAX_DELIVERED]; // ids of requests that came here, whatever became of them
};

// One request as the backend sees it.
struct job {
	struct backend *backend;
	uint32_t id, size, sent;
	char kind[16];
	bool is_grpc, all_sent, got_end;
	bool headers_sent;
	bool is_over; // as far as the backend cares
	// As x-fail asks.
	uint32_t fail_times, pushback_at;
	int fail_code;
	char fail_how[8], pushback[16];
};

static struct seen *seen(const struct job *j)
{
	return &j->backend->seen[j->id];
}

static void keep(char *out, size_t size, struct str value)
{
	CHECK(value.len && value.len < size && !*out);
	memcpy(out, value.p, value.len);
}

static void note(const struct backend_conn *c, struct job *j, const struct h2_message *m)
{
	struct seen *see = seen(j);
	CHECK(see->n < MAX_SEEN);
	see->attempts[see->n].at_ns = j->backend->host->wire->now_ns;
	see->attempts[see->n].backend = j->backend->address.b[15];
	see->attempts[see->n].conn = c->number;
	see->attempts[see->n].source = c->header.source;
	see->attempts[see->n].target = c->header.target;
	see->attempts[see->n].n_tlvs = c->header.n_tlvs;
	memcpy(see->attempts[see->n].tlvs, c->tlvs, sizeof(see->attempts[0].tlvs));
	keep(see->attempts[see->n].authority, 32, m->authority);
	keep(see->attempts[see->n].scheme, 8, m->scheme);
	for (size_t i = 0; i < m->n_fields; i++) {
		struct str name = m->fields[i].name, value = m->fields[i].value;
		if (str_eq(name, STR("grpc-timeout")))
			keep(see->attempts[see->n].timeout, 12, value);
		else if (str_eq(name, STR("grpc-previous-rpc-attempts")))
			keep(see->attempts[see->n].previous, 12, value);
		see->attempts[see->n].was_asked_to_wait |= str_eq(name, STR(ASK_TO_WAIT));
		if (str_eq(name, STR("x-forwarded-for"))) {
			char *to = see->attempts[see->n].forwarded_for;
			snprintf(
				to + strlen(to), 64 - strlen(to), "%.*s;", (int)value.len, value.p);
		}
		char script[64] = "";
		if (str_eq(name, STR("x-fail"))) {
			keep(script, sizeof(script), value);
			CHECK(sscanf(script, "%u %7s %d %15[^@]@%u", &j->fail_times, j->fail_how,
				      &j->fail_code, j->pushback, &j->pushback_at) >= 3);
		}
	}
	see->n++;
}

static void check_fields(struct job *j, const struct h2_message *m)
{
	int n_dup = 0;
	bool te = false, secret = false, ok = true;
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		if (str_eq(f->name, STR("x-dup"))) {
			ok = ok && str_eq(f->value, n_dup == 0 ? STR("one") : STR("two"));
			n_dup++;
		} else if (str_eq(f->name, STR("te"))) {
			te = !te && str_eq(f->value, STR("trailers"));
		} else if (str_eq(f->name, STR("authorization"))) {
			secret = f->never_index;
		}
	}
	if (!ok || n_dup != 2 || !secret || te != j->is_grpc ||
		!str_eq(m->authority, STR("calls.test")) || !str_eq(m->scheme, STR("http")))
		j->backend->n_bad_requests++;
}

static struct field report_of(const struct backend *b)
{
	return (struct field){.name = str_from(b->report_field), .value = str_from(b->report)};
}

static void send_head(struct h2_stream *s, struct job *j, uint16_t status, bool end)
{
	static char large[20000];
	struct field fields[6] = {
		{.name = STR("content-type"),
			.value = j->is_grpc ? STR("application/grpc+proto") : STR("text/plain")},
		{.name = STR("grpc-status"), .value = STR("5")},
		{.name = STR("grpc-message"), .value = STR("none%20here")},
	};
	struct h2_message m = {.kind = status < 200 ? H2_INFORMATIONAL : H2_RESPONSE,
		.status = status,
		.end_stream = end,
		.content_length = -1,
		.fields = fields,
		.n_fields = end && j->is_grpc ? 3 : 1};
	if (end && j->size) {
		memset(large, 'l', sizeof(large));
		fields[m.n_fields++] =
			(struct field){.name = STR("x-large"), .value = {large, j->size}};
	}
	if (j->backend->sets_cookies)
		fields[m.n_fields++] =
			(struct field){.name = STR("set-cookie"), .value = STR(BACKENDS_COOKIE)};
	if (end && j->backend->report)
		fields[m.n_fields++] = report_of(j->backend);
	CHECK(h2_stream_send_message(s, &m));
	j->headers_sent = status >= 200;
}

static void send_trailers(struct h2_stream *s, struct job *j)
{
	char status[8] = "0";
	if (strcmp(j->fail_how, "trailer") == 0)
		snprintf(status, sizeof(status), "%d", j->fail_code);
	struct field fields[3] = {{.name = STR("grpc-status"), .value = str_from(status)},
		{.name = STR("x-late-bin"), .value = STR("AAECAw==")}};
	struct h2_message m = {.kind = H2_TRAILERS, .fields = fields, .n_fields = 2};
	if (j->backend->report)
		fields[m.n_fields++] = report_of(j->backend);
	CHECK(h2_stream_send_message(s, &m));
}

static void done(struct job *j)
{
	j->backend->n_served++;
	if (j->backend->n_done[j->id]++ == 0)
		j->backend->served[(*j->backend->n_all_served)++] = j->id;
}

#define PIECE 3000

static void send_more(struct h2_stream *s, struct job *j, bool trailers)
{
	uint8_t body[PIECE];
	while (j->sent < j->size && h2_stream_queued(s) < 2 * PIECE) {
		uint32_t n = j->size - j->sent < PIECE ? j->size - j->sent : PIECE;
		for (uint32_t i = 0; i < n; i++)
			body[i] = pattern(j->id, j->sent + i);
		j->sent += n;
		CHECK(h2_stream_send_data(s, body, n, j->sent == j->size && !trailers));
	}
	if (j->sent == j->size && !j->all_sent) {
		j->all_sent = true;
		if (trailers)
			send_trailers(s, j);
		else if (!j->size)
			CHECK(h2_stream_send_data(s, NULL, 0, true));
	}
}

static bool is(const struct job *j, const char *kind)
{
	return strcmp(j->kind, kind) == 0;
}

static bool echoes(const struct job *j)
{
	return is(j, "echo") || is(j, "refuseonce");
}

static void send_status(struct h2_stream *s, struct job *j, uint16_t http_status, int grpc_status)
{
	char text[8];
	int len = snprintf(text, sizeof(text), "%d", grpc_status);
	struct field fields[5] = {{.name = STR("content-type"), .value = STR("application/grpc")}};
	size_t n = 1;
	if (j->backend->request_id)
		fields[n++] = (struct field){
			.name = STR("x-request-id"), .value = str_from(j->backend->request_id)};
	if (grpc_status >= 0)
		fields[n++] =
			(struct field){.name = STR("grpc-status"), .value = {text, (size_t)len}};
	if (j->pushback[0] && (!j->pushback_at || j->pushback_at == seen(j)->n_failed))
		fields[n++] = (struct field){
			.name = STR("grpc-retry-pushback-ms"), .value = str_from(j->pushback)};
	struct h2_message m = {.kind = H2_RESPONSE,
		.status = http_status,
		.end_stream = true,
		.content_length = -1,
		.fields = fields,
		.n_fields = n};
	j->is_over = true;
	if (grpc_status == 14 || http_status == 503)
		seen(j)->n_excused++;
	CHECK(h2_stream_send_message(s, &m));
}

// As a proxy in front of a server does: a body, and no trailers; `cut`: nor its end; `stall`: nor
// anything else.
static void send_page(struct h2_stream *s, struct job *j)
{
	struct field fields[2] = {{.name = STR("content-type"), .value = STR("text/html")},
		{.name = STR("x-request-id")}};
	static const uint8_t body[] = "<p>not here";
	const struct h2_message m = {.kind = H2_RESPONSE,
		.status = (uint16_t)j->fail_code,
		.content_length = -1,
		.fields = fields,
		.n_fields = j->backend->request_id ? 2 : 1};
	bool is_whole = strcmp(j->fail_how, "page") == 0;
	if (j->backend->request_id)
		fields[1].value = str_from(j->backend->request_id);
	j->is_over = true;
	CHECK(h2_stream_send_message(s, &m));
	CHECK(h2_stream_send_data(s, body, sizeof(body) - 1, is_whole));
	if (strcmp(j->fail_how, "cut") == 0)
		h2_stream_reset(s, H2_INTERNAL_ERROR);
}

static bool fails_late(const struct job *j)
{
	return j->fail_times && strcmp(j->fail_how, "late") == 0;
}

// Returns whether this attempt fails as asked.
static bool fail_as_asked(struct h2_stream *s, struct job *j)
{
	struct backend_conn *c = h2_conn_user(h2_stream_conn(s));
	if (seen(j)->n_failed >= j->fail_times || strcmp(j->fail_how, "trailer") == 0) {
		j->fail_times = 0;
		return false;
	}
	if (fails_late(j)) {
		if (j->got_end) {
			seen(j)->n_failed++;
			send_status(s, j, 200, j->fail_code);
		}
		return true;
	}
	seen(j)->n_failed++;
	if (strcmp(j->fail_how, "status") == 0) {
		send_status(s, j, 200, j->fail_code);
	} else if (strcmp(j->fail_how, "http") == 0) {
		send_status(s, j, (uint16_t)j->fail_code, -1);
	} else if (strcmp(j->fail_how, "page") == 0 || strcmp(j->fail_how, "cut") == 0 ||
		   strcmp(j->fail_how, "stall") == 0) {
		send_page(s, j);
	} else if (strcmp(j->fail_how, "reset") == 0) {
		seen(j)->n_delivered -= j->fail_code == H2_REFUSED_STREAM;
		h2_stream_reset(s, (enum h2_error)j->fail_code);
	} else {
		bool hint = strcmp(j->fail_how, "hint") == 0;
		CHECK(hint || strcmp(j->fail_how, "lose") == 0);
		if (hint)
			send_head(s, j, 103, false);
		c->lose_in = hint ? 2 : 1;
	}
	return true;
}

static void send_stall(struct h2_stream *s, struct job *j)
{
	static const uint8_t message[15] = {[4] = 10};
	send_head(s, j, 200, false);
	for (uint32_t i = 0; i < j->size; i++) {
		uint8_t byte = j->is_grpc ? message[i % 15] : pattern(j->id, i);
		CHECK(h2_stream_send_data(s, &byte, 1, false));
	}
}

static void begin(struct h2_stream *s, struct job *j)
{
	struct backend *b = j->backend;
	if (is(j, "refuse") || (is(j, "refuseonce") && !b->n_refused[j->id])) {
		b->n_refused[j->id]++;
		h2_stream_reset(s, H2_REFUSED_STREAM);
		return;
	}
	struct backend_conn *c = h2_conn_user(h2_stream_conn(s));
	CHECK(c->n_delivered < MAX_DELIVERED);
	c->delivered[c->n_delivered++] = j->id;
	seen(j)->n_delivered++;
	if (b->mute || (j->fail_times && fail_as_asked(s, j)))
		return;
	done(j);
	if (echoes(j)) {
		send_head(s, j, 200, false);
		if (j->got_end)
			send_trailers(s, j);
	} else if (is(j, "download")) {
		send_head(s, j, 200, false);
		send_more(s, j, true);
	} else if (is(j, "trailersonly")) {
		send_head(s, j, 200, true);
	} else if (is(j, "plain")) {
		send_head(s, j, 103, false);
		send_head(s, j, 103, false);
		send_head(s, j, 200, false);
		send_more(s, j, false);
	} else if (is(j, "head")) {
		send_head(s, j, 200, true);
	} else if (is(j, "early")) {
		j->size = EARLY_SIZE;
		send_head(s, j, 200, false);
		send_more(s, j, true);
	} else if (is(j, "reset")) {
		h2_stream_reset(s, (enum h2_error)j->size);
	} else if (is(j, "resetlate")) {
		uint8_t body[1000];
		for (uint32_t i = 0; i < sizeof(body); i++)
			body[i] = pattern(j->id, i);
		send_head(s, j, 200, false);
		CHECK(h2_stream_send_data(s, body, sizeof(body), false));
	} else if (is(j, "badlength")) {
		struct field f = {.name = STR("content-length"), .value = STR("17")};
		struct h2_message m = {.kind = H2_RESPONSE,
			.status = 200,
			.content_length = -1,
			.end_stream = true,
			.fields = &f,
			.n_fields = 1};
		CHECK(h2_stream_send_message(s, &m));
	} else if (is(j, "stall") || is(j, "stallplain")) {
		send_stall(s, j);
	} else {
		CHECK(is(j, "hang"));
	}
}

// At the end of the request.
static void fail_late(struct h2_stream *s, struct job *j)
{
	if (fails_late(j) && j->got_end && !j->is_over)
		fail_as_asked(s, j);
}

static void on_message(struct h2_conn *h2, struct h2_stream *s, const struct h2_message *m)
{
	struct backend_conn *c = h2_conn_user(h2);
	struct job *j = h2_stream_user(s);
	if (m->kind == H2_TRAILERS) {
		if (m->n_fields != 1 || !str_eq(m->fields[0].name, STR("x-trailer")))
			c->backend->n_bad_requests++;
		j->got_end = true;
		if (j->fail_times)
			fail_late(s, j);
		else if (echoes(j))
			send_trailers(s, j);
		return;
	}
	char path[96], route[16];
	j = calloc(1, sizeof(*j));
	CHECK(j && m->path.len < sizeof(path));
	memcpy(path, m->path.p, m->path.len);
	path[m->path.len] = '\0';
	CHECK(sscanf(path, "/%15[^/]/%15[^/]/%u/%u", route, j->kind, &j->id, &j->size) == 4);
	j->backend = c->backend;
	j->is_grpc = m->is_grpc;
	j->got_end = m->end_stream;
	h2_stream_set_user(s, j);
	CHECK(j->id < c->backend->n_ids);
	if (strcmp(route, "check") != 0) { // a proxy's own, which no client asked for
		check_fields(j, m);
		note(c, j, m);
	}
	begin(s, j);
	if (++c->n_begun == c->backend->leaves_after)
		h2_conn_drain_end(h2, H2_NO_ERROR);
}

static void on_data(
	struct h2_conn *h2, struct h2_stream *s, const uint8_t *p, size_t len, bool end_stream)
{
	struct job *j = h2_stream_user(s);
	j->got_end = end_stream;
	if (j->fail_times) {
		h2_stream_consumed(s, len);
		fail_late(s, j);
		return;
	}
	if (is(j, "early") || is(j, "hang")) // read nothing
		return;
	if (!echoes(j)) {
		h2_stream_consumed(s, len);
		return;
	}
	if (len)
		CHECK(h2_stream_send_data(s, p, len, false));
	if (end_stream)
		send_trailers(s, j);
}

static void on_sent(struct h2_conn *h2, struct h2_stream *s, size_t n)
{
	struct job *j = h2_stream_user(s);
	if (j->is_over)
		return;
	if (echoes(j))
		h2_stream_consumed(s, n);
	else if (is(j, "resetlate") && !h2_stream_queued(s))
		h2_stream_reset(s, (enum h2_error)j->size);
	else if (is(j, "download") || is(j, "early"))
		send_more(s, j, true);
	else if (is(j, "plain"))
		send_more(s, j, false);
}

static void count_reset(struct backend_conn *c)
{
	struct backend *b = c->backend;
	uint64_t now_ns = b->host->wire->now_ns;
	if (!b->max_resets || !c->h2 || c->lose_in)
		return;
	c->n_resets -=
		b->resets_per_second * (double)(now_ns - c->reset_ns) / (double)NS_PER_SECOND;
	c->n_resets = c->n_resets < 0 ? 1 : c->n_resets + 1;
	c->reset_ns = now_ns;
	if (c->n_resets <= b->max_resets)
		return;
	b->n_angry++;
	c->lose_in = 1;
}

static void on_closed(
	struct h2_conn *h2, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	struct job *j = h2_stream_user(s);
	if (!j)
		return;
	seen(j)->end_code = code;
	seen(j)->ended_by_peer = by_peer;
	if (by_peer)
		count_reset(h2_conn_user(h2));
	free(j);
}

static void on_settings(struct h2_conn *h2, uint32_t max_concurrent_streams)
{
}

static void on_goaway(struct h2_conn *h2, uint32_t last_id, enum h2_error code)
{
}

static const struct h2_events events = {
	on_message, on_data, on_sent, on_closed, on_settings, on_goaway};

// Its end may have come before the answers.
static void excuse(struct backend_conn *c)
{
	while (c->n_delivered)
		c->backend->seen[c->delivered[--c->n_delivered]].n_excused++;
}

static void forget(struct backend_conn *c)
{
	struct backend_conn **at = &c->backend->conns;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->backend->n_conns--;
	excuse(c);
	if (c->h2)
		h2_conn_free(c->h2, H2_INTERNAL_ERROR);
	if (c->backend->newest == &c->secure)
		c->backend->newest = NULL;
	tls_end_fini(&c->secure);
	free(c);
}

static size_t on_plain(void *user, const uint8_t *p, size_t len)
{
	struct backend_conn *c = user;
	return c->h2 ? h2_conn_feed(c->h2, p, len) : len;
}

// Returns how many bytes it has of these.
static size_t take_header(struct backend_conn *c, const uint8_t *p, size_t len)
{
	struct proxy_header *h = &c->header;
	size_t used = 0;
	if (!h->v1 || h->state == PROXY_HEADER_DONE)
		return 0;
	enum proxy_header_state state = proxy_header_feed(h, p, len, &used);
	CHECK(state == PROXY_HEADER_DONE || state == PROXY_HEADER_MORE);
	c->backend->n_local += state == PROXY_HEADER_DONE && !h->has_source;
	return used;
}

static size_t tcp_on_data(struct tcp_conn *tcp, void *user, const uint8_t *p, size_t len)
{
	struct backend_conn *c = user;
	if (c->backend->deaf)
		return 0;
	size_t n = take_header(c, p, len);
	p += n;
	len -= n;
	if (c->is_shy)
		return n;
	return n + (c->backend->tls ? tls_end_feed(&c->secure, p, len) : on_plain(c, p, len));
}

static void tcp_on_send_room(struct tcp_conn *tcp, void *user)
{
}

static void tcp_on_eof(struct tcp_conn *tcp, void *user)
{
	struct backend_conn *c = user;
	struct h2_conn *h2 = c->h2;
	c->h2 = NULL;
	excuse(c);
	if (h2)
		h2_conn_free(h2, H2_INTERNAL_ERROR);
	tcp_conn_shutdown(tcp);
}

static void tcp_on_closed(struct tcp_conn *tcp, void *user, enum tcp_close_reason reason)
{
	forget(user);
}

static const struct tcp_conn_ops tcp_ops = {
	NULL, tcp_on_data, tcp_on_send_room, tcp_on_eof, tcp_on_closed};

const struct tcp_conn_ops *backend_accept(void *arg, struct tcp_conn *tcp, void **ret_user)
{
	struct backend *b = arg;
	struct backend_conn *c = calloc(1, sizeof(*c));
	CHECK(c);
	c->backend = b;
	c->tcp = tcp;
	c->is_shy = b->is_shy;
	c->header.v1 = c->header.v2 = b->wants_header;
	c->header.tlvs = c->tlvs;
	struct buf *out = tcp_conn_sendq(tcp);
	if (b->tls) {
		tls_end_init(&c->secure, b->tls, tcp, &b->host->chunks, on_plain, c);
		out = &c->secure.plain;
		b->newest = &c->secure;
	}
	c->h2 = h2_conn_new(b->ctx, H2_SERVER, &events, out, c);
	CHECK(c->h2);
	if (b->leaves_at_once)
		h2_conn_drain_end(c->h2, H2_NO_ERROR);
	c->next = b->conns;
	b->conns = c;
	b->n_conns++;
	c->number = ++b->n_accepted;
	*ret_user = c;
	return &tcp_ops;
}

void backend_open(
	struct backend *b, struct host *h, struct ip_addr address, const struct h2_conf *conf)
{
	b->host = h;
	b->address = address;
	b->ctx = h2_context_new(conf, &h->chunks);
	CHECK(b->ctx && tcp_listen(h->tcp, &address, 50051, backend_accept, b) == 0);
	b->listening = true;
}

void backend_unlisten(struct backend *b)
{
	if (b->listening)
		tcp_unlisten(b->host->tcp, &b->address, 50051);
	b->listening = false;
}

void backend_abort_conns(struct backend *b)
{
	while (b->conns) {
		struct tcp_conn *tcp = b->conns->tcp;
		forget(b->conns);
		tcp_conn_abort(tcp);
	}
	b->host->due = true;
}

void backend_say(struct backend *b, const void *p, size_t len)
{
	for (struct backend_conn *c = b->conns; c; c = c->next) {
		CHECK(buf_append(tcp_conn_sendq(c->tcp), &b->host->chunks, p, len));
		tcp_conn_push(c->tcp);
	}
	b->host->due = true;
}

void backend_close(struct backend *b)
{
	backend_unlisten(b);
	backend_abort_conns(b);
}

void backend_fini(struct backend *b)
{
	if (b->ctx)
		backend_close(b);
	h2_context_free(b->ctx);
	b->ctx = NULL;
}

void backend_goaway(struct backend *b, bool at_once)
{
	for (struct backend_conn *c = b->conns; c; c = c->next) {
		if (!c->h2)
			continue;
		if (at_once)
			h2_conn_drain_end(c->h2, H2_NO_ERROR);
		else
			h2_conn_drain_begin(c->h2);
	}
	b->host->due = true;
}

static bool is_of(const struct backend_conn *c, const struct ip_port *client)
{
	const struct proxy_header *h = &c->header;
	return h->state == PROXY_HEADER_DONE && h->has_source == (client != NULL) &&
	       (!client || ip_port_eq(&h->source, client));
}

void backend_goaway_of(struct backend *b, const struct ip_port *client)
{
	for (struct backend_conn *c = b->conns; c; c = c->next)
		if (c->h2 && is_of(c, client))
			h2_conn_drain_end(c->h2, H2_NO_ERROR);
	b->host->due = true;
}

static void shut(struct backend_conn *c)
{
	struct h2_conn *h2 = c->h2;
	c->h2 = NULL;
	h2_conn_pump(h2, tcp_conn_send_room(c->tcp));
	h2_conn_free(h2, H2_NO_ERROR);
	tcp_conn_shutdown(c->tcp);
}

void backend_shut_of(struct backend *b, const struct ip_port *client)
{
	for (struct backend_conn *c = b->conns; c; c = c->next)
		if (c->h2 && is_of(c, client))
			shut(c);
	b->host->due = true;
}

void backend_shut_conns(struct backend *b)
{
	for (struct backend_conn *c = b->conns; c; c = c->next) {
		excuse(c);
		if (c->h2)
			shut(c);
	}
	b->host->due = true;
}

void backend_abort_of(struct backend *b, const struct ip_port *client)
{
	struct backend_conn *next;
	for (struct backend_conn *c = b->conns; c; c = next) {
		struct tcp_conn *tcp = c->tcp;
		next = c->next;
		if (!is_of(c, client))
			continue;
		forget(c);
		tcp_conn_abort(tcp);
	}
	b->host->due = true;
}

void backend_listen(struct backend *b)
{
	b->deaf = false;
	for (struct backend_conn *c = b->conns; c; c = c->next)
		tcp_conn_resume(c->tcp);
	b->host->due = true;
}

void backend_pump(struct backend *b)
{
	enum h2_error code;
	struct backend_conn *next;
	for (struct backend_conn *c = b->conns; c; c = next) {
		next = c->next;
		if (c->lose_in && --c->lose_in == 0) {
			struct tcp_conn *tcp = c->tcp;
			forget(c);
			tcp_conn_abort(tcp);
			continue;
		}
		if (c->is_shy)
			continue;
		if (b->tls) {
			if (c->h2 && c->secure.plain.len < SECURE_ROOM)
				h2_conn_pump(c->h2, SECURE_ROOM - c->secure.plain.len);
			b->host->due |= tls_end_pump(&c->secure) && tcp_conn_send_room(c->tcp);
		}
		if (!c->h2)
			continue;
		if (!b->tls) {
			h2_conn_pump(c->h2, tcp_conn_send_room(c->tcp));
			tcp_conn_push(c->tcp);
		}
		if (h2_conn_failed(c->h2, &code)) {
			fprintf(stderr, "backend: connection error %d\n", code);
			abort();
		}
	}
}
