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

// Whether the output stands still is told by it.
static void what_a_connection_begins_with_is_counted(void **state)
{
	for (uint32_t more = 0; more < 2; more++) {
		struct h2_conf conf = peer_conf();
		conf.conn_window += more;
		tear_down(NULL);
		set_up_with(&conf, 64);
		struct peer *const ends[] = {&client, &server};
		for (int i = 0; i < 2; i++) {
			if (i) { // the server waits for the client's
				assert_int_equal(h2_conn_written(server.conn), 0);
				peer_carry(&client, &server, H2_PREFACE_LEN);
			}
			assert_int_equal(h2_conn_written(ends[i]->conn), ends[i]->out.len);
			assert_int_equal(peer_counter(ends[i], "frames_out_settings"), 1);
			assert_int_equal(peer_counter(ends[i], "frames_out_window_update"), more);
			assert_int_equal(peer_counter(ends[i], "no_memory"), 0);
		}
	}
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
	static const struct field fields[] = {
		FIELD("grpc-status", "0"), FIELD("grpc-message", "fine")};
	assert_true(h2_stream_send_message(
		s, &(struct h2_message){.kind = H2_TRAILERS, .fields = fields, .n_fields = 2}));
}

static void answer_head(struct peer *p, struct h2_stream *s, const struct h2_message *m)
{
	static const struct field fields[] = {
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

// HX-23
static void client_opens_no_more_streams_than_the_server_allows(void **state)
{
	peer_settle(&client, &server);
	for (int i = 0; i < 100; i++)
		assert_non_null(open_get(false));
	assert_int_equal(h2_conn_stream_room(client.conn), 0);
	assert_null(open_get(false));
	peer_settle(&client, &server);
	assert_int_equal(peer_counter(&server, "streams_refused_limit"), 0);
	h2_stream_reset(client.streams[3].stream, H2_CANCEL);
	assert_int_equal(h2_conn_stream_room(client.conn), 1);
	assert_non_null(open_get(false));
	peer_settle(&client, &server);
	assert_int_equal(peer_counter(&server, "streams_refused_limit"), 0);
	assert_int_equal(h2_conn_n_streams(server.conn), 100);
}

static void a_lowered_stream_limit_is_heard_and_kept(void **state)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	uint8_t limit[6] = {0, H2_SETTING_MAX_CONCURRENT_STREAMS, 0, 0, 0, 1};
	peer_settle(&client, &server);
	assert_non_null(open_get(false));
	assert_non_null(open_get(false));
	peer_clear_log(&client);
	raw_frame(raw, H2_SETTINGS, 0, 0, limit, 6);
	raw_frame(raw, H2_SETTINGS, 0, 0, limit, 6); // nothing new
	peer_feed(&client, raw);
	free(raw);
	assert_string_equal(client.log, "settings(1) ");
	assert_int_equal(h2_conn_stream_room(client.conn), 0);
	h2_stream_reset(client.streams[0].stream, H2_CANCEL);
	assert_int_equal(h2_conn_stream_room(client.conn), 0);
	h2_stream_reset(client.streams[1].stream, H2_CANCEL);
	assert_int_equal(h2_conn_stream_room(client.conn), 1);
}

// RFC 9113 5.1.1: ids don't come back.
static void ids_are_odd_and_rise(void **state)
{
	peer_settle(&client, &server);
	struct h2_stream *s = open_get(true);
	assert_int_equal(h2_stream_id(s), 1);
	s = open_get(true);
	assert_int_equal(h2_stream_id(s), 3);
	assert_int_equal(h2_conn_stream_room(client.conn), 98);
}

// HX-22: both steps of a drain; what is open ends in peace.
static void drain_refuses_only_what_comes_after_it(void **state)
{
	peer_settle(&client, &server);
	server.on_message = NULL;
	assert_non_null(open_get(true));
	peer_settle(&client, &server);
	h2_conn_drain_begin(server.conn);
	struct h2_stream *crossing = open_get(true); // sent before the GOAWAY arrived
	assert_non_null(crossing);
	peer_clear_log(&client);
	peer_settle(&client, &server);
	assert_string_equal(client.log, "goaway(2147483647 NO_ERROR) ");
	assert_int_equal(h2_conn_stream_room(client.conn), 0);
	assert_null(open_get(true));
	h2_conn_drain_end(server.conn, H2_NO_ERROR);
	peer_clear_log(&client);
	assert_true(respond(server.streams[0].stream, true));
	assert_true(respond(server.streams[1].stream, true));
	peer_settle(&client, &server);
	h2_conn_drain_begin(server.conn); // promises are not taken back (RFC 9113 6.8)
	peer_settle(&client, &server);
	assert_string_equal(client.log,
		"goaway(3 NO_ERROR) response(1 200 end) response(3 200 end) "
		"closed(1 NO_ERROR) closed(3 NO_ERROR) goaway(3 NO_ERROR) ");
	assert_true(h2_conn_idle(server.conn));
}

// HX-21: streams above the last id were surely not processed.
static void streams_above_goaways_last_id_are_safe_to_send_again(void **state)
{
	peer_settle(&client, &server);
	assert_non_null(open_get(true));
	peer_settle(&client, &server);
	assert_non_null(open_get(true));
	assert_non_null(open_get(false));
	peer_clear_log(&client);
	h2_conn_drain_end(server.conn, H2_NO_ERROR); // before it hears of 3 and 5
	peer_carry(&server, &client, SIZE_MAX);
	assert_string_equal(client.log,
		"goaway(1 NO_ERROR) closed(5 REFUSED_STREAM peer unprocessed) "
		"closed(3 REFUSED_STREAM peer unprocessed) ");
	assert_true(respond(server.streams[0].stream, true));
	peer_clear_log(&client);
	peer_settle(&client, &server);
	assert_string_equal(client.log, "response(1 200 end) closed(1 NO_ERROR) ");
	// 3 and 5 came to a server that had said goodbye: refused, and no error of the connection.
	assert_int_equal(peer_counter(&server, "streams_refused_drain"), 2);
	enum h2_error code;
	assert_false(h2_conn_failed(server.conn, &code));
	// A later error doesn't lift the last id again.
	struct raw *raw = calloc(1, sizeof(*raw));
	raw_frame(raw, H2_PING, 0, 1, "12345678", 8);
	peer_feed(&server, raw);
	free(raw);
	assert_string_equal(peer_frames(&server), "GOAWAY 1 PROTOCOL_ERROR\n");
}

// RFC 9113 6.8
static void a_goaway_may_not_take_back_its_promise(void **state)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	peer_settle(&client, &server);
	raw_frame(raw, H2_GOAWAY, 0, 0, "\0\0\0\3\0\0\0\0", 8);
	raw_frame(raw, H2_GOAWAY, 0, 0, "\0\0\0\5\0\0\0\0", 8);
	peer_feed(&client, raw);
	free(raw);
	enum h2_error code;
	assert_true(h2_conn_failed(client.conn, &code));
	assert_int_equal(code, H2_PROTOCOL_ERROR);
}

