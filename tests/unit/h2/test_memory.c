// SPDX-License-Identifier: Apache-2.0
// Memory: pools that run dry at any moment cost streams or the connection, never a leak or a crash;
// what was taken comes back; nothing comes from libc while a connection lives.
#include "dataplane/h2/impl.h"
#include "tests/unit/h2/h2_peer.h"

#include <malloc.h>

static struct pool chunks;
static struct peer client, server;

static void echo_head(struct peer *p, struct h2_stream *s, const struct h2_message *m)
{
	struct h2_message head = {
		.kind = H2_RESPONSE, .status = 200, .fields = m->fields, .n_fields = m->n_fields};
	if (m->kind == H2_REQUEST && !h2_stream_send_message(s, &head))
		h2_stream_reset(s, H2_INTERNAL_ERROR);
}

static void echo_data(
	struct peer *p, struct h2_stream *s, const uint8_t *data, size_t len, bool end)
{
	static const struct field field = {.name = STR("t"), .value = STR("u")};
	struct h2_message t = {.kind = H2_TRAILERS, .fields = &field, .n_fields = 1};
	if (!h2_stream_send_data(s, data, len, false) || (end && !h2_stream_send_message(s, &t)))
		h2_stream_reset(s, H2_INTERNAL_ERROR);
}

static struct h2_stream *post(int i, size_t len)
{
	static const uint8_t body[100000];
	char name[32], value[300];
	snprintf(name, sizeof(name), "x-%d", i); // each grows the tables
	memset(value, 'a' + i, sizeof(value));
	struct field field = {{name, strlen(name)}, {value, sizeof(value)}, false};
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("POST"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/"),
		.fields = &field,
		.n_fields = 1};
	struct h2_stream *s = h2_stream_open(client.conn, &m, NULL);
	if (!s)
		return NULL;
	peer_add_stream(&client, s);
	if (h2_stream_send_data(s, body, len, true))
		return s;
	h2_stream_reset(s, H2_CANCEL);
	return NULL;
}

static bool failed(const struct peer *p)
{
	enum h2_error code;
	return h2_conn_failed(p->conn, &code);
}

static void settle(void)
{
	peer_settle(&client, &server);
	client.log_len = server.log_len = 0;
}

static void worlds_begin(uint32_t n_chunks, uint32_t max_streams)
{
	struct h2_conf conf = peer_conf();
	conf.max_streams = max_streams;
	assert_int_equal(buf_pool_init(&chunks, n_chunks), 0);
	peer_init(&client, &chunks, &conf);
	peer_init(&server, &chunks, &conf);
	client.log_data = server.log_data = false;
	server.on_message = echo_head;
	server.on_data = echo_data;
}

static void worlds_end(void)
{
	if (client.conn)
		peer_disconnect(&client, H2_CANCEL);
	if (server.conn)
		peer_disconnect(&server, H2_CANCEL);
	assert_int_equal(chunks.n_used, 0);
	struct peer *both[] = {&client, &server};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(both[i]->ctx->conns.n_used, 0);
		assert_int_equal(both[i]->ctx->streams.n_used, 0);
		assert_int_equal(hpack_mem_used(both[i]->ctx->hpack_mem), 0);
		h2_context_free(both[i]->ctx);
		for (size_t k = 0; k < PEER_MAX_STREAMS; k++)
			free(both[i]->streams[k].body);
	}
	pool_fini(&chunks);
}

static bool connect_both(void)
{
	return peer_connect(&client, H2_CLIENT) && peer_connect(&server, H2_SERVER);
}

// True = it all went through.
static bool exchange(int n_streams, size_t len)
{
	struct h2_stream *s[8];
	for (int i = 0; i < n_streams; i++)
		s[i] = post(i, len);
	settle();
	bool ok = true;
	for (int i = 0; i < n_streams; i++) {
		size_t k = client.n_streams - (size_t)n_streams + (size_t)i;
		ok = ok && s[i] && k < client.n_streams && client.streams[k].closed &&
		     client.streams[k].code == H2_NO_ERROR && client.streams[k].received == len;
	}
	return ok;
}

