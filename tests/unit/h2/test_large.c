// SPDX-License-Identifier: Apache-2.0
// Header blocks above the limits, up to the bytes that are decoded and dropped (HX-25): they end
// their own stream, and the connection goes on with its table in step.
#include "dataplane/h2/impl.h"
#include "tests/unit/h2/h2_peer.h"

#include <nghttp2/nghttp2.h>

static struct pool chunks;
static struct peer us;
static struct raw raw;
static nghttp2_hd_deflater *deflater;

static int set_up(void **state)
{
	struct h2_conf conf = peer_conf();
	conf.max_header_bytes = 60 << 10; // as a worker's
	assert_int_equal(buf_pool_init(&chunks, 1024), 0);
	peer_init(&us, &chunks, &conf);
	raw.len = 0;
	return 0;
}

static int tear_down(void **state)
{
	peer_fini(&us);
	assert_int_equal(chunks.n_used, 0);
	pool_fini(&chunks);
	return 0;
}

static void start(enum h2_role role)
{
	assert_non_null(peer_connect(&us, role));
	us.n_streams = 0;
	assert_int_equal(nghttp2_hd_deflate_new(&deflater, 4096), 0);
	raw_preface(&raw, role == H2_SERVER ? H2_CLIENT : H2_SERVER);
	raw_frame(&raw, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0);
	peer_feed(&us, &raw);
	peer_frames(&us);
	peer_clear_log(&us);
}

static void stop(void)
{
	nghttp2_hd_deflate_del(deflater);
	peer_disconnect(&us, H2_CANCEL);
	peer_clear_log(&us);
}

static uint32_t open_stream(void)
{
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/")};
	struct h2_stream *s = h2_stream_open(us.conn, &m, NULL);
	assert_non_null(s);
	peer_add_stream(&us, s);
	return h2_stream_id(s);
}

static nghttp2_nv nv(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
		strlen(value), NGHTTP2_NV_FLAG_NONE};
}

enum part { REQUEST, GRPC_REQUEST, HEAD_REQUEST, RESPONSE, TRAILERS };

// A block with so many fields of so many bytes in its midst, as frames of at most `frame` bytes.
static void write_block(uint32_t id, enum part part, size_t n, size_t bytes, size_t frame)
{
	static uint8_t block[512 << 10];
	char *large = calloc(1, bytes + 1);
	memset(large, bytes % 1000 ? 'e' : '~', bytes); // short code, or none
	nghttp2_nv nvs[120];
	size_t k = 0;
	if (part <= HEAD_REQUEST) {
		nvs[k++] = nv(":method", part == HEAD_REQUEST ? "HEAD" : "POST");
		nvs[k++] = nv(":scheme", "http");
		nvs[k++] = nv(":authority", "a.test");
		nvs[k++] = nv(":path", "/some/path");
	} else if (part == RESPONSE) {
		nvs[k++] = nv(":status", "200");
	}
	nvs[k++] = nv("x-before", "one two three");
	for (size_t i = 0; i < n; i++)
		nvs[k++] = nv("x-large", large);
	if (part == GRPC_REQUEST)
		nvs[k++] = nv("content-type", "application/grpc");
	nvs[k++] = nv("x-after", "four five six");
	ssize_t len = nghttp2_hd_deflate_hd(deflater, block, sizeof(block), nvs, k);
	assert_true(len > 0);
	uint8_t flags = part == RESPONSE ? 0 : H2_FLAG_END_STREAM;
	for (size_t at = 0; at < (size_t)len; at += frame) {
		size_t left = (size_t)len - at;
		flags |= left <= frame ? H2_FLAG_END_HEADERS : 0;
		raw_frame(&raw, at ? H2_CONTINUATION : H2_HEADERS, flags, id, block + at,
			left < frame ? left : frame);
		flags = 0;
	}
	free(large);
}