static void refused_stream_is_told_as_unprocessed(void **state)
{
	peer_settle(&client, &server);
	assert_non_null(open_get(false));
	peer_settle(&client, &server);
	peer_clear_log(&client);
	peer_clear_log(&server);
	h2_stream_reset(server.streams[0].stream, H2_REFUSED_STREAM);
	peer_settle(&client, &server);
	assert_string_equal(server.log, "closed(1 REFUSED_STREAM) ");
	assert_string_equal(client.log, "closed(1 REFUSED_STREAM peer unprocessed) ");
}

// HX-15: a whole response, then RST_STREAM(NO_ERROR) while the request still runs.
static void early_response_and_reset_without_error(void **state)
{
	peer_settle(&client, &server);
	struct h2_stream *s = open_get(false);
	assert_true(h2_stream_send_data(s, (const uint8_t *)"abc", 3, false));
	peer_settle(&client, &server);
	peer_clear_log(&client);
	peer_clear_log(&server);
	assert_true(respond(server.streams[0].stream, true));
	h2_stream_reset(server.streams[0].stream, H2_NO_ERROR);
	assert_string_equal(server.log, "closed(1 NO_ERROR) ");
	peer_settle(&client, &server);
	assert_string_equal(client.log, "response(1 200 end) closed(1 NO_ERROR peer) ");
}

static void stream_keeps_its_owners_pointer(void **state)
{
	int mine;
	struct h2_stream *s = open_get(false);
	assert_null(h2_stream_user(s));
	h2_stream_set_user(s, &mine);
	assert_ptr_equal(h2_stream_user(s), &mine);
	assert_false(h2_stream_got_end(s));
	assert_false(h2_stream_sent_end(s));
}