// With n chunks for everything, from none to plenty; then with all of them again.
static void chunks_run_dry_at_each_point(void **state)
{
	enum { ALL = 512 };
	int n_good = 0, n_recovered = 0, n_bad = 0;
	for (int n = 0; n < 120; n++) {
		void *hidden[ALL];
		worlds_begin(ALL, 256);
		for (int i = n; i < ALL; i++)
			hidden[i] = pool_take(&chunks);
		bool up = connect_both();
		bool ok = up && exchange(5, 30000);
		for (int i = n; i < ALL; i++)
			pool_put(&chunks, hidden[i]);
		n_good += ok;
		n_bad += !ok;
		if (up) {
			settle();
			if (!failed(&client) && !failed(&server)) {
				client.n_streams = server.n_streams = 0;
				assert_true(exchange(3, 50000));
				n_recovered += !ok;
			}
		}
		worlds_end();
	}
	assert_true(n_good > 5);
	assert_true(n_bad > 5);
	assert_true(n_recovered > 5);
}

static void *hidden_chunks[64];
static uint32_t n_hidden;

static void hide_all_chunks_but(uint32_t n_left)
{
	while (pool_left(&chunks) > n_left)
		hidden_chunks[n_hidden++] = pool_take(&chunks);
}

static void show_chunks(void)
{
	while (n_hidden)
		pool_put(&chunks, hidden_chunks[--n_hidden]);
}

// With chunks that can all be hidden.
static void small_worlds_begin(void)
{
	n_hidden = 0;
	worlds_begin(sizeof(hidden_chunks) / sizeof(hidden_chunks[0]), 16);
	assert_true(connect_both());
	settle();
}

// Not another byte goes out: one chunk is full, and there is no other.
static void fill_output(struct peer *p)
{
	static const uint8_t filler[BUF_CHUNK_ROOM - 16];
	assert_true(buf_append(&p->out, &chunks, filler, sizeof(filler)));
	hide_all_chunks_but(0);
}

// TH-08: Not even a PING ACK can be queued: the peer's bytes wait, and nothing is lost.
static void feed_stops_at_a_ping_that_cannot_be_answered(void **state)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	small_worlds_begin();
	fill_output(&server);
	raw_frame(raw, H2_PING, 0, 0, "12345678", 8);
	raw_frame(raw, H2_SETTINGS, 0, 0, NULL, 0);
	assert_int_equal(h2_conn_feed(server.conn, raw->data, raw->len), H2_FRAME_HEAD);
	assert_int_equal(h2_conn_feed(server.conn, raw->data + 9, raw->len - 9), 0);
	buf_clear(&server.out, &chunks); // TCP's peer has read on
	assert_int_equal(h2_conn_feed(server.conn, raw->data + 9, raw->len - 9), raw->len - 9);
	assert_false(failed(&server));
	assert_string_equal(peer_frames(&server), "PING ack\nSETTINGS ack\n");
	show_chunks();
	free(raw);
	worlds_end();
}

// The last frame of the input has no bytes that could wait: the pump says that there is more to do
// when TCP has room, since nobody feeds it again.
static void a_settings_frame_without_payload_is_answered_when_there_is_memory(void **state)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	small_worlds_begin();
	fill_output(&server);
	size_t full = server.out.len;
	raw_frame(raw, H2_SETTINGS, 0, 0, NULL, 0);
	assert_int_equal(h2_conn_feed(server.conn, raw->data, raw->len), raw->len);
	assert_true(h2_conn_pump(server.conn, 0));
	assert_int_equal(server.out.len, full);
	buf_clear(&server.out, &chunks);
	assert_false(h2_conn_pump(server.conn, 0));
	assert_string_equal(peer_frames(&server), "SETTINGS ack\n");
	raw->len = 0; // what has bytes to come waits for them, not for room
	raw_frame(raw, H2_PING, 0, 0, "12345678", 8);
	assert_int_equal(h2_conn_feed(server.conn, raw->data, H2_FRAME_HEAD), H2_FRAME_HEAD);
	assert_false(h2_conn_pump(server.conn, 0));
	show_chunks();
	free(raw);
	worlds_end();
}

// With one chunk, a frame that needs one for its header and one for the cut in the queue waits.
static void a_frame_that_does_not_fit_the_pool_waits(void **state)
{
	small_worlds_begin();
	struct h2_stream *s = post(0, 5000);
	assert_non_null(s);
	buf_clear(&client.out, &chunks);
	hide_all_chunks_but(1);
	assert_true(h2_conn_pump(client.conn, 3009));
	assert_int_equal(client.out.len, 0);
	show_chunks();
	assert_true(h2_conn_pump(client.conn, 3009));
	assert_int_equal(client.out.len, 3009);
	worlds_end();
}

