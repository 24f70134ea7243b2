// SPDX-License-Identifier: Apache-2.0
// Frames in: malformed ones, frames in the wrong state, streams in the wrong order, and a byte
// stream cut anywhere.
#include "tests/unit/h2/h2_peer.h"

static struct pool chunks;
static struct peer us;
static struct raw raw;

static int set_up(void **state)
{
	struct h2_conf conf = peer_conf();
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
	us.n_streams = 0;
	raw.len = 0;
	assert_non_null(peer_connect(&us, role));
	raw_preface(&raw, role == H2_SERVER ? H2_CLIENT : H2_SERVER);
	peer_feed(&us, &raw);
	raw_frame(&raw, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0);
	peer_feed(&us, &raw);
	peer_frames(&us);
	peer_clear_log(&us);
}

static void open_stream(void)
{
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a.test"),
		.path = STR("/")};
	struct h2_stream *s = h2_stream_open(us.conn, &m, NULL);
	assert_non_null(s);
	peer_add_stream(&us, s);
}

// RFC 9113 4.2, 6: one bad frame each. State of the connection before it: stream 1 open, 3 closed
// (both ends), 5 half-closed (remote), 7 reset by us, 9 reset by the peer; 11 and above idle, 2 and
// all even ids idle.
struct bad_frame {
	const char *name;
	uint8_t type, flags;
	uint32_t id;
	const char *payload;
	size_t len;
	const char *answer; // NULL = none
};
#define P(bytes) bytes, sizeof(bytes) - 1
#define PRIO "\0\0\0\0\20"