static void freeing_a_connection_closes_what_is_open(void **state)
{
	peer_settle(&client, &server);
	assert_non_null(open_get(true));
	assert_non_null(open_get(false));
	peer_settle(&client, &server);
	peer_clear_log(&server);
	peer_disconnect(&server, H2_CONNECT_ERROR);
	assert_string_equal(
		server.log, "closed(3 CONNECT_ERROR peer) closed(1 CONNECT_ERROR peer) ");
}

// Body, end and trailers are put together when they can be.
static void last_data_carries_the_end(void **state)
{
	peer_settle(&client, &server);
	struct h2_stream *s = open_get(false);
	assert_true(h2_stream_send_data(s, (const uint8_t *)"abc", 3, false));
	assert_true(h2_stream_send_data(s, (const uint8_t *)"de", 2, false));
	assert_true(h2_stream_send_data(s, NULL, 0, true));
	assert_string_equal(peer_frames(&client), "HEADERS 1\nDATA 1 5 end\n");
}

static void a_queue_is_taken_over(void **state)
{
	struct buf body = {0};
	static const uint8_t text[10000] = {1, 2, 3};
	peer_settle(&client, &server);
	struct h2_stream *s = open_get(false);
	assert_true(buf_append(&body, &chunks, text, sizeof(text)));
	uint32_t used = chunks.n_used;
	assert_true(h2_stream_send_buf(s, &body, true));
	assert_int_equal(body.len, 0);
	assert_true(chunks.n_used <= used); // moved, not copied
	server.log_data = false;
	peer_settle(&client, &server);
	assert_int_equal(server.streams[0].received, sizeof(text));
	assert_memory_equal(server.streams[0].body, text, sizeof(text));
}

// RFC 9113 6.10: a list that does not fit one frame.
static void large_header_list_goes_out_in_continuations(void **state)
{
	struct h2_conf conf = peer_conf();
	conf.max_header_bytes = 65536;
	tear_down(NULL);
	set_up_with(&conf, 4096);
	char *value = malloc(40000);
	memset(value, '~', 40000); // Huffman coding makes it longer: sent as it is
	struct field field = {.name = STR("x"), .value = {value, 40000}};
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/"),
		.fields = &field,
		.n_fields = 1,
		.end_stream = true};
	peer_settle(&client, &server);
	assert_non_null(h2_stream_open(client.conn, &m, NULL));
	static const uint8_t flags[] = {H2_FLAG_END_STREAM, 0, H2_FLAG_END_HEADERS};
	for (size_t i = 0, at = 0; i < 3; i++) {
		uint8_t head[H2_FRAME_HEAD];
		buf_copy_out(&client.out, at, head, sizeof(head));
		struct h2_frame f = h2_frame_unpack(head);
		assert_int_equal(f.type, i ? H2_CONTINUATION : H2_HEADERS);
		assert_int_equal(f.flags, flags[i]);
		at += H2_FRAME_HEAD + f.length;
	}
	peer_settle(&client, &server);
	assert_int_equal(peer_counter(&server, "streams_accepted"), 1);
	assert_int_equal(peer_counter(&server, "requests_too_large_431"), 0);
	free(value);
}

static void message_beyond_the_scratch_is_refused_and_harms_nothing(void **state)
{
	char *value = malloc(60000);
	memset(value, 'v', 60000);
	struct field field = {.name = STR("x"), .value = {value, 60000}};
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/"),
		.fields = &field,
		.n_fields = 1};
	peer_settle(&client, &server);
	assert_null(h2_stream_open(client.conn, &m, NULL));
	free(value);
	assert_int_equal(h2_conn_n_streams(client.conn), 0);
	assert_non_null(open_get(true));
	peer_settle(&client, &server);
	assert_int_equal(h2_conn_n_streams(server.conn), 1);
}

#define N_EQUAL 4

static void reset_all_of_one(struct peer *peers, int which)
{
	static struct raw raw;
	raw_frame(&raw, H2_SETTINGS, 0, 0, NULL, 0);
	for (uint32_t id = 1; id < 8; id += 2)
		raw_u32_frame(&raw, H2_RST_STREAM, id, H2_CANCEL);
	peer_feed(&peers[which], &raw);
	for (int k = 0; k < N_EQUAL; k++)
		assert_int_equal(h2_conn_n_streams(peers[k].conn), k <= which ? 0 : 4);
}

