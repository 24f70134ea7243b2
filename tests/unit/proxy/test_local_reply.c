// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/local_reply.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

// What a client saw of one answer.
struct seen {
	int n_messages, n_data;
	uint16_t status;
	bool end_on_headers, end_on_data;
	char fields[2048]; // "name: value\n" each
	char body[256];
	size_t body_len;
};

static struct seen seen;
static uint32_t stream_window; // of the client's
static struct h2_stream *served;

static void server_on_message(struct h2_conn *c, struct h2_stream *s, const struct h2_message *m)
{
	served = s;
}

static void client_on_message(struct h2_conn *c, struct h2_stream *s, const struct h2_message *m)
{
	seen.n_messages++;
	seen.status = m->status;
	seen.end_on_headers = m->end_stream;
	size_t at = 0;
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		at += (size_t)snprintf(seen.fields + at, sizeof(seen.fields) - at, "%.*s: %.*s\n",
			(int)f->name.len, f->name.p, (int)f->value.len, f->value.p);
	}
}

static void client_on_data(
	struct h2_conn *c, struct h2_stream *s, const uint8_t *p, size_t len, bool end_stream)
{
	seen.n_data++;
	memcpy(seen.body + seen.body_len, p, len);
	seen.body_len += len;
	seen.end_on_data = end_stream;
}

static void no_data(
	struct h2_conn *c, struct h2_stream *s, const uint8_t *p, size_t len, bool end_stream)
{
}

static void on_closed(
	struct h2_conn *c, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
}

static const struct h2_events server_events = {
	.on_message = server_on_message, .on_data = no_data, .on_closed = on_closed};
static const struct h2_events client_events = {
	.on_message = client_on_message, .on_data = client_on_data, .on_closed = on_closed};

static void carry(struct h2_conn *from, struct buf *out, struct h2_conn *to, struct pool *chunks)
{
	h2_conn_pump(from, 1 << 20);
	while (out->len) {
		size_t len;
		const uint8_t *p = buf_peek(out, &len);
		assert_int_equal(h2_conn_feed(to, p, len), len);
		buf_consume(out, chunks, len);
	}
}

// Sends the reply to one request over a real pair of connections.
static void answer_in(const struct proxy_reply *reply, const struct proxy_reply_form *form)
{
	struct pool chunks;
	struct h2_conf conf = {.max_conns = 2,
		.max_streams = 4,
		.max_concurrent_streams = 4,
		.stream_window = stream_window,
		.conn_window = 65535,
		.max_header_bytes = 16384,
		.max_header_fields = 100};
	struct buf to_client = {0}, to_server = {0};
	assert_int_equal(buf_pool_init(&chunks, 256), 0);
	struct h2_context *ctx = h2_context_new(&conf, &chunks);
	struct h2_conn *server = h2_conn_new(ctx, H2_SERVER, &server_events, &to_client, NULL);
	struct h2_conn *client = h2_conn_new(ctx, H2_CLIENT, &client_events, &to_server, NULL);
	assert_non_null(server);
	assert_non_null(client);
	seen = (struct seen){0};
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("POST"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/"),
		.end_stream = true,
		.content_length = -1};
	assert_non_null(h2_stream_open(client, &m, NULL));
	carry(client, &to_server, server, &chunks);
	assert_true(proxy_reply_send(served, reply, form));
	carry(server, &to_client, client, &chunks);
	h2_conn_free(client, H2_NO_ERROR);
	h2_conn_free(server, H2_NO_ERROR);
	buf_clear(&to_client, &chunks);
	buf_clear(&to_server, &chunks);
	h2_context_free(ctx);
	assert_int_equal(chunks.n_used, 0);
	pool_fini(&chunks);
}

static int set_up(void **state)
{
	stream_window = 65535;
	return 0;
}

// To a trusted client.
static void answer(const struct proxy_reply *reply, bool is_grpc, bool with_body)
{
	answer_in(reply, &(struct proxy_reply_form){
				 .is_grpc = is_grpc, .with_body = with_body, .with_details = true});
}