// So does what passes through, its end too, which has no bytes to be queued.
static void what_passes_waits_for_chunks(void **state)
{
	static const uint8_t body[100];
	static const struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("POST"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/")};
	small_worlds_begin();
	struct h2_stream *s = h2_stream_open(client.conn, &m, NULL);
	assert_non_null(s);
	peer_add_stream(&client, s);
	peer_frames(&client);
	assert_false(h2_conn_pump(client.conn, 1000));
	hide_all_chunks_but(1);
	size_t sent = 7;
	assert_false(h2_stream_pass_data(s, body, sizeof(body), false, &sent));
	assert_int_equal(sent, 7);
	assert_true(h2_stream_pass_data(s, NULL, 0, true, &sent));
	assert_int_equal(sent, 0);
	assert_true(h2_stream_sent_end(s));
	assert_true(h2_conn_pump(client.conn, 1000));
	assert_int_equal(client.out.len, 0);
	show_chunks();
	assert_false(h2_conn_pump(client.conn, 1000));
	assert_string_equal(peer_frames(&client), "DATA 1 0 end\n");
	worlds_end();
}

// A message that may need two chunks isn't begun with one: half a block would part the tables.
static void a_message_that_may_not_fit_the_pool_is_not_begun(void **state)
{
	char value[3000];
	memset(value, '~', sizeof(value)); // Huffman coding gains nothing
	struct field field = {.name = STR("x"), .value = {value, sizeof(value)}};
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/"),
		.fields = &field,
		.n_fields = 1};
	small_worlds_begin();
	hide_all_chunks_but(1);
	assert_null(h2_stream_open(client.conn, &m, NULL));
	show_chunks();
	assert_false(failed(&client));
	assert_true(exchange(1, 10));
	worlds_end();
}

// TH-70: Bodies leave enough of the pool for control frames, and for the frames that drain them.
static void bodies_do_not_take_the_last_chunks(void **state)
{
	static const uint8_t body[1000];
	worlds_begin(64, 16);
	server.on_message = NULL; // it only listens
	server.on_data = NULL;
	assert_true(connect_both());
	settle();
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/")};
	struct h2_stream *s = h2_stream_open(client.conn, &m, NULL);
	peer_add_stream(&client, s);
	while (h2_stream_send_data(s, body, sizeof(body), false))
		;
	assert_true(pool_left(&chunks) >= 8);
	settle(); // drains as far as the window goes, and there is memory again
	assert_true(h2_stream_send_data(s, body, sizeof(body), false));
	worlds_end();
}

// All connections decode large fields in the same room: one that fails in the middle of such a
// field leaves it to the others.
static void a_field_cut_short_does_not_keep_the_room_for_large_ones(void **state)
{
	// A name of 60000 Huffman coded bytes, of which only some come.
	static const uint8_t cut[100] = {0x40, 0xff, 0xe1, 0xd3, 0x03};
	static uint8_t block[48000];
	struct raw *raw = calloc(1, sizeof(*raw));
	struct peer *bad = calloc(3, sizeof(*bad));
	worlds_begin(64, 16);
	for (int i = 0; i < 3; i++) {
		bad[i].ctx = server.ctx;
		bad[i].chunks = &chunks;
		assert_non_null(peer_connect(&bad[i], H2_SERVER));
		raw_preface(raw, H2_CLIENT);
		raw_frame(raw, H2_HEADERS, 4, 1, cut, sizeof(cut));
		peer_feed(&bad[i], raw);
		enum h2_error code = H2_NO_ERROR;
		assert_true(h2_conn_failed(bad[i].conn, &code));
		assert_int_equal(code, H2_COMPRESSION_ERROR);
	}
	assert_non_null(peer_connect(&server, H2_SERVER));
	server.on_message = NULL;
	char *value = calloc(1, 40001);
	memset(value, 'v', 40000);
	size_t len = raw_fields(block, (const char *const[]){":method", "GET", ":scheme", "http",
					       ":authority", "a", ":path", "/", "x", value, NULL});
	raw_preface(raw, H2_CLIENT);
	raw_frame(raw, H2_HEADERS, 1, 1, block, 16000);
	raw_frame(raw, H2_CONTINUATION, 0, 1, block + 16000, 16000);
	raw_frame(raw, H2_CONTINUATION, 4, 1, block + 32000, len - 32000);
	server.log_len = 0;
	peer_feed(&server, raw);
	assert_int_equal(peer_counter(&server, "requests_too_large_431"), 1);
	assert_false(failed(&server));
	for (int i = 0; i < 3; i++)
		peer_disconnect(&bad[i], H2_CANCEL);
	free(bad);
	free(raw);
	free(value);
	worlds_end();
}

