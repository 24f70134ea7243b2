// SPDX-License-Identifier: Apache-2.0
// Two ends of ours, back to back.
#include "tests/unit/h2/h2_peer.h"

static struct pool chunks;
static struct peer client, server;

static int set_up_with(const struct h2_conf *conf, uint32_t n_chunks)
{
	assert_int_equal(buf_pool_init(&chunks, n_chunks), 0);
	peer_init(&client, &chunks, conf);
	peer_init(&server, &chunks, conf);
	assert_non_null(peer_connect(&client, H2_CLIENT));
	assert_non_null(peer_connect(&server, H2_SERVER));
	return 0;
}

static int set_up(void **state)
{
	struct h2_conf conf = peer_conf();
	return set_up_with(&conf, 4096);
}

static int tear_down(void **state)
{
	peer_fini(&client);
	peer_fini(&server);
	assert_int_equal(chunks.n_used, 0); // no chunk leaks, whatever happened
	pool_fini(&chunks);
	return 0;
}

#define FIELD(n, v)                                                                                \
	{                                                                                          \
		.name = STR(n), .value = STR(v)                                                    \
	}

static struct h2_stream *open_get(bool end_stream)
{
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a.test"),
		.path = STR("/x"),
		.end_stream = end_stream};
	struct h2_stream *s = h2_stream_open(client.conn, &m, NULL);
	if (s)
		peer_add_stream(&client, s);
	return s;
}

static bool respond(struct h2_stream *s, bool end_stream)
{
	return h2_stream_send_message(s,
		&(struct h2_message){.kind = H2_RESPONSE, .status = 200, .end_stream = end_stream});
}

static void answer_at_once(struct peer *p, struct h2_stream *s, const struct h2_message *m)
{
	if (m->kind == H2_REQUEST)
		assert_true(respond(s, true));
}

static void settings_make_both_ends_ready(void **state)
{
	assert_false(h2_conn_ready(client.conn));
	peer_settle(&client, &server);
	assert_true(h2_conn_ready(client.conn));
	assert_true(h2_conn_ready(server.conn));
	assert_string_equal(client.log, "settings(100) ");
	assert_string_equal(server.log, "settings(4294967295) ");
	assert_int_equal(h2_conn_stream_room(client.conn), 100);
	assert_true(h2_conn_idle(client.conn));
}

static void header_only_request_and_response_end_clean(void **state)
{
	peer_settle(&client, &server);
	peer_clear_log(&client);
	peer_clear_log(&server);
	server.on_message = answer_at_once;
	assert_non_null(open_get(true));
	peer_settle(&client, &server);
	assert_string_equal(server.log, "request(1 GET http a.test /x end) closed(1 NO_ERROR) ");
	assert_string_equal(client.log, "response(1 200 end) closed(1 NO_ERROR) ");
	assert_int_equal(h2_conn_n_streams(client.conn), 0);
	assert_int_equal(h2_conn_n_streams(server.conn), 0);
}

static void echo_data(
	struct peer *p, struct h2_stream *s, const uint8_t *data, size_t len, bool end_stream)
{
	assert_true(h2_stream_send_data(s, data, len, false));
	if (!end_stream)
		return;
	static const struct h2_field fields[] = {
		FIELD("grpc-status", "0"), FIELD("grpc-message", "fine")};
	assert_true(h2_stream_send_message(
		s, &(struct h2_message){.kind = H2_TRAILERS, .fields = fields, .n_fields = 2}));
}

static void answer_head(struct peer *p, struct h2_stream *s, const struct h2_message *m)
{
	static const struct h2_field fields[] = {
		FIELD("content-type", "application/grpc"), {STR("x-secret"), STR("s3"), true}};
	if (m->kind == H2_REQUEST)
		assert_true(h2_stream_send_message(s, &(struct h2_message){.kind = H2_RESPONSE,
							      .status = 200,
							      .fields = fields,
							      .n_fields = 2}));
}

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

// HX-12: bodies, trailers, half-close.
static void body_larger_than_the_windows_comes_back_with_trailers(void **state)
{
	const size_t len = 300000;
	uint8_t *body = malloc(len);
	for (size_t i = 0; i < len; i++)
		body[i] = pattern(i);
	client.log_data = server.log_data = false;
	server.on_message = answer_head;
	server.on_data = echo_data;
	struct h2_stream *s = open_get(false);
	assert_true(h2_stream_send_data(s, body, len, true));
	assert_int_equal(h2_stream_queued(s), len);
	peer_settle(&client, &server);
	struct peer_stream *ps = &client.streams[0];
	assert_int_equal(ps->received, len);
	assert_memory_equal(ps->body, body, len);
	assert_int_equal(ps->sent, len);
	assert_string_equal(client.log,
		"settings(100) response(1 200 grpc content-type=application/grpc x-secret=s3!) "
		"trailers(1 grpc-status=0 grpc-message=fine end) closed(1 NO_ERROR) ");
	free(body);
}

RUN_SUITE("h2/conn",
	cmocka_unit_test_setup_teardown(settings_make_both_ends_ready, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		header_only_request_and_response_end_clean, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		body_larger_than_the_windows_comes_back_with_trailers, set_up, tear_down))