// HX-02
static void a_grpc_reply_is_one_headers_frame_with_the_status_in_it(void **state)
{
	struct proxy_reply r = proxy_reply_for(LB_CAUSE_NO_HEALTHY, STR("no host: 100%\xc3\xa4"));
	answer(&r, true, true);
	assert_int_equal(seen.n_messages, 1);
	assert_int_equal(seen.n_data, 0);
	assert_true(seen.end_on_headers);
	assert_int_equal(seen.status, 200);
	assert_string_equal(seen.fields, "content-type: application/grpc\n"
					 "grpc-status: 14\n"
					 "grpc-message: no host: 100%25%C3%A4\n"
					 "x-shunt-cause: no_healthy\n");
}

// HX-03
static void a_plain_reply_has_the_http_status_and_a_text(void **state)
{
	struct proxy_reply r = proxy_reply_for(LB_CAUSE_NO_ROUTE, STR("no route matches"));
	answer(&r, false, true);
	assert_int_equal(seen.n_messages, 1);
	assert_false(seen.end_on_headers);
	assert_int_equal(seen.status, 404);
	assert_string_equal(seen.fields, "content-type: text/plain\nx-shunt-cause: no_route\n");
	assert_int_equal(seen.body_len, strlen("no route matches"));
	assert_memory_equal(seen.body, "no route matches", seen.body_len);
	assert_true(seen.end_on_data);
}

// TH-86: it would wait in a chunk of its own.
static void th_86_a_plain_reply_that_does_not_fit_the_clients_window_has_no_body(void **state)
{
	struct proxy_reply r = proxy_reply_for(LB_CAUSE_NO_ROUTE, STR("no route matches"));
	stream_window = (uint32_t)strlen("no route matches") - 1;
	answer(&r, false, true);
	assert_int_equal(seen.status, 404);
	assert_true(seen.end_on_headers);
	assert_int_equal(seen.n_data, 0);
	stream_window++;
	answer(&r, false, true);
	assert_int_equal(seen.body_len, strlen("no route matches"));
}

// HX-03
static void a_plain_reply_to_head_has_no_body(void **state)
{
	struct proxy_reply r = proxy_reply_for(LB_CAUSE_OVERFLOW, STR("too many"));
	answer(&r, false, false);
	assert_true(seen.end_on_headers);
	assert_int_equal(seen.status, 503);
	assert_int_equal(seen.n_data, 0);
}

static void a_plain_reply_without_text_has_no_body(void **state)
{
	struct proxy_reply r = proxy_reply_for(LB_CAUSE_NO_CONFIG, STR(""));
	answer(&r, false, true);
	assert_true(seen.end_on_headers);
	assert_int_equal(seen.n_data, 0);
}

// Whatever the reply itself knows, whichever its cause.
static void th_95_strangers_get_their_causes_text_and_no_other_field(void **state)
{
	const struct str secret = STR("cluster blue: 10.82.1.1:8080: refused (node n1)");
	for (int cause = LB_CAUSE_OK + 1; cause < LB_N_CAUSES; cause++) {
		const char *text = lb_cause_info((enum lb_cause)cause)->text;
		struct proxy_reply r = proxy_reply_for((enum lb_cause)cause, secret);
		char fields[256];
		snprintf(fields, sizeof(fields),
			"content-type: application/grpc\ngrpc-status: %d\ngrpc-message: %s\n",
			r.grpc_status, text);
		answer_in(&r, &(struct proxy_reply_form){.is_grpc = true});
		assert_string_equal(seen.fields, fields);
		answer_in(&r, &(struct proxy_reply_form){.with_body = true});
		assert_string_equal(seen.fields, "content-type: text/plain\n");
		assert_int_equal(seen.body_len, strlen(text));
		assert_memory_equal(seen.body, text, seen.body_len);
		assert_int_equal(seen.status, r.http_status);
	}
}