// A header block in pieces that cannot be kept is lost, and with it the tables.
static void header_block_without_memory_ends_the_connection(void **state)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	small_worlds_begin();
	hide_all_chunks_but(0);
	raw_headers(raw, 1, true, get_request);
	h2_conn_feed(server.conn, raw->data, 20);
	enum h2_error code = H2_NO_ERROR;
	assert_true(h2_conn_failed(server.conn, &code));
	assert_int_equal(code, H2_INTERNAL_ERROR);
	show_chunks();
	free(raw);
	worlds_end();
}

// TH-70: … and takes none of the last chunks, so that its client can be told.
static void header_blocks_do_not_take_the_last_chunks(void **state)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	small_worlds_begin();
	hide_all_chunks_but(8);
	raw_headers(raw, 1, true, get_request);
	h2_conn_feed(server.conn, raw->data, 20);
	assert_true(failed(&server));
	assert_string_equal(peer_frames(&server), "GOAWAY 0 INTERNAL_ERROR\n");
	show_chunks();
	free(raw);
	worlds_end();
}

// TH-70: … but an answer's has them: with its connection all of a backend's requests would be
// lost.
static void an_answers_header_block_has_the_last_chunks(void **state)
{
	static const char *const answer[] = {":status", "200", NULL};
	struct raw *raw = calloc(1, sizeof(*raw));
	small_worlds_begin();
	assert_non_null(post(0, 10));
	hide_all_chunks_but(8);
	raw_headers(raw, 1, true, answer);
	h2_conn_feed(client.conn, raw->data, 12);
	h2_conn_feed(client.conn, raw->data + 12, raw->len - 12);
	assert_false(failed(&client));
	assert_true(client.streams[0].got_end);
	show_chunks();
	free(raw);
	worlds_end();
}

// TH-70
static void stream_pool_runs_dry(void **state)
{
	for (uint32_t n = 1; n < 8; n++) {
		worlds_begin(512, n);
		assert_true(connect_both());
		settle();
		assert_int_equal(exchange(5, 1000), n >= 5);
		assert_int_equal(client.n_streams, n < 5 ? n : 5); // room says so beforehand
		worlds_end();
	}
}

// TH-21: The server's pool is smaller than the client's view of it: refused, and safe to send
// again.
static void server_without_streams_refuses(void **state)
{
	worlds_begin(512, 256);
	assert_true(connect_both());
	settle();
	struct h2_stream *hidden[256];
	uint32_t n = 0;
	while (pool_left(&server.ctx->streams))
		hidden[n++] = pool_take(&server.ctx->streams);
	assert_non_null(post(0, 10));
	settle();
	assert_int_equal(client.streams[0].code, H2_REFUSED_STREAM);
	assert_true(client.streams[0].unprocessed);
	while (n)
		pool_put(&server.ctx->streams, hidden[--n]);
	client.n_streams = 0;
	assert_true(exchange(2, 1000));
	worlds_end();
}

static void connection_pool_runs_dry(void **state)
{
	struct buf out[5] = {0};
	static const struct h2_events events;
	struct h2_conn *c[4];
	worlds_begin(64, 16);
	for (int i = 0; i < 4; i++) {
		c[i] = h2_conn_new(client.ctx, H2_CLIENT, &events, &out[i], NULL);
		assert_non_null(c[i]);
	}
	assert_null(h2_conn_new(client.ctx, H2_CLIENT, &events, &out[4], NULL));
	assert_int_equal(out[4].len, 0);
	for (int i = 0; i < 4; i++) {
		h2_conn_free(c[i], H2_NO_ERROR);
		buf_clear(&out[i], &chunks);
	}
	worlds_end();
}