// In segments of so many bytes.
static void feed_by(size_t n)
{
	for (size_t at = 0; at < raw.len; at += n) {
		size_t len = raw.len - at < n ? raw.len - at : n;
		assert_int_equal(h2_conn_feed(us.conn, raw.data + at, len), len);
		// What is gathered, and a fragment.
		assert_true(chunks.n_used < (H2_MAX_GATHERED + 65536) / BUF_CHUNK_ROOM);
	}
	raw.len = 0;
}

static const struct shape {
	size_t n, bytes, frame, segment;
} shapes[] = {
	{1, 62000, 16384, 1460}, // above the limit on the list alone
	{1, 66000, 16384, 1460},
	{1, 90000, 16384, 1460},
	{1, 200000, 16384, 1 << 20},
	{1, 200000, 16384, 7},
	{1, 200000, 2000, 1460},
	{14, 15000, 16384, 1460},
	{25, 4000, 16384, 1460}, // each is an entry of the table
	{20, 5000, 5000, 16384},
	{1, 150001, 16384, 1460},
	{9, 15001, 16384, 1460},
	{2, 100000, 16384, 1460},
	{3, 60000, 16384, 100},
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void check_alive(enum part part)
{
	enum h2_error code;
	assert_false(h2_conn_failed(us.conn, &code));
	peer_clear_log(&us);
	if (part <= HEAD_REQUEST) {
		write_block(3, REQUEST, 0, 0, 16384);
		peer_feed(&us, &raw);
		assert_string_equal(us.log, "request(3 POST http a.test /some/path "
					    "x-before=one two three x-after=four five six end) ");
	} else {
		uint32_t id = open_stream();
		write_block(id, RESPONSE, 0, 0, 16384);
		peer_feed(&us, &raw);
		assert_non_null(
			strstr(us.log, " 200 x-before=one two three x-after=four five six) "));
	}
}

static void a_request_that_is_too_large_is_431_and_the_next_one_is_served(void **state)
{
	for (size_t i = 0; i < N_SHAPES; i++) {
		const struct shape *s = &shapes[i];
		for (enum part part = REQUEST; part <= HEAD_REQUEST; part++) {
			start(H2_SERVER);
			write_block(1, part, s->n, s->bytes, s->frame);
			feed_by(s->segment);
			assert_non_null(strstr(us.log, "bad=431"));
			assert_int_equal(strstr(us.log, " grpc") != NULL, part == GRPC_REQUEST);
			assert_int_equal(strstr(us.log, "HEAD ") != NULL, part == HEAD_REQUEST);
			assert_string_equal(peer_frames(&us), "");
			check_alive(part);
			stop();
		}
	}
	assert_int_equal(peer_counter(&us, "requests_too_large_431"), 3 * N_SHAPES);
}

static void trailers_of_a_request_that_are_too_large_are_431(void **state)
{
	for (size_t i = 0; i < N_SHAPES; i++) {
		const struct shape *s = &shapes[i];
		start(H2_SERVER);
		raw_headers(&raw, 1, false, get_request);
		write_block(1, TRAILERS, s->n, s->bytes, s->frame);
		feed_by(s->segment);
		assert_non_null(strstr(us.log, "trailers(1 bad=431"));
		write_block(3, REQUEST, 0, 0, 16384);
		peer_clear_log(&us);
		peer_feed(&us, &raw);
		assert_non_null(strstr(us.log, "x-after=four five six end) "));
		stop();
	}
}

static void a_response_that_is_too_large_ends_its_stream_alone(void **state)
{
	for (size_t i = 0; i < 2 * N_SHAPES; i++) {
		const struct shape *s = &shapes[i / 2];
		start(H2_CLIENT);
		uint32_t other = open_stream(), id = open_stream();
		if (i % 2)
			raw_headers(&raw, id, false, ok_response);
		write_block(id, i % 2 ? TRAILERS : RESPONSE, s->n, s->bytes, s->frame);
		feed_by(s->segment);
		assert_non_null(strstr(us.log, "closed(3 ENHANCE_YOUR_CALM peer) "));
		assert_null(strstr(us.log, "x-"));
		assert_string_equal(peer_frames(&us), "HEADERS 1\nHEADERS 3\n"
						      "RST_STREAM 3 ENHANCE_YOUR_CALM\n");
		assert_false(peer_stream_of(&us, other)->closed);
		check_alive(RESPONSE);
		stop();
	}
	assert_int_equal(peer_counter(&us, "malformed_too_large"), 2 * N_SHAPES);
}

// Whoever resets a stream may still get a header for it.
static void a_large_block_of_a_stream_that_is_gone_keeps_the_table_in_step(void **state)
{
	start(H2_CLIENT);
	uint32_t id = open_stream();
	h2_stream_reset(peer_stream_of(&us, id)->stream, H2_CANCEL);
	write_block(id, RESPONSE, 1, 100000, 16384);
	feed_by(1460);
	check_alive(RESPONSE);
	stop();
}

static bool calmed(void)
{
	enum h2_error code = H2_NO_ERROR;
	return h2_conn_failed(us.conn, &code) && code == H2_ENHANCE_YOUR_CALM &&
	       strstr(peer_frames(&us), "ENHANCE_YOUR_CALM");
}

// TH-04: The same in one value and in many small fields: its stream is told why it ends.
static void a_block_above_1_mib_is_calmed(void **state)
{
	for (int role = 0; role < 2; role++) {
		static uint8_t piece[16384];
		start(role ? H2_CLIENT : H2_SERVER);
		uint32_t id = role ? open_stream() : 1;
		// A value of 16 MiB.
		memcpy(piece, "\x40\x01x\x7f\x81\xff\xff\x07", 8);
		raw_frame(&raw, H2_HEADERS, 0, id, piece, sizeof(piece));
		memset(piece, 'x', sizeof(piece));
		for (int i = 1; i < (1 << 20) / 16384; i++) {
			raw_frame(&raw, H2_CONTINUATION, 0, id, piece, sizeof(piece));
			feed_by(1460);
		}
		assert_false(calmed());
		raw_frame(&raw, H2_CONTINUATION, 0, id, piece, 1);
		feed_by(1460);
		assert_true(calmed());
		assert_int_equal(strstr(us.log, "closed(1 ENHANCE_YOUR_CALM peer)") != NULL, role);
		assert_int_equal(peer_counter(&us, "abuse_continuation"), 1 + role);
		stop();
	}
}

// TH-05, CVE-2016-6581 again, behind what is gathered.
static void a_bomb_behind_a_large_value_is_calmed(void **state)
{
	static uint8_t piece[16384];
	start(H2_SERVER);
	size_t n = 0;
	memcpy(piece, "\x82\x86\x84\x40\1b\x7f\xa1\x1e", 8); // b: 4000 bytes
	memset(piece + 8, 'x', 4000);
	n = 4008;
	memcpy(piece + n, "\x00\x01x\x7f\x81\xe9\x03", 7); // x: 62720
	memset(piece + n + 7, 'x', sizeof(piece) - n - 7);
	raw_frame(&raw, H2_HEADERS, 0, 1, piece, sizeof(piece));
	memset(piece, 'x', sizeof(piece));
	for (int i = 0; i < 4; i++)
		raw_frame(&raw, H2_CONTINUATION, 0, 1, piece, sizeof(piece));
	memset(piece, 0xbe, sizeof(piece));
	raw_frame(&raw, H2_CONTINUATION, 4, 1, piece, sizeof(piece));
	feed_by(1460);
	assert_true(calmed());
	stop();
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
RUN_SUITE("h2/large", CASE(a_request_that_is_too_large_is_431_and_the_next_one_is_served),
	CASE(trailers_of_a_request_that_are_too_large_are_431),
	CASE(a_response_that_is_too_large_ends_its_stream_alone),
	CASE(a_large_block_of_a_stream_that_is_gone_keeps_the_table_in_step),
	CASE(a_block_above_1_mib_is_calmed), CASE(a_bomb_behind_a_large_value_is_calmed))