static void grpc_messages_are_percent_encoded_and_cut_between_characters(void **state)
{
	char out[PROXY_GRPC_MESSAGE_MAX], expected[8];
	assert_int_equal(proxy_grpc_message(STR(" ~"), out), 2);
	assert_memory_equal(out, " ~", 2);
	for (int c = 0; c < 256; c++) {
		char in = (char)c;
		bool plain = c >= 0x20 && c <= 0x7e && c != '%';
		int len = plain ? snprintf(expected, sizeof(expected), "%c", c)
		                : snprintf(expected, sizeof(expected), "%%%02X", c);
		assert_int_equal(proxy_grpc_message((struct str){&in, 1}, out), len);
		assert_memory_equal(out, expected, (size_t)len);
	}
	char longer[PROXY_GRPC_MESSAGE_MAX + 10];
	memset(longer, 'a', sizeof(longer));
	assert_int_equal(proxy_grpc_message((struct str){longer, sizeof(longer)}, out),
		PROXY_GRPC_MESSAGE_MAX);
	longer[PROXY_GRPC_MESSAGE_MAX - 2] = '%';
	assert_int_equal(proxy_grpc_message((struct str){longer, sizeof(longer)}, out),
		PROXY_GRPC_MESSAGE_MAX - 2);
}

// HX-03, HX-08, HX-19, D1
static void each_cause_has_its_two_statuses(void **state)
{
	static const struct {
		enum lb_cause cause;
		int grpc, http;
	} rows[] = {
		{LB_CAUSE_NO_ROUTE, 14, 404},
		{LB_CAUSE_NO_CONFIG, 14, 503},
		{LB_CAUSE_NO_HEALTHY, 14, 503},
		{LB_CAUSE_UPSTREAM_LOST, 14, 503},
		{LB_CAUSE_UPSTREAM_PROTOCOL, 13, 502},
		{LB_CAUSE_OVERFLOW, 14, 503},
		{LB_CAUSE_TIMEOUT, 4, 504},
		{LB_CAUSE_OVERLOAD, 14, 503},
		{LB_CAUSE_CLIENT_PROTOCOL, 13, 400},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct proxy_reply r = proxy_reply_for(rows[i].cause, STR("x"));
		assert_int_equal(r.cause, rows[i].cause);
		assert_int_equal(r.grpc_status, rows[i].grpc);
		assert_int_equal(r.http_status, rows[i].http);
	}
}

// HX-19
static void a_reset_before_the_response_maps_to_a_grpc_status(void **state)
{
	static const struct {
		enum h2_error code;
		int grpc;
	} rows[] = {
		{H2_NO_ERROR, 13},
		{H2_PROTOCOL_ERROR, 13},
		{H2_INTERNAL_ERROR, 13},
		{H2_REFUSED_STREAM, 14},
		{H2_CANCEL, 1},
		{H2_ENHANCE_YOUR_CALM, 8},
		{H2_INADEQUATE_SECURITY, 7},
		{(enum h2_error)99, 13},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct proxy_reply r = proxy_reply_for_reset(rows[i].code);
		assert_int_equal(r.cause, LB_CAUSE_UPSTREAM_RESET);
		assert_int_equal(r.grpc_status, rows[i].grpc);
		assert_int_equal(r.http_status, 503);
	}
}

// gRPC's "HTTP to gRPC Status Code Mapping"
static void an_http_status_reads_as_a_grpc_one(void **state)
{
	static const struct {
		uint16_t http;
		int grpc;
	} rows[] = {{400, 13}, {401, 16}, {403, 7}, {404, 12}, {429, 14}, {431, 13}, {502, 14},
		{503, 14}, {504, 14}, {200, 2}, {302, 2}, {418, 2}, {500, 2}, {599, 2}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(proxy_grpc_of_http(rows[i].http), rows[i].grpc);
}

#define CASE(test) cmocka_unit_test_setup(test, set_up)

RUN_SUITE("proxy/local_reply", CASE(a_grpc_reply_is_one_headers_frame_with_the_status_in_it),
	CASE(a_plain_reply_has_the_http_status_and_a_text),
	CASE(th_86_a_plain_reply_that_does_not_fit_the_clients_window_has_no_body),
	CASE(a_plain_reply_to_head_has_no_body), CASE(a_plain_reply_without_text_has_no_body),
	CASE(th_95_strangers_get_their_causes_text_and_no_other_field),
	CASE(grpc_messages_are_percent_encoded_and_cut_between_characters),
	CASE(each_cause_has_its_two_statuses),
	CASE(a_reset_before_the_response_maps_to_a_grpc_status),
	CASE(an_http_status_reads_as_a_grpc_one))