static const struct bad_frame server_frames[] = {
	// DATA, 6.1
	{"data on 0", H2_DATA, 0, 0, P("x"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"data on idle", H2_DATA, 0, 11, P("x"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"data on even", H2_DATA, 0, 2, P("x"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"data on closed", H2_DATA, 0, 3, P("x"), "RST_STREAM 3 STREAM_CLOSED\n"},
	{"data on half-closed", H2_DATA, 0, 5, P("x"), "RST_STREAM 5 STREAM_CLOSED\n"},
	{"data on one we reset", H2_DATA, 0, 7, P("x"), ""},
	{"data on one they reset", H2_DATA, 0, 9, P("x"), "RST_STREAM 9 STREAM_CLOSED\n"},
	{"data of padding only", H2_DATA, H2_FLAG_PADDED, 1, P("\2\0\0"), ""},
	{"padding one too long", H2_DATA, H2_FLAG_PADDED, 1, P("\3\0\0"),
		"GOAWAY 9 PROTOCOL_ERROR\n"},
	{"padded without pad length", H2_DATA, H2_FLAG_PADDED, 1, P(""),
		"GOAWAY 9 FRAME_SIZE_ERROR\n"},
	// HEADERS, 6.2; blocks: 0x82 is :method GET
	{"headers on 0", H2_HEADERS, 4, 0, P("\x82"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"headers on even", H2_HEADERS, 5, 2, P("\x82"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"headers on closed", H2_HEADERS, 5, 3, P("\x82"), "GOAWAY 9 STREAM_CLOSED\n"},
	{"headers on half-closed", H2_HEADERS, 5, 5, P("\x82"), "RST_STREAM 5 STREAM_CLOSED\n"},
	{"headers on one we reset", H2_HEADERS, 5, 7, P("\x82"), ""},
	{"headers on one they reset", H2_HEADERS, 5, 9, P("\x82"), "GOAWAY 9 STREAM_CLOSED\n"},
	{"headers padding too long", H2_HEADERS, 0xd, 11, P("\2\x82"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"headers without pad length", H2_HEADERS, 0xd, 11, P(""), "GOAWAY 9 FRAME_SIZE_ERROR\n"},
	{"headers without priority", H2_HEADERS, 0x25, 11, P("\0\0\0\0"),
		"GOAWAY 9 FRAME_SIZE_ERROR\n"},
	{"headers that depend on themselves", H2_HEADERS, 0x25, 11,
		P("\0\0\0\13\1\x82\x86\x84\x41\1a"), "RST_STREAM 11 PROTOCOL_ERROR\n"},
	{"headers of a bad index", H2_HEADERS, 5, 11, P("\xff\xff"),
		"GOAWAY 9 COMPRESSION_ERROR\n"},
	{"headers of index 0", H2_HEADERS, 5, 11, P("\x80"), "GOAWAY 9 COMPRESSION_ERROR\n"},
	{"headers of a cut field", H2_HEADERS, 5, 11, P("\0\5ab"), "GOAWAY 9 COMPRESSION_ERROR\n"},
	{"headers of a table above 4096", H2_HEADERS, 5, 11, P("\x3f\xe2\x1f"),
		"GOAWAY 9 COMPRESSION_ERROR\n"},
	{"empty headers", H2_HEADERS, 5, 11, P(""), "RST_STREAM 11 PROTOCOL_ERROR\n"},
	// PRIORITY, 6.3
	{"priority on 0", H2_PRIORITY, 0, 0, P(PRIO), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"priority on open", H2_PRIORITY, 0, 1, P(PRIO), ""},
	{"priority on idle", H2_PRIORITY, 0, 11, P(PRIO), ""},
	{"priority on closed", H2_PRIORITY, 0, 3, P(PRIO), ""},
	{"priority on even", H2_PRIORITY, 0, 2, P(PRIO), ""},
	{"short priority", H2_PRIORITY, 0, 1, P("\0\0\0\0"), "RST_STREAM 1 FRAME_SIZE_ERROR\n"},
	{"long priority", H2_PRIORITY, 0, 1, P("\0\0\0\0\0\0"), "RST_STREAM 1 FRAME_SIZE_ERROR\n"},
	{"short priority on idle", H2_PRIORITY, 0, 11, P(""), "GOAWAY 9 FRAME_SIZE_ERROR\n"},
	{"priority on itself", H2_PRIORITY, 0, 1, P("\0\0\0\1\0"), "RST_STREAM 1 PROTOCOL_ERROR\n"},
	// RST_STREAM, 6.4
	{"reset on 0", H2_RST_STREAM, 0, 0, P("\0\0\0\0"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"reset on idle", H2_RST_STREAM, 0, 11, P("\0\0\0\0"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"reset on even", H2_RST_STREAM, 0, 2, P("\0\0\0\0"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"reset on closed", H2_RST_STREAM, 0, 3, P("\0\0\0\0"), ""},
	{"reset on open", H2_RST_STREAM, 0, 1, P("\0\0\0\10"), ""},
	{"short reset", H2_RST_STREAM, 0, 1, P("\0\0\0"), "GOAWAY 9 FRAME_SIZE_ERROR\n"},
	{"long reset", H2_RST_STREAM, 0, 1, P("\0\0\0\0\0"), "GOAWAY 9 FRAME_SIZE_ERROR\n"},
	// SETTINGS, 6.5
	{"settings on a stream", H2_SETTINGS, 0, 1, P(""), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"settings of 5 bytes", H2_SETTINGS, 0, 0, P("\0\1\0\0\0"), "GOAWAY 9 FRAME_SIZE_ERROR\n"},
	{"settings ack with payload", H2_SETTINGS, 1, 0, P("\0\1\0\0\0\0"),
		"GOAWAY 9 FRAME_SIZE_ERROR\n"},
	{"settings ack unasked", H2_SETTINGS, 1, 0, P(""), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"settings", H2_SETTINGS, 0, 0, P(""), "SETTINGS ack\n"},
	{"unknown setting", H2_SETTINGS, 0, 0, P("\xff\xff\1\2\3\4"), "SETTINGS ack\n"},
	{"push 1", H2_SETTINGS, 0, 0, P("\0\2\0\0\0\1"), "SETTINGS ack\n"},
	{"push 2", H2_SETTINGS, 0, 0, P("\0\2\0\0\0\2"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"window 2^31", H2_SETTINGS, 0, 0, P("\0\4\x80\0\0\0"), "GOAWAY 9 FLOW_CONTROL_ERROR\n"},
	{"window 2^31-1", H2_SETTINGS, 0, 0, P("\0\4\x7f\xff\xff\xff"), "SETTINGS ack\n"},
	{"frame size 16383", H2_SETTINGS, 0, 0, P("\0\5\0\0\x3f\xff"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"frame size 2^24", H2_SETTINGS, 0, 0, P("\0\5\1\0\0\0"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"frame size 2^24-1", H2_SETTINGS, 0, 0, P("\0\5\0\xff\xff\xff"), "SETTINGS ack\n"},
	{"connect protocol 2", H2_SETTINGS, 0, 0, P("\0\10\0\0\0\2"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"list size 1", H2_SETTINGS, 0, 0, P("\0\6\0\0\0\1"), "SETTINGS ack\n"},
	// PUSH_PROMISE, 8.4
	{"push promise", H2_PUSH_PROMISE, 4, 1, P("\0\0\0\2\x82"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	// PING, 6.7
	{"ping", H2_PING, 0, 0, P("12345678"), "PING ack\n"},
	{"ping ack unasked", H2_PING, 1, 0, P("12345678"), ""},
	{"ping on a stream", H2_PING, 0, 1, P("12345678"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"short ping", H2_PING, 0, 0, P("1234567"), "GOAWAY 9 FRAME_SIZE_ERROR\n"},
	{"long ping", H2_PING, 0, 0, P("123456789"), "GOAWAY 9 FRAME_SIZE_ERROR\n"},
	// GOAWAY, 6.8
	{"goaway", H2_GOAWAY, 0, 0, P("\0\0\0\0\0\0\0\0"), ""},
	{"goaway with debug data", H2_GOAWAY, 0, 0, P("\0\0\0\0\0\0\0\0why not"), ""},
	{"goaway on a stream", H2_GOAWAY, 0, 1, P("\0\0\0\0\0\0\0\0"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"short goaway", H2_GOAWAY, 0, 0, P("\0\0\0\0\0\0\0"), "GOAWAY 9 FRAME_SIZE_ERROR\n"},
	// WINDOW_UPDATE, 6.9
	{"update", H2_WINDOW_UPDATE, 0, 1, P("\0\0\0\1"), ""},
	{"update of 0", H2_WINDOW_UPDATE, 0, 1, P("\0\0\0\0"), "RST_STREAM 1 PROTOCOL_ERROR\n"},
	{"update of 0, reserved bit", H2_WINDOW_UPDATE, 0, 1, P("\x80\0\0\0"),
		"RST_STREAM 1 PROTOCOL_ERROR\n"},
	{"connection update of 0", H2_WINDOW_UPDATE, 0, 0, P("\0\0\0\0"),
		"GOAWAY 9 PROTOCOL_ERROR\n"},
	{"update on idle", H2_WINDOW_UPDATE, 0, 11, P("\0\0\0\1"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"update on even", H2_WINDOW_UPDATE, 0, 2, P("\0\0\0\1"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"update on closed", H2_WINDOW_UPDATE, 0, 3, P("\0\0\0\1"), ""},
	{"update of 0 on closed", H2_WINDOW_UPDATE, 0, 3, P("\0\0\0\0"), ""},
	{"short update", H2_WINDOW_UPDATE, 0, 1, P("\0\0\1"), "GOAWAY 9 FRAME_SIZE_ERROR\n"},
	{"long update", H2_WINDOW_UPDATE, 0, 1, P("\0\0\0\0\1"), "GOAWAY 9 FRAME_SIZE_ERROR\n"},
	{"update above 2^31-1", H2_WINDOW_UPDATE, 0, 1, P("\x7f\xff\xff\xff"),
		"RST_STREAM 1 FLOW_CONTROL_ERROR\n"},
	{"connection update above 2^31-1", H2_WINDOW_UPDATE, 0, 0, P("\x7f\xff\xff\xff"),
		"GOAWAY 9 FLOW_CONTROL_ERROR\n"},
	// CONTINUATION, 6.10
	{"continuation of nothing", H2_CONTINUATION, 4, 1, P("\x82"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	{"continuation on 0", H2_CONTINUATION, 4, 0, P("\x82"), "GOAWAY 9 PROTOCOL_ERROR\n"},
	// 4.1, 5.5
	{"unknown type", 0x42, 0xff, 77, P("whatever"), ""},
	{"unknown type, empty", 0x42, 0, 0, P(""), ""},
};

static void build_states(void)
{
	start(H2_SERVER);
	raw_headers(&raw, 1, false, get_request);
	raw_headers(&raw, 3, true, get_request);
	raw_headers(&raw, 5, true, get_request);
	raw_headers(&raw, 7, false, get_request);
	raw_headers(&raw, 9, false, get_request);
	raw_u32_frame(&raw, H2_RST_STREAM, 9, H2_CANCEL);
	peer_feed(&us, &raw);
	struct h2_message m = {.kind = H2_RESPONSE, .status = 200, .end_stream = true};
	assert_true(h2_stream_send_message(peer_stream_of(&us, 3)->stream, &m));
	h2_stream_reset(peer_stream_of(&us, 7)->stream, H2_CANCEL);
	peer_frames(&us);
	peer_clear_log(&us);
}

static int check_frame(const struct bad_frame *f, bool in_pieces)
{
	build_states();
	raw_frame(&raw, f->type, f->flags, f->id, f->payload, f->len);
	if (in_pieces)
		for (size_t i = 0; i < raw.len; i++)
			assert_int_equal(h2_conn_feed(us.conn, raw.data + i, 1), 1);
	else
		peer_feed(&us, &raw);
	enum h2_error code;
	bool failed = h2_conn_failed(us.conn, &code);
	const char *out = peer_frames(&us);
	int wrong = strcmp(out, f->answer) != 0 || failed != (strstr(out, "GOAWAY") != NULL);
	if (wrong)
		print_error("%s: expected %s got %s\n", f->name, f->answer, out);
	if (!failed) { // the frame behind it is understood
		raw.len = 0;
		raw_frame(&raw, H2_PING, 0, 0, "12345678", 8);
		peer_feed(&us, &raw);
		wrong |= strcmp(peer_frames(&us), "PING ack\n") != 0;
	}
	peer_disconnect(&us, H2_CANCEL);
	return wrong;
}

// TH-20
static void each_frame_in_each_state_gets_its_error(void **state)
{
	int n_wrong = 0;
	for (size_t i = 0; i < sizeof(server_frames) / sizeof(server_frames[0]); i++)
		n_wrong += check_frame(&server_frames[i], false) +
		           check_frame(&server_frames[i], true);
	assert_int_equal(n_wrong, 0);
}

// The client role: stream 1 open without an answer yet.
static const struct bad_frame client_frames[] = {
	{"push promise (8.4)", H2_PUSH_PROMISE, 4, 1, P("\0\0\0\2\x88"),
		"GOAWAY 0 PROTOCOL_ERROR\n"},
	{"push 1 from a server (6.5.2)", H2_SETTINGS, 0, 0, P("\0\2\0\0\0\1"),
		"GOAWAY 0 PROTOCOL_ERROR\n"},
	{"push 0 from a server", H2_SETTINGS, 0, 0, P("\0\2\0\0\0\0"), "SETTINGS ack\n"},
	{"headers on a stream not opened", H2_HEADERS, 4, 3, P("\x88"),
		"GOAWAY 0 PROTOCOL_ERROR\n"},
	{"headers on even", H2_HEADERS, 4, 2, P("\x88"), "GOAWAY 0 PROTOCOL_ERROR\n"},
	{"data before the response", H2_DATA, 0, 1, P("x"), "RST_STREAM 1 PROTOCOL_ERROR\n"},
	{"data on a stream not opened", H2_DATA, 0, 3, P("x"), "GOAWAY 0 PROTOCOL_ERROR\n"},
	{"reset on a stream not opened", H2_RST_STREAM, 0, 3, P("\0\0\0\0"),
		"GOAWAY 0 PROTOCOL_ERROR\n"},
	{"response", H2_HEADERS, 4, 1, P("\x88"), ""},
};

// TH-26
static void a_client_knows_its_server_frames(void **state)
{
	for (size_t i = 0; i < sizeof(client_frames) / sizeof(client_frames[0]); i++) {
		const struct bad_frame *f = &client_frames[i];
		start(H2_CLIENT);
		open_stream();
		peer_frames(&us);
		raw_frame(&raw, f->type, f->flags, f->id, f->payload, f->len);
		peer_feed(&us, &raw);
		const char *out = peer_frames(&us);
		if (strcmp(out, f->answer) != 0)
			fail_msg("%s: %s", f->name, out);
		peer_disconnect(&us, H2_CANCEL);
	}
}

// RFC 9113 4.2: 16384 is the limit that we keep, whatever the type.
static void frame_above_16384_is_a_size_error(void **state)
{
	static const uint8_t payload[16385];
	static const uint8_t types[] = {H2_DATA, H2_HEADERS, H2_SETTINGS, H2_PING, 0x42};
	for (size_t i = 0; i < sizeof(types); i++) {
		start(H2_SERVER);
		raw_frame(&raw, types[i], 0, types[i] == H2_SETTINGS ? 0 : 1, payload, 16385);
		peer_feed(&us, &raw);
		assert_string_equal(peer_frames(&us), "GOAWAY 0 FRAME_SIZE_ERROR\n");
		peer_disconnect(&us, H2_CANCEL);
	}
}

// RFC 9113 3.4
static void anything_but_the_preface_ends_the_connection(void **state)
{
	for (size_t i = 0; i < H2_PREFACE_LEN; i++) {
		assert_non_null(peer_connect(&us, H2_SERVER));
		peer_frames(&us);
		raw.len = 0;
		raw_bytes(&raw, H2_PREFACE, H2_PREFACE_LEN);
		raw.data[i] ^= 1;
		peer_feed(&us, &raw);
		enum h2_error code;
		assert_true(h2_conn_failed(us.conn, &code));
		assert_string_equal(peer_frames(&us), "");
		peer_disconnect(&us, H2_CANCEL);
	}
	assert_int_equal(peer_counter(&us, "prefaces_http1"), H2_PREFACE_LEN);
}

// TH-23: who speaks something else hears no HTTP/2. Without a carrier nobody knows HTTP/1.1 here.
static void other_protocols_are_told_apart(void **state)
{
	static const struct {
		const char *first, *counter; // NULL = more must come
	} rows[] = {
		{"GET / HTTP/1.1\r\nhost: a\r\n\r\n", "prefaces_http1"},
		{"POST /upload HTTP/1.1\r\n", "prefaces_http1"},
		{"PRI * HTTP/1.1\r\n", "prefaces_http1"},
		{"SSH-2.0-x\r\n", "prefaces_http1"},
		{"\x16\x03\x01\x02\x01\x01", "prefaces_tls"},
		{"\x16", "prefaces_tls"},
		{"PRI * HTTP/2.0", NULL},
		{"P", NULL},
	};
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const char *first = rows[i / 2].first, *counter = rows[i / 2].counter;
		size_t len = strlen(first), step = i % 2 ? 1 : len;
		uint64_t before = counter ? peer_counter(&us, counter) : 0;
		enum h2_error code;
		assert_non_null(peer_connect(&us, H2_SERVER));
		for (size_t at = 0; at < len; at += step)
			h2_conn_feed(us.conn, (const uint8_t *)first + at, step);
		assert_false(h2_conn_pump(us.conn, SIZE_MAX));
		assert_int_equal(h2_conn_failed(us.conn, &code), counter != NULL);
		assert_int_equal(us.out.len, 0);
		if (counter)
			assert_int_equal(peer_counter(&us, counter), before + 1);
		peer_disconnect(&us, H2_CANCEL);
	}
}

// Nor does a drain behind its first bytes make HTTP/2 of it.
static void a_drain_says_nothing_to_other_protocols(void **state)
{
	assert_non_null(peer_connect(&us, H2_SERVER));
	h2_conn_feed(us.conn, (const uint8_t *)"GE", 2);
	h2_conn_drain_begin(us.conn);
	h2_conn_drain_end(us.conn, H2_NO_ERROR);
	assert_int_equal(us.out.len, 0);
	peer_disconnect(&us, H2_CANCEL);
}

// RFC 9113 3.4
static void first_frame_must_be_settings(void **state)
{
	static const struct {
		uint8_t type, flags;
		uint32_t id;
		const char *payload;
		size_t len;
	} first[] = {{H2_SETTINGS, H2_FLAG_ACK, 0, P("")}, {H2_PING, 0, 0, P("12345678")},
		{H2_HEADERS, H2_FLAG_END_HEADERS, 1, P("\x82\x86\x84\x41\1a")},
		{H2_DATA, 0, 1, P("x")}};
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		assert_non_null(peer_connect(&us, H2_SERVER));
		peer_frames(&us);
		raw_bytes(&raw, H2_PREFACE, H2_PREFACE_LEN);
		raw_frame(&raw, first[i].type, first[i].flags, first[i].id, first[i].payload,
			first[i].len);
		peer_feed(&us, &raw);
		assert_string_equal(us.log, "");
		assert_string_equal(peer_frames(&us), "SETTINGS\nGOAWAY 0 PROTOCOL_ERROR\n");
		peer_disconnect(&us, H2_CANCEL);
	}
}

// RFC 9113 6.10, 4.3
static void nothing_comes_between_headers_and_continuation(void **state)
{
	static const struct {
		uint8_t type, flags;
		uint32_t id;
	} between[] = {{H2_PING, 0, 0}, {H2_DATA, 0, 1}, {H2_CONTINUATION, 0, 3},
		{H2_HEADERS, 0, 1}, {H2_HEADERS, H2_FLAG_END_HEADERS, 3}, {H2_SETTINGS, 0, 0},
		{0x42, 0, 1}};
	for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++) {
		start(H2_SERVER);
		raw_frame(&raw, H2_HEADERS, 0, 1, "\x82", 1);
		raw_frame(&raw, between[i].type, between[i].flags, between[i].id, "12345678",
			between[i].type == H2_SETTINGS ? 0 : 8);
		peer_feed(&us, &raw);
		assert_string_equal(peer_frames(&us), "GOAWAY 0 PROTOCOL_ERROR\n");
		peer_disconnect(&us, H2_CANCEL);
	}
}

// RFC 9113 5.1.1, HX-26
static void stream_id_below_an_earlier_one_ends_the_connection(void **state)
{
	start(H2_SERVER);
	raw_headers(&raw, 5, true, get_request);
	raw_headers(&raw, 3, true, get_request);
	peer_feed(&us, &raw);
	assert_string_equal(peer_frames(&us), "GOAWAY 5 PROTOCOL_ERROR\n");
}

static void header_block_comes_in_continuations(void **state)
{
	uint8_t block[512];
	size_t len = raw_fields(block, get_request);
	start(H2_SERVER);
	raw_frame(&raw, H2_HEADERS, H2_FLAG_END_STREAM, 1, block, 7);
	assert_false(h2_conn_in_block(us.conn));
	peer_feed(&us, &raw);
	assert_true(h2_conn_in_block(us.conn));
	raw_frame(&raw, H2_CONTINUATION, 0, 1, block + 7, 1);
	raw_frame(&raw, H2_CONTINUATION, 0, 1, block + 8, 0);
	raw_frame(&raw, H2_CONTINUATION, H2_FLAG_END_HEADERS, 1, block + 8, len - 8);
	peer_feed(&us, &raw);
	assert_false(h2_conn_in_block(us.conn));
	assert_string_equal(us.log, "request(1 GET http a.test / end) ");
}

// RFC 9113 6.1, 6.2: padding and priority are not part of the message.
static void padding_and_priority_are_cut_off(void **state)
{
	uint8_t payload[512] = {3, 0x80, 0, 0, 0, 16};
	start(H2_SERVER);
	size_t len = 6 + raw_fields(payload + 6, get_request);
	memset(payload + len, 0, 3);
	raw_frame(&raw, H2_HEADERS, H2_FLAG_PADDED | H2_FLAG_PRIORITY | H2_FLAG_END_HEADERS, 1,
		payload, len + 3);
	raw_frame(&raw, H2_DATA, H2_FLAG_PADDED, 1, "\3abc\0\0\0", 7);
	raw_frame(&raw, H2_DATA, H2_FLAG_PADDED | H2_FLAG_END_STREAM, 1, "\2\0\0", 3);
	peer_feed(&us, &raw);
	assert_string_equal(us.log, "request(1 GET http a.test /) data(1 3) data(1 0 end) ");
}

// HX-26: the HPACK table is right although the stream was refused, malformed, or gone.
static void hpack_state_survives_blocks_that_nobody_hears(void **state)
{
	// Each block adds an entry to the table; the last request refers to all of them.
	static const char adds[] = "\x82\x86\x84\x41\1a"
				   "\x40\2k1\2v1";
	static const char malformed[] = "\x82\x86\x84\xbf\x40\2k2\2v2\x40\1X\1y"; // upper case
	static const char late[] = "\x40\2k3\2v3";
	start(H2_SERVER);
	raw_frame(&raw, H2_HEADERS, 4, 1, P(adds));
	raw_frame(&raw, H2_HEADERS, 5, 3, P(malformed));
	peer_feed(&us, &raw);
	h2_stream_reset(us.streams[0].stream, H2_CANCEL);
	raw_frame(&raw, H2_HEADERS, 5, 1, P(late)); // its trailers were under way
	// 62 k3, 63 X, 64 k2, 65 k1, 66 :authority
	raw_frame(&raw, H2_HEADERS, 5, 5, P("\x82\x86\x84\xc2\xc1\xc0\xbe"));
	peer_feed(&us, &raw);
	assert_string_equal(us.log, "request(1 GET http a / k1=v1) closed(1 CANCEL) "
				    "request(5 GET http a / k1=v1 k2=v2 k3=v3 end) ");
	assert_string_equal(peer_frames(&us), "RST_STREAM 3 PROTOCOL_ERROR\nRST_STREAM 1 CANCEL\n");
}

// TH-21: The same in requests above the concurrency limit, HX-23.
static void hpack_state_survives_refused_streams(void **state)
{
	start(H2_SERVER);
	for (uint32_t i = 0; i < 100; i++)
		raw_headers(&raw, 1 + 2 * i, false, get_request);
	raw_frame(&raw, H2_HEADERS, 5, 201, P("\x82\x86\x84\x41\1a\x40\2k1\2v1"));
	peer_feed(&us, &raw);
	assert_string_equal(peer_frames(&us), "RST_STREAM 201 REFUSED_STREAM\n");
	assert_int_equal(peer_counter(&us, "streams_refused_limit"), 1);
	h2_stream_reset(us.streams[0].stream, H2_CANCEL);
	peer_frames(&us);
	peer_clear_log(&us);
	raw_frame(&raw, H2_HEADERS, 5, 203, P("\x82\x86\x84\xbf\xbe"));
	peer_feed(&us, &raw);
	assert_string_equal(us.log, "request(203 GET http a / k1=v1 end) ");
}

// A stream that we reset long ago: its frames are still ignored, not an error of the connection.
static void streams_reset_long_ago_are_still_ignored(void **state)
{
	start(H2_SERVER);
	for (uint32_t i = 0; i < 90; i++)
		raw_headers(&raw, 1 + 2 * i, false, get_request);
	peer_feed(&us, &raw);
	for (uint32_t i = 0; i < 90; i++)
		h2_stream_reset(us.streams[i].stream, H2_CANCEL);
	peer_frames(&us);
	for (uint32_t i = 0; i < 90; i++) {
		raw_frame(&raw, H2_DATA, 0, 1 + 2 * i, "x", 1);
		raw_headers(&raw, 1 + 2 * i, true, (const char *const[]){"a", "b", NULL});
	}
	peer_feed(&us, &raw);
	assert_string_equal(peer_frames(&us), "");
}

// The same in the other role: a backend whose answers cross our cancellations stays connected.
static void answers_to_requests_cancelled_long_ago_are_ignored(void **state)
{
	start(H2_CLIENT);
	for (uint32_t i = 0; i < 90; i++)
		open_stream();
	for (uint32_t i = 0; i < 90; i++)
		h2_stream_reset(us.streams[i].stream, H2_CANCEL);
	peer_frames(&us);
	for (uint32_t i = 0; i < 90; i++) {
		raw_headers(&raw, 1 + 2 * i, false, ok_response);
		raw_frame(&raw, H2_DATA, H2_FLAG_END_STREAM, 1 + 2 * i, "x", 1);
	}
	peer_feed(&us, &raw);
	assert_string_equal(peer_frames(&us), "");
}

// HX-26: we have reset it, too. The rest of its answer is on its way, whatever we reset since.
static void an_answer_that_broke_the_rules_long_ago_is_still_ignored(void **state)
{
	start(H2_CLIENT);
	for (uint32_t i = 0; i < 40; i++)
		open_stream();
	peer_frames(&us);
	raw_frame(&raw, H2_DATA, 0, 1, "x", 1); // no head was there
	peer_feed(&us, &raw);
	assert_string_equal(peer_frames(&us), "RST_STREAM 1 PROTOCOL_ERROR\n");
	for (uint32_t i = 1; i < 40; i++)
		h2_stream_reset(us.streams[i].stream, H2_CANCEL);
	peer_frames(&us);
	raw_headers(&raw, 1, true, ok_response);
	peer_feed(&us, &raw);
	assert_string_equal(peer_frames(&us), "");
}

static void header_block_may_end_with_an_empty_continuation(void **state)
{
	uint8_t block[512];
	size_t len = raw_fields(block, get_request);
	start(H2_SERVER);
	raw_frame(&raw, H2_HEADERS, H2_FLAG_END_STREAM, 1, block, len);
	raw_frame(&raw, H2_CONTINUATION, H2_FLAG_END_HEADERS, 1, NULL, 0);
	peer_feed(&us, &raw);
	assert_string_equal(us.log, "request(1 GET http a.test / end) ");
}

static void build_traffic(void)
{
	uint8_t block[512];
	size_t len = raw_fields(block, get_request);
	raw_preface(&raw, H2_CLIENT);
	raw_frame(&raw, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0);
	raw_frame(&raw, H2_HEADERS, 0, 1, block, 5);
	raw_frame(&raw, H2_CONTINUATION, H2_FLAG_END_HEADERS, 1, block + 5, len - 5);
	raw_frame(&raw, H2_PRIORITY, 0, 1, "\0\0\0\0\1", 5);
	raw_frame(&raw, H2_DATA, H2_FLAG_PADDED, 1, "\2abc\0\0", 6);
	raw_frame(&raw, 0x42, 0, 1, "unknown", 7);
	raw_frame(&raw, H2_PING, 0, 0, "12345678", 8);
	raw_headers(&raw, 3, true, get_request);
	raw_frame(&raw, H2_DATA, 0, 1, "defgh", 5);
	raw_u32_frame(&raw, H2_WINDOW_UPDATE, 1, 100);
	raw_headers(&raw, 1, true, (const char *const[]){"t", "u", NULL});
	raw_frame(&raw, H2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0bye", 11);
}

// The owner hears the same, wherever the bytes are cut.
static void byte_stream_cut_in_two_anywhere_means_the_same(void **state)
{
	static const char heard[] =
		"settings(4294967295) request(1 GET http a.test /) "
		"request(3 GET http a.test / end) trailers(1 t=u end) goaway(0 NO_ERROR) ";
	us.log_data = false;
	build_traffic();
	for (size_t cut = 0; cut <= raw.len; cut++) {
		us.n_streams = 0;
		peer_clear_log(&us);
		assert_non_null(peer_connect(&us, H2_SERVER));
		uint8_t *first = malloc(cut), *second = malloc(raw.len - cut);
		memcpy(first, raw.data, cut);
		memcpy(second, raw.data + cut, raw.len - cut);
		assert_int_equal(h2_conn_feed(us.conn, first, cut), cut);
		free(first);
		assert_int_equal(h2_conn_feed(us.conn, second, raw.len - cut), raw.len - cut);
		free(second);
		assert_string_equal(us.log, heard);
		assert_string_equal(us.streams[0].body, "abcdefgh");
		assert_string_equal(peer_frames(&us), "SETTINGS\nSETTINGS ack\nPING ack\n");
		peer_disconnect(&us, H2_NO_ERROR);
	}
}

static void byte_stream_in_single_bytes_means_the_same(void **state)
{
	build_traffic();
	assert_non_null(peer_connect(&us, H2_SERVER));
	for (size_t i = 0; i < raw.len; i++)
		assert_int_equal(h2_conn_feed(us.conn, raw.data + i, 1), 1);
	assert_string_equal(us.streams[0].body, "abcdefgh");
	assert_non_null(strstr(us.log, "trailers(1 t=u end) goaway(0 NO_ERROR) "));
}

static int64_t allowance; // of the connection under test

// Feeds all of it, a piece for each allowance of that size. Returns how many pieces there were.
static uint32_t feed_by_allowances(const uint8_t *p, size_t len, int64_t size)
{
	uint32_t n_pieces = 0;
	for (size_t at = 0; at < len; n_pieces++) {
		allowance = size;
		h2_conn_set_allowance(us.conn, &allowance);
		size_t n = h2_conn_feed(us.conn, p + at, len - at);
		assert_true(n > 0);
		assert_true(allowance <= 0 || at + n == len);
		at += n;
		assert_true(allowance > 0 || h2_conn_feed(us.conn, p + at, len - at) == 0);
	}
	return n_pieces;
}

// TH-84
static void th_84_input_that_stops_after_any_frame_means_the_same(void **state)
{
	us.log_data = true;
	build_traffic();
	assert_non_null(peer_connect(&us, H2_SERVER));
	assert_int_equal(h2_conn_feed(us.conn, raw.data, raw.len), raw.len);
	peer_frames(&us);
	peer_disconnect(&us, H2_NO_ERROR);
	char *heard = strdup(us.log);
	for (int64_t size = 1; size < 12000; size += 97) {
		us.n_streams = 0;
		peer_clear_log(&us);
		assert_non_null(peer_connect(&us, H2_SERVER));
		uint32_t n_pieces = feed_by_allowances(raw.data, raw.len, size);
		assert_in_range(n_pieces, 16000 / (size + 5000), size > 512 ? 14 : 40);
		assert_string_equal(peer_frames(&us), "SETTINGS\nSETTINGS ack\nPING ack\n");
		peer_disconnect(&us, H2_NO_ERROR);
		assert_string_equal(us.log, heard);
	}
	free(heard);
}

// TH-84: no byte is left whose coming would bring it.
static void th_84_a_frame_without_payload_is_never_left_behind(void **state)
{
	start(H2_SERVER);
	raw_frame(&raw, H2_SETTINGS, 0, 0, NULL, 0);
	feed_by_allowances(raw.data, raw.len, 1);
	assert_string_equal(peer_frames(&us), "SETTINGS ack\n");
}

static int64_t work_of(const struct raw *r)
{
	allowance = 1 << 30;
	h2_conn_set_allowance(us.conn, &allowance);
	assert_int_equal(h2_conn_feed(us.conn, r->data, r->len), r->len);
	raw.len = 0;
	return (1 << 30) - allowance;
}

// TH-11, TH-84
static void th_84_each_frame_costs_by_its_kind_and_its_bytes(void **state)
{
	uint8_t bytes[1000] = {0};
	start(H2_SERVER);
	raw_headers(&raw, 1, false, get_request);
	int64_t request = work_of(&raw);
	assert_in_range(request, 4000, 6000);
	raw_frame(&raw, H2_DATA, 0, 1, bytes, 1);
	int64_t tiny = work_of(&raw);
	assert_in_range(tiny, request / 20, request / 5);
	raw_frame(&raw, H2_DATA, 0, 1, bytes, sizeof(bytes));
	assert_int_equal(work_of(&raw), tiny + (int64_t)sizeof(bytes) - 1);
	raw_u32_frame(&raw, H2_RST_STREAM, 1, H2_CANCEL);
	assert_in_range(work_of(&raw), tiny, request);
}

// After a connection error nothing is heard any more, and everything is swallowed.
static void failed_connection_hears_nothing(void **state)
{
	start(H2_SERVER);
	raw_frame(&raw, H2_PING, 0, 1, "12345678", 8);
	raw_headers(&raw, 1, true, get_request);
	size_t len = raw.len;
	assert_int_equal(peer_feed(&us, &raw), len);
	assert_string_equal(us.log, "");
	raw_headers(&raw, 1, true, get_request);
	len = raw.len;
	assert_int_equal(peer_feed(&us, &raw), len);
	assert_string_equal(us.log, "");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
RUN_SUITE("h2/feed", CASE(each_frame_in_each_state_gets_its_error),
	CASE(a_client_knows_its_server_frames), CASE(frame_above_16384_is_a_size_error),
	CASE(anything_but_the_preface_ends_the_connection), CASE(other_protocols_are_told_apart),
	CASE(a_drain_says_nothing_to_other_protocols), CASE(first_frame_must_be_settings),
	CASE(nothing_comes_between_headers_and_continuation),
	CASE(stream_id_below_an_earlier_one_ends_the_connection),
	CASE(header_block_comes_in_continuations), CASE(padding_and_priority_are_cut_off),
	CASE(hpack_state_survives_blocks_that_nobody_hears),
	CASE(hpack_state_survives_refused_streams), CASE(streams_reset_long_ago_are_still_ignored),
	CASE(answers_to_requests_cancelled_long_ago_are_ignored),
	CASE(an_answer_that_broke_the_rules_long_ago_is_still_ignored),
	CASE(header_block_may_end_with_an_empty_continuation),
	CASE(byte_stream_cut_in_two_anywhere_means_the_same),
	CASE(byte_stream_in_single_bytes_means_the_same),
	CASE(th_84_input_that_stops_after_any_frame_means_the_same),
	CASE(th_84_a_frame_without_payload_is_never_left_behind),
	CASE(th_84_each_frame_costs_by_its_kind_and_its_bytes),
	CASE(failed_connection_hears_nothing))