// In a table so small that equal ids of different connections share buckets.
static void connections_with_equal_ids_are_told_apart(void **state)
{
	struct h2_conf conf = peer_conf();
	struct peer *peers = calloc(N_EQUAL, sizeof(*peers));
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("b"),
		.path = STR("/")};
	conf.max_streams = N_EQUAL * 4;
	struct h2_context *ctx = h2_context_new(&conf, &chunks);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < N_EQUAL; i++) {
			peers[i].ctx = ctx;
			peers[i].chunks = &chunks;
			peer_clear_log(&peers[i]);
			assert_non_null(peer_connect(&peers[i], H2_CLIENT));
			for (int k = 0; k < 4; k++)
				assert_non_null(h2_stream_open(peers[i].conn, &m, NULL));
		}
		for (int i = 0; i < N_EQUAL; i++)
			reset_all_of_one(peers, i);
		for (int i = 0; i < N_EQUAL; i++)
			peer_disconnect(&peers[i], H2_NO_ERROR);
	}
	h2_context_free(ctx);
	free(peers);
}

// Callbacks that call back.

static void reset_in_message(struct peer *p, struct h2_stream *s, const struct h2_message *m)
{
	h2_stream_reset(s, H2_CANCEL);
}

static void stream_reset_inside_its_message(void **state)
{
	peer_settle(&client, &server);
	server.on_message = reset_in_message;
	struct h2_stream *s = open_get(false);
	assert_true(h2_stream_send_data(s, (const uint8_t *)"abc", 3, true));
	peer_clear_log(&server);
	peer_settle(&client, &server);
	assert_string_equal(server.log, "request(1 GET http a.test /x) closed(1 CANCEL) ");
	assert_true(h2_conn_idle(client.conn));
	assert_true(h2_conn_idle(server.conn));
}

static void reset_in_data(
	struct peer *p, struct h2_stream *s, const uint8_t *data, size_t len, bool end)
{
	h2_stream_reset(s, H2_CANCEL);
}

// In the middle of a frame, the rest of which comes later.
static void stream_reset_inside_its_data(void **state)
{
	peer_settle(&client, &server);
	server.on_data = reset_in_data;
	server.consume = false;
	struct h2_stream *s = open_get(false);
	assert_true(h2_stream_send_data(s, (const uint8_t *)"abcdefgh", 8, true));
	h2_conn_pump(client.conn, 65536);
	peer_clear_log(&server);
	while (client.out.len)
		peer_carry(&client, &server, 1);
	assert_string_equal(
		server.log, "request(1 GET http a.test /x) data(1 1) closed(1 CANCEL) ");
	peer_settle(&client, &server);
	assert_non_null(open_get(true));
	peer_settle(&client, &server);
	assert_non_null(strstr(server.log, "request(3 GET"));
}

static void reset_all(struct peer *p, struct h2_stream *s)
{
	for (size_t i = 0; i < p->n_streams; i++)
		if (p->streams[i].stream)
			h2_stream_reset(p->streams[i].stream, H2_CANCEL);
}

// TH-28: Each closing closes the others, one inside the other.
static void closing_one_stream_closes_all_others(void **state)
{
	peer_settle(&client, &server);
	for (int i = 0; i < 10; i++)
		assert_non_null(open_get(false));
	peer_settle(&client, &server);
	client.on_closed = reset_all;
	h2_stream_reset(server.streams[4].stream, H2_INTERNAL_ERROR);
	peer_settle(&client, &server);
	assert_int_equal(h2_conn_n_streams(client.conn), 0);
	assert_int_equal(h2_conn_n_streams(server.conn), 0);
}

// TH-28
static void closings_inside_goaway_and_free(void **state)
{
	peer_settle(&client, &server);
	for (int i = 0; i < 10; i++)
		assert_non_null(open_get(false));
	client.on_closed = server.on_closed = reset_all;
	h2_conn_drain_end(server.conn, H2_NO_ERROR);
	peer_carry(&server, &client, SIZE_MAX);
	assert_int_equal(h2_conn_n_streams(client.conn), 0);
	peer_settle(&client, &server);
	peer_disconnect(&server, H2_CANCEL);
}

static void reset_when_sent(struct peer *p, struct h2_stream *s, size_t n)
{
	h2_stream_reset(s, H2_CANCEL);
}

static void stream_reset_inside_on_sent(void **state)
{
	peer_settle(&client, &server);
	client.on_sent = reset_when_sent;
	static const uint8_t body[40000];
	for (int i = 0; i < 3; i++)
		assert_true(h2_stream_send_data(open_get(false), body, i == 1 ? 100 : 40000, true));
	peer_clear_log(&client);
	peer_frames(&client);
	assert_string_equal(client.log, "closed(1 CANCEL) closed(3 CANCEL) closed(5 CANCEL) ");
	assert_int_equal(h2_conn_n_streams(client.conn), 0);
}