// HPACK memory fails at the n-th block. What we send only gets longer; where the peer's table is
// lost, that connection ends, and no other.
static void hpack_memory_runs_dry_at_each_point(void **state)
{
	int n_bad = 0;
	for (int n = 0; n < 60; n++) {
		worlds_begin(512, 256);
		assert_true(connect_both());
		struct peer *victim = n % 2 ? &client : &server;
		struct hpack_mem *m = victim->ctx->hpack_mem;
		static void *hidden[1 << 17];
		size_t k = 0;
		static const size_t sizes[] = {30000, 4000, 1000, 320, 48};
		for (size_t i = 0; i < 5; i++)
			while ((hidden[k] = hpack_mem_take(m, sizes[i])))
				k++;
		for (int i = 0; i < n / 2 && k; i++)
			hpack_mem_put(m, hidden[--k]);
		// The second time fields enter the table, and the third time it is used.
		bool ok = true;
		for (int i = 0; i < 3 && ok; i++) {
			client.n_streams = server.n_streams = 0;
			ok = exchange(5, 100);
		}
		n_bad += !ok;
		assert_true(ok || failed(victim));
		if (victim == &server && n < 4)
			assert_false(ok); // memory was short
		while (k)
			hpack_mem_put(m, hidden[--k]);
		if (failed(&client) || failed(&server)) { // a new connection has memory again
			peer_disconnect(&client, H2_CANCEL);
			peer_disconnect(&server, H2_CANCEL);
			assert_true(connect_both());
		}
		client.n_streams = server.n_streams = 0;
		assert_true(exchange(5, 100));
		worlds_end();
	}
	assert_true(n_bad > 5);
}

// A flow of requests leaves everything as it was, and libc untouched.
static void memory_returns_to_its_baseline(void **state)
{
	worlds_begin(512, 256);
	assert_true(connect_both());
	settle();
	assert_true(exchange(5, 1000));
	// Two rounds: the tables are full after the first.
	size_t blocks = 0, libc = 0;
	for (int i = 0; i < 200; i++) {
		client.n_streams = server.n_streams = 0;
		assert_true(exchange(5, 1000));
		if (i == 100) {
			blocks = hpack_mem_used(server.ctx->hpack_mem);
			libc = mallinfo2().uordblks;
		}
	}
	assert_int_equal(chunks.n_used, 0);
	assert_int_equal(server.ctx->streams.n_used, 0);
	assert_int_equal(hpack_mem_used(server.ctx->hpack_mem), blocks);
	assert_int_equal(mallinfo2().uordblks, libc);
	worlds_end();
}

// From the context on, nothing comes from libc: not for connections, tables or streams.
static void nothing_is_allocated_from_libc(void **state)
{
	static const struct h2_events events;
	struct h2_conn *c[4];
	struct buf out[4] = {0};
	worlds_begin(64, 16);
	size_t before = mallinfo2().uordblks;
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/")};
	for (int i = 0; i < 4; i++) {
		c[i] = h2_conn_new(client.ctx, H2_CLIENT, &events, &out[i], NULL);
		assert_non_null(h2_stream_open(c[i], &m, NULL));
	}
	assert_int_equal(mallinfo2().uordblks, before);
	for (int i = 0; i < 4; i++)
		buf_clear(&out[i], &chunks);
	assert_true(hpack_mem_used(client.ctx->hpack_mem) >= 4);
	h2_context_free(client.ctx);
	client.ctx = h2_context_new(&client.conf, &chunks);
	worlds_end();
}

RUN_SUITE("h2/memory", cmocka_unit_test(chunks_run_dry_at_each_point),
	cmocka_unit_test(feed_stops_at_a_ping_that_cannot_be_answered),
	cmocka_unit_test(a_settings_frame_without_payload_is_answered_when_there_is_memory),
	cmocka_unit_test(a_frame_that_does_not_fit_the_pool_waits),
	cmocka_unit_test(what_passes_waits_for_chunks),
	cmocka_unit_test(a_message_that_may_not_fit_the_pool_is_not_begun),
	cmocka_unit_test(bodies_do_not_take_the_last_chunks),
	cmocka_unit_test(a_field_cut_short_does_not_keep_the_room_for_large_ones),
	cmocka_unit_test(header_block_without_memory_ends_the_connection),
	cmocka_unit_test(header_blocks_do_not_take_the_last_chunks),
	cmocka_unit_test(an_answers_header_block_has_the_last_chunks),
	cmocka_unit_test(stream_pool_runs_dry), cmocka_unit_test(server_without_streams_refuses),
	cmocka_unit_test(connection_pool_runs_dry),
	cmocka_unit_test(hpack_memory_runs_dry_at_each_point),
	cmocka_unit_test(memory_returns_to_its_baseline),
	cmocka_unit_test(nothing_is_allocated_from_libc))