static void pump_in_message(struct peer *p, struct h2_stream *s, const struct h2_message *m)
{
	if (m->kind == H2_REQUEST)
		assert_true(respond(s, true));
	h2_conn_pump(p->conn, 65536); // reports the end, inside the message that made it
}

static void pump_inside_a_message(void **state)
{
	peer_settle(&client, &server);
	server.on_message = pump_in_message;
	assert_non_null(open_get(true));
	peer_clear_log(&server);
	peer_settle(&client, &server);
	assert_string_equal(server.log, "request(1 GET http a.test /x end) closed(1 NO_ERROR) ");
}

static void feed_in_message(struct peer *p, struct h2_stream *s, const struct h2_message *m)
{
	assert_int_equal(h2_conn_feed(p->conn, (const uint8_t *)"x", 1), 0);
}

static void feed_inside_a_message_takes_nothing(void **state)
{
	peer_settle(&client, &server);
	server.on_message = feed_in_message;
	assert_non_null(open_get(true));
	peer_settle(&client, &server);
	enum h2_error code;
	assert_false(h2_conn_failed(server.conn, &code));
}

static void open_in_message(struct peer *p, struct h2_stream *s, const struct h2_message *m)
{
	if (m->kind == H2_RESPONSE && p->n_streams < 20)
		assert_non_null(open_get(true));
}

static void streams_opened_inside_responses(void **state)
{
	peer_settle(&client, &server);
	client.on_message = open_in_message;
	server.on_message = answer_at_once;
	assert_non_null(open_get(true));
	peer_settle(&client, &server);
	assert_int_equal(client.n_streams, 20);
	assert_int_equal(h2_conn_n_streams(client.conn), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(client.streams[i].code, H2_NO_ERROR);
}

// Calls on a connection that has failed do nothing, and say so.
static void failed_connection_sends_nothing(void **state)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	peer_settle(&client, &server);
	struct h2_stream *s = open_get(false);
	assert_true(h2_stream_send_data(s, (const uint8_t *)"abc", 3, false));
	peer_frames(&client);
	raw_frame(raw, H2_PING, 0, 1, "12345678", 8);
	peer_feed(&client, raw);
	free(raw);
	assert_string_equal(peer_frames(&client), "GOAWAY 0 PROTOCOL_ERROR\n");
	assert_false(h2_stream_send_data(s, (const uint8_t *)"abc", 3, false));
	assert_int_equal(h2_conn_stream_room(client.conn), 0);
	assert_null(open_get(false));
	h2_conn_drain_begin(client.conn);
	h2_stream_consumed(s, 0);
	peer_clear_log(&client);
	h2_stream_reset(s, H2_CANCEL);
	assert_string_equal(client.log, "closed(1 CANCEL) ");
	assert_string_equal(peer_frames(&client), "");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
RUN_SUITE("h2/conn", CASE(settings_make_both_ends_ready),
	CASE(what_a_connection_begins_with_is_counted),
	CASE(header_only_request_and_response_end_clean),
	CASE(body_larger_than_the_windows_comes_back_with_trailers),
	CASE(client_opens_no_more_streams_than_the_server_allows),
	CASE(a_lowered_stream_limit_is_heard_and_kept), CASE(ids_are_odd_and_rise),
	CASE(drain_refuses_only_what_comes_after_it),
	CASE(streams_above_goaways_last_id_are_safe_to_send_again),
	CASE(a_goaway_may_not_take_back_its_promise), CASE(refused_stream_is_told_as_unprocessed),
	CASE(early_response_and_reset_without_error), CASE(stream_keeps_its_owners_pointer),
	CASE(freeing_a_connection_closes_what_is_open), CASE(last_data_carries_the_end),
	CASE(a_queue_is_taken_over), CASE(large_header_list_goes_out_in_continuations),
	CASE(message_beyond_the_scratch_is_refused_and_harms_nothing),
	CASE(connections_with_equal_ids_are_told_apart), CASE(stream_reset_inside_its_message),
	CASE(stream_reset_inside_its_data), CASE(closing_one_stream_closes_all_others),
	CASE(closings_inside_goaway_and_free), CASE(stream_reset_inside_on_sent),
	CASE(pump_inside_a_message), CASE(feed_inside_a_message_takes_nothing),
	CASE(streams_opened_inside_responses), CASE(failed_connection_sends_nothing))
