// SPDX-License-Identifier: Apache-2.0
// Flow control (RFC 9113 5.2, 6.9): windows counted to the byte, both ways.
#include "lb/base/time.h"
#include "tests/unit/h2/h2_peer.h"

static struct pool chunks;
static struct peer us;
static struct raw raw;
static const uint8_t zeros[300000];

static int set_up_with(uint32_t stream_window, uint32_t conn_window)
{
	struct h2_conf conf = peer_conf();
	conf.stream_window = stream_window;
	conf.conn_window = conn_window;
	assert_int_equal(buf_pool_init(&chunks, 2048), 0);
	peer_init(&us, &chunks, &conf);
	us.consume = false;
	raw.len = 0;
	return 0;
}

static int set_up(void **state)
{
	return set_up_with(65535, 65535);
}

static int set_up_small_streams(void **state)
{
	return set_up_with(1000, 65535);
}

static int set_up_large(void **state)
{
	return set_up_with(1 << 20, 1 << 21);
}

static int tear_down(void **state)
{
	peer_fini(&us);
	assert_int_equal(chunks.n_used, 0);
	pool_fini(&chunks);
	return 0;
}

static void start_server(void)
{
	assert_non_null(peer_connect(&us, H2_SERVER));
	raw_preface(&raw, H2_CLIENT);
	raw_frame(&raw, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0);
	peer_feed(&us, &raw);
	peer_frames(&us);
	peer_clear_log(&us);
}

static void feed_data(uint32_t id, size_t len)
{
	for (size_t n; len; len -= n) {
		n = len < H2_FRAME_MAX ? len : H2_FRAME_MAX;
		raw_frame(&raw, H2_DATA, 0, id, zeros, n);
	}
	peer_feed(&us, &raw);
}

static struct h2_stream *request(uint32_t id)
{
	raw_headers(&raw, id, false, get_request);
	peer_feed(&us, &raw);
	return peer_stream_of(&us, id)->stream;
}

// HX-24: no credit before the owner is done with the bytes, and then, since the window is small,
// half of it at a time.
static void stream_credit_is_given_by_consumption_in_halves(void **state)
{
	start_server();
	struct h2_stream *s = request(1);
	feed_data(1, 500);
	assert_string_equal(peer_frames(&us), "");
	h2_stream_consumed(s, 499);
	assert_string_equal(peer_frames(&us), "");
	h2_stream_consumed(s, 1);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 1 500\n");
	h2_stream_consumed(s, 0);
	assert_string_equal(peer_frames(&us), "");
}

static void data_up_to_the_window_is_taken_and_one_byte_more_resets(void **state)
{
	start_server();
	request(1);
	feed_data(1, 1000);
	assert_string_equal(peer_frames(&us), "");
	feed_data(1, 1);
	assert_string_equal(peer_frames(&us), "RST_STREAM 1 FLOW_CONTROL_ERROR\n");
	assert_non_null(strstr(us.log, "closed(1 FLOW_CONTROL_ERROR peer)"));
}

// RFC 9113 6.9.1: the connection's window is the sum of all.
static void data_beyond_the_connection_window_ends_the_connection(void **state)
{
	start_server();
	request(1);
	request(3);
	feed_data(1, 40000);
	feed_data(3, 25535); // no pump in between, hence no credit
	enum h2_error code;
	assert_false(h2_conn_failed(us.conn, &code));
	feed_data(3, 1);
	assert_true(h2_conn_failed(us.conn, &code));
	assert_int_equal(code, H2_FLOW_CONTROL_ERROR);
}

// HX-36, RFC 9113 6.9.1: else half of it would be in force every other round trip.
static void a_window_sent_in_full_frames_comes_back_whole(void **state)
{
	start_server();
	struct h2_stream *s = request(1);
	for (unsigned i = 0; i < 3; i++) {
		feed_data(1, 16383);
		h2_stream_consumed(s, 16382);
		assert_string_equal(peer_frames(&us), "");
		feed_data(1, 1);
		h2_stream_consumed(s, 2);
		assert_string_equal(
			peer_frames(&us), "WINDOW_UPDATE 0 16384\nWINDOW_UPDATE 1 16384\n");
	}
	feed_data(1, 16383);
	h2_stream_consumed(s, 16383);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 0 16383\nWINDOW_UPDATE 1 16383\n");
}

static void unconsumed_bytes_of_a_dead_stream_are_forgotten(void **state)
{
	start_server();
	struct h2_stream *s = request(1);
	request(3);
	feed_data(1, 40000);
	feed_data(3, 25000);
	assert_string_equal(peer_frames(&us), "");
	h2_stream_reset(s, H2_CANCEL);
	assert_string_equal(peer_frames(&us), "RST_STREAM 1 CANCEL\nWINDOW_UPDATE 0 40000\n");
}

// HX-24: all clients share the connection to a server, so that nothing but its streams' own windows
// holds it back.
static void a_server_gets_connection_credit_whatever_lies_unconsumed(void **state)
{
	assert_non_null(peer_connect(&us, H2_CLIENT));
	raw_preface(&raw, H2_SERVER);
	raw_frame(&raw, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0);
	peer_feed(&us, &raw);
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a.test"),
		.path = STR("/"),
		.end_stream = true};
	for (uint32_t id = 1; id <= 5; id += 2) {
		peer_add_stream(&us, h2_stream_open(us.conn, &m, NULL));
		raw_headers(&raw, id, false, ok_response);
		peer_feed(&us, &raw);
	}
	peer_frames(&us);
	feed_data(1, 60000);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 0 60000\n");
	feed_data(3, 60000);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 0 60000\n");
	feed_data(5, 60000);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 0 60000\n");
}

// RFC 9113 6.9.1: also what nobody reads was sent and must be given back.
static void data_on_reset_streams_counts_for_the_connection(void **state)
{
	start_server();
	struct h2_stream *s = request(1);
	h2_stream_reset(s, H2_CANCEL);
	peer_frames(&us);
	feed_data(1, 32768);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 0 32768\n");
}

// RFC 9113 6.1: padding is flow controlled; the owner never sees it, so it is consumed at once.
static void padding_counts_and_comes_back_by_itself(void **state)
{
	start_server();
	struct h2_stream *s = request(1);
	uint8_t payload[501] = {200};
	raw_frame(&raw, H2_DATA, H2_FLAG_PADDED, 1, payload, 501);
	peer_feed(&us, &raw);
	assert_string_equal(us.log, "request(1 GET http a.test /) data(1 300) ");
	assert_string_equal(peer_frames(&us), "");
	h2_stream_consumed(s, 299); // with 201 of padding: 500
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 1 500\n");
	feed_data(1, 999); // 1000 - 501 + 500
	assert_string_equal(peer_frames(&us), "");
	feed_data(1, 1);
	assert_string_equal(peer_frames(&us), "RST_STREAM 1 FLOW_CONTROL_ERROR\n");
}

static void no_credit_for_a_stream_that_has_ended(void **state)
{
	start_server();
	struct h2_stream *s = request(1);
	raw_frame(&raw, H2_DATA, H2_FLAG_END_STREAM, 1, zeros, 1000);
	peer_feed(&us, &raw);
	h2_stream_consumed(s, 1000);
	assert_string_equal(peer_frames(&us), "");
}

static void windows_larger_than_the_default_are_announced(void **state)
{
	assert_non_null(peer_connect(&us, H2_SERVER));
	raw_bytes(&raw, H2_PREFACE, H2_PREFACE_LEN);
	peer_feed(&us, &raw);
	assert_string_equal(peer_frames(&us), "SETTINGS\nWINDOW_UPDATE 0 2031617\n");
}

// RFC 9113 6.9.3: until the peer acknowledges it may count from 65535, and we count the same.
static void our_window_is_in_force_from_the_acknowledgement_on(void **state)
{
	assert_non_null(peer_connect(&us, H2_SERVER));
	raw_preface(&raw, H2_CLIENT);
	peer_feed(&us, &raw);
	request(1);
	feed_data(1, 65535); // it has not seen our 1000 yet
	peer_frames(&us);
	raw_frame(&raw, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0);
	peer_feed(&us, &raw); // now its window is -64535
	h2_stream_consumed(us.streams[0].stream, 65535);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 0 65535\nWINDOW_UPDATE 1 65535\n");
	feed_data(1, 1000);
	assert_string_equal(peer_frames(&us), "");
	feed_data(1, 1);
	assert_string_equal(peer_frames(&us), "RST_STREAM 1 FLOW_CONTROL_ERROR\n");
}

static struct h2_stream *responding(uint32_t id)
{
	struct h2_stream *s = request(id);
	struct h2_message m = {.kind = H2_RESPONSE, .status = 200};
	assert_true(h2_stream_send_message(s, &m));
	peer_frames(&us);
	return s;
}

static void update(uint32_t id, uint32_t increment)
{
	raw_u32_frame(&raw, H2_WINDOW_UPDATE, id, increment);
	peer_feed(&us, &raw);
}

static void set_initial_window(uint32_t size)
{
	uint8_t payload[6] = {0, H2_SETTING_INITIAL_WINDOW_SIZE};
	h2_write_u32(payload + 2, size);
	raw_frame(&raw, H2_SETTINGS, 0, 0, payload, 6);
	peer_feed(&us, &raw);
}

static void body_stops_at_the_window_and_goes_on_with_updates(void **state)
{
	start_server();
	struct h2_stream *s = responding(1);
	assert_true(h2_stream_send_data(s, zeros, 70000, true));
	assert_string_equal(
		peer_frames(&us), "DATA 1 16384\nDATA 1 16384\nDATA 1 16384\nDATA 1 16383\n");
	assert_int_equal(h2_stream_queued(s), 4465);
	update(1, 4465);
	assert_string_equal(peer_frames(&us), ""); // the connection's is still shut
	update(0, 1);
	assert_string_equal(peer_frames(&us), "DATA 1 1\n");
	update(0, 4463);
	assert_string_equal(peer_frames(&us), "DATA 1 4463\n");
	update(0, 1);
	assert_string_equal(peer_frames(&us), "DATA 1 1 end\n");
}

// RFC 9113 6.9.1: frames of no length need no window.
static void ends_pass_shut_windows(void **state)
{
	start_server();
	set_initial_window(0);
	update(0, 100);
	struct h2_stream *a = responding(1), *b = responding(3), *c = responding(5);
	assert_true(h2_stream_send_data(a, zeros, 1, false));
	assert_true(h2_stream_send_data(b, NULL, 0, true));
	struct h2_message m = {.kind = H2_TRAILERS};
	assert_true(h2_stream_send_message(c, &m));
	assert_string_equal(peer_frames(&us), "HEADERS 5 end\nDATA 3 0 end\n");
}

static void trailers_wait_for_the_body_before_them(void **state)
{
	start_server();
	set_initial_window(3);
	struct h2_stream *s = responding(1);
	assert_true(h2_stream_send_data(s, zeros, 5, false));
	static const struct field field = {.name = STR("grpc-status"), .value = STR("0")};
	struct h2_message m = {.kind = H2_TRAILERS, .fields = &field, .n_fields = 1};
	assert_true(h2_stream_send_message(s, &m));
	assert_string_equal(peer_frames(&us), "DATA 1 3\n");
	update(1, 2);
	assert_string_equal(peer_frames(&us), "DATA 1 2\nHEADERS 1 end\n");
}

static void trailers_that_never_fit_are_refused_behind_a_body_too(void **state)
{
	// Text of no more than a whole block, but not with what coding may add.
	static char text[16384 + 8192 - 2];
	memset(text, 'x', sizeof(text));
	start_server();
	set_initial_window(3);
	struct h2_stream *s = responding(1);
	assert_true(h2_stream_send_data(s, zeros, 5, false));
	struct field field = {.name = STR("a"), .value = {text, sizeof(text)}};
	struct h2_message m = {.kind = H2_TRAILERS, .fields = &field, .n_fields = 1};
	assert_false(h2_stream_send_message(s, &m));
	field.value.len = 16384;
	assert_true(h2_stream_send_message(s, &m));
	assert_string_equal(peer_frames(&us), "DATA 1 3\n");
	update(1, 2);
	assert_non_null(strstr(peer_frames(&us), "HEADERS 1 end"));
}

// TH-18, RFC 9113 6.9.2
static void a_smaller_initial_window_can_make_windows_negative(void **state)
{
	start_server();
	struct h2_stream *s = responding(1);
	assert_true(h2_stream_send_data(s, zeros, 16384, false));
	peer_frames(&us);
	set_initial_window(10); // 10 - 16384
	assert_true(h2_stream_send_data(s, zeros, 20, false));
	assert_string_equal(peer_frames(&us), "SETTINGS ack\n");
	update(1, 16374); // exactly 0
	assert_string_equal(peer_frames(&us), "");
	update(1, 1);
	assert_string_equal(peer_frames(&us), "DATA 1 1\n");
	set_initial_window(20);
	assert_string_equal(peer_frames(&us), "SETTINGS ack\nDATA 1 10\n");
}

// TH-18, RFC 9113 6.9.2: a change that lifts any window above 2^31-1.
static void an_initial_window_that_overflows_a_stream_is_an_error(void **state)
{
	start_server();
	responding(1);
	update(1, 1);
	set_initial_window(0x7fffffff);
	assert_string_equal(peer_frames(&us), "GOAWAY 1 FLOW_CONTROL_ERROR\n");
}

// Their windows were the largest, and what is left has room.
static void streams_that_have_ended_overflow_no_more(void **state)
{
	start_server();
	struct h2_stream *a = responding(1);
	responding(3);
	update(1, 0x7fffffff - 65535);
	update(3, 10);
	h2_stream_reset(a, H2_CANCEL);
	peer_frames(&us);
	set_initial_window(0x7fffffff - 10);
	assert_string_equal(peer_frames(&us), "SETTINGS ack\n");
	update(3, 1); // its own is full now
	assert_string_equal(peer_frames(&us), "RST_STREAM 3 FLOW_CONTROL_ERROR\n");
	set_initial_window(0x7fffffff);
	responding(5);
	update(5, 1);
	assert_string_equal(peer_frames(&us), "RST_STREAM 5 FLOW_CONTROL_ERROR\n");
}

static void an_initial_window_gives_and_takes_of_all_streams_alike(void **state)
{
	start_server();
	set_initial_window(0);
	struct h2_stream *s[4];
	for (uint32_t i = 0; i < 4; i++) {
		s[i] = responding(1 + 2 * i);
		assert_true(h2_stream_send_data(s[i], zeros, 100, false));
	}
	assert_string_equal(peer_frames(&us), "");
	set_initial_window(30);
	set_initial_window(0);
	assert_string_equal(peer_frames(&us), "SETTINGS ack\nSETTINGS ack\n");
	update(3, 5);
	set_initial_window(10);
	assert_string_equal(
		peer_frames(&us), "SETTINGS ack\nDATA 3 15\nDATA 1 10\nDATA 5 10\nDATA 7 10\n");
	set_initial_window(9);
	update(7, 1);
	assert_string_equal(peer_frames(&us), "SETTINGS ack\n");
	set_initial_window(11);
	assert_string_equal(
		peer_frames(&us), "SETTINGS ack\nDATA 3 1\nDATA 1 1\nDATA 5 1\nDATA 7 2\n");
}

static void a_window_may_be_filled_to_its_last_byte(void **state)
{
	start_server();
	responding(1);
	update(1, 0x7fffffff - 65535);
	update(0, 0x7fffffff - 65535);
	assert_string_equal(peer_frames(&us), "");
	update(1, 1);
	assert_string_equal(peer_frames(&us), "RST_STREAM 1 FLOW_CONTROL_ERROR\n");
}

// One frame each in turn, however much one of them has.
static void streams_take_turns(void **state)
{
	start_server();
	set_initial_window(1 << 20);
	update(0, 1 << 20);
	struct h2_stream *a = responding(1), *b = responding(3), *c = responding(5);
	assert_true(h2_stream_send_data(a, zeros, 50000, true));
	assert_true(h2_stream_send_data(b, zeros, 20000, true));
	assert_true(h2_stream_send_data(c, zeros, 10, true));
	assert_string_equal(peer_frames(&us),
		"DATA 1 16384\nDATA 3 16384\nDATA 5 10 end\n"
		"DATA 1 16384\nDATA 3 3616 end\nDATA 1 16384\nDATA 1 848 end\n");
}

static void pump_keeps_to_its_room(void **state)
{
	start_server();
	struct h2_stream *s = responding(1);
	assert_true(h2_stream_send_data(s, zeros, 1000, true));
	assert_true(h2_conn_pump(us.conn, 0));
	assert_true(h2_conn_pump(us.conn, 9));
	assert_int_equal(us.out.len, 0);
	assert_true(h2_conn_pump(us.conn, 109));
	assert_int_equal(us.out.len, 109);
	assert_false(h2_conn_pump(us.conn, 909));
	assert_int_equal(us.out.len, 1018);
	assert_string_equal(peer_frames(&us), "DATA 1 100\nDATA 1 900 end\n");
}

static void credit_waits_for_room_like_data(void **state)
{
	start_server();
	struct h2_stream *s = request(1);
	feed_data(1, 65535);
	h2_stream_consumed(s, 65535);
	assert_true(h2_conn_pump(us.conn, 12));
	assert_int_equal(us.out.len, 0);
	assert_true(h2_conn_pump(us.conn, 25));
	assert_int_equal(us.out.len, 13);
	assert_false(h2_conn_pump(us.conn, 13));
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 0 65535\nWINDOW_UPDATE 1 65535\n");
}

static void blocked_by_windows_is_not_waiting_for_room(void **state)
{
	start_server();
	set_initial_window(0);
	struct h2_stream *s = responding(1);
	assert_true(h2_stream_send_data(s, zeros, 1000, true));
	assert_false(h2_conn_pump(us.conn, 65536));
}

static size_t pass(struct h2_stream *s, size_t len, bool end)
{
	size_t sent, sent_before = us.streams[0].sent, out_before = us.out.len;
	assert_true(h2_stream_pass_data(s, zeros, len, end, &sent));
	if (sent)
		assert_int_equal(us.out.len, out_before + H2_FRAME_HEAD + sent);
	else if (len)
		assert_int_equal(us.out.len, out_before);
	assert_int_equal(us.streams[0].sent, sent_before);
	return sent;
}

static void what_passes_goes_out_at_once(void **state)
{
	start_server();
	struct h2_stream *s = responding(1);
	assert_int_equal(pass(s, 100, false), 100);
	assert_int_equal(pass(s, 0, false), 0);
	assert_int_equal(pass(s, 1024, false), 1024);
	assert_int_equal(h2_stream_queued(s), 0);
	assert_int_equal(pass(s, 7, true), 7);
	assert_true(h2_stream_sent_end(s));
	assert_string_equal(peer_frames(&us), "DATA 1 100\nDATA 1 1024\nDATA 1 7 end\n");
	s = responding(3);
	assert_int_equal(pass(s, 0, true), 0);
	assert_string_equal(peer_frames(&us), "DATA 3 0 end\n");
}

static void what_cannot_pass_is_queued_in_order(void **state)
{
	start_server();
	struct h2_stream *a = responding(1), *b = responding(3);
	assert_int_equal(pass(a, 1025, false), 0); // may come to more yet
	assert_int_equal(pass(a, 5, false), 0);
	assert_int_equal(pass(b, 6, false), 0); // not before those that wait
	assert_string_equal(peer_frames(&us), "DATA 1 1030\nDATA 3 6\n");
	set_initial_window(1031); // one byte left for a
	assert_string_equal(peer_frames(&us), "SETTINGS ack\n");
	assert_int_equal(pass(a, 2, false), 0);
	assert_string_equal(peer_frames(&us), "DATA 1 1\n");
	assert_int_equal(pass(a, 1, true), 0);
	assert_string_equal(peer_frames(&us), "");
	update(1, 2);
	assert_string_equal(peer_frames(&us), "DATA 1 2 end\n");
}

static void what_passes_keeps_to_the_last_pumps_room_and_the_connections_window(void **state)
{
	start_server();
	struct h2_stream *s = responding(1);
	assert_false(h2_conn_pump(us.conn, 50));
	assert_int_equal(pass(s, 31, false), 31);
	assert_int_equal(pass(s, 2, false), 0);
	assert_string_equal(peer_frames(&us), "DATA 1 31\nDATA 1 2\n");
	update(1, 100000);
	assert_true(h2_stream_send_data(s, zeros, 65535 - 33 - 10, false));
	peer_frames(&us);
	assert_int_equal(pass(s, 11, false), 0);
	assert_string_equal(peer_frames(&us), "DATA 1 10\n");
	update(0, 3);
	assert_string_equal(peer_frames(&us), "DATA 1 1\n");
	assert_int_equal(pass(s, 2, true), 2);
	assert_string_equal(peer_frames(&us), "DATA 1 2 end\n");
}

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

// The sum of DATA never exceeds what the peer allowed, and everything goes out that may.
static void random_windows_are_used_exactly(void **state)
{
	enum { N = 5 };
	int64_t conn = 65535, initial = 65535, window[N], queued[N];
	struct h2_stream *s[N];
	uint64_t seed = 42;
	start_server();
	for (uint32_t i = 0; i < N; i++) {
		s[i] = responding(1 + 2 * i);
		window[i] = initial;
		queued[i] = 0;
	}
	for (int step = 0; step < 3000; step++) {
		uint32_t i = (uint32_t)(next(&seed) % N);
		int64_t n = (int64_t)(next(&seed) % 5000) + 1;
		size_t passed = 0;
		switch (next(&seed) % 4) {
		case 0:
			assert_true(h2_stream_pass_data(s[i], zeros, (size_t)n, false, &passed));
			queued[i] += n;
			break;
		case 1:
			if (us.streams[i].sent > 1000) // keep the update budget honest
				update(1 + 2 * i, (uint32_t)n);
			else
				continue;
			window[i] += n;
			break;
		case 2:
			update(0, (uint32_t)n);
			conn += n;
			break;
		default:
			us.now_ns += NS_PER_SECOND; // honest, too
			set_initial_window((uint32_t)(n * 20));
			for (int k = 0; k < N; k++)
				window[k] += n * 20 - initial;
			initial = n * 20;
			break;
		}
		size_t before[N];
		for (int k = 0; k < N; k++)
			before[k] = us.streams[k].sent;
		peer_frames(&us);
		enum h2_error code;
		if (h2_conn_failed(us.conn, &code))
			fail_msg("step %d: error %d", step, code);
		for (int k = 0; k < N; k++) {
			int64_t sent = (int64_t)(us.streams[k].sent - before[k]);
			sent += k == (int)i ? (int64_t)passed : 0;
			conn -= sent;
			window[k] -= sent;
			queued[k] -= sent;
			if (sent)
				assert_true(window[k] >= 0);
			assert_int_equal(h2_stream_queued(s[k]), queued[k]);
		}
		assert_true(conn >= 0);
		for (int k = 0; k < N && conn > 0; k++)
			assert_true(queued[k] == 0 || window[k] <= 0);
	}
}

// One look of three in 30 seconds, which judges by 100 bytes a second.
static struct h2_stream *look_after_10_s(void)
{
	us.now_ns += 10 * NS_PER_SECOND;
	h2_conn_look(us.conn, 30 * NS_PER_SECOND, 100);
	return h2_conn_stalled(us.conn);
}

static struct h2_stream *look_after_30_s(void)
{
	for (int i = 0; i < 2; i++)
		assert_null(look_after_10_s());
	return look_after_10_s();
}

// A stream with so many bytes queued behind a window of 10, and the first look.
static struct h2_stream *windowless(uint32_t id, size_t queued)
{
	struct h2_stream *s = responding(id);
	assert_true(h2_stream_send_data(s, zeros, 10 + queued, false));
	peer_frames(&us);
	assert_int_equal(h2_stream_queued(s), queued);
	assert_true(h2_conn_waits(us.conn));
	look_after_10_s();
	return s;
}

static void give(uint32_t id, uint32_t n)
{
	update(id, n);
	peer_frames(&us);
}

// TH-15
static void a_stream_that_is_given_little_window_stalls(void **state)
{
	start_server();
	set_initial_window(10);
	struct h2_stream *s = windowless(1, 10000);
	give(1, 2999);
	assert_ptr_equal(look_after_30_s(), s);
	h2_stream_reset(s, H2_CANCEL);
	assert_null(h2_conn_stalled(us.conn));
	assert_false(h2_conn_waits(us.conn));
	assert_false(h2_conn_look(us.conn, 30 * NS_PER_SECOND, 100));
}

static void a_stream_that_is_given_a_hundred_bytes_a_second_does_not_stall(void **state)
{
	start_server();
	set_initial_window(10);
	windowless(1, 60000);
	for (int i = 0; i < 10; i++) {
		give(1, 3000);
		assert_null(look_after_30_s());
	}
	assert_non_null(look_after_30_s());
}

// Nor one that takes more than it leaves, until it takes no more.
static void a_stream_that_takes_what_there_is_does_not_stall(void **state)
{
	start_server();
	set_initial_window(10);
	struct h2_stream *s = windowless(1, 50);
	give(1, 30);
	assert_null(look_after_30_s()); // 20 are left
	give(1, 20);
	assert_true(h2_stream_send_data(s, zeros, 50, false)); // others than those that waited
	assert_null(look_after_30_s());
	assert_ptr_equal(look_after_30_s(), s);
}

// It may be a slow link that the window update waits for.
static void no_stream_stalls_before_its_bytes_have_left_the_output(void **state)
{
	start_server();
	set_initial_window(10);
	struct h2_stream *s = responding(1);
	assert_true(h2_stream_send_data(s, zeros, 10000, false));
	h2_conn_pump(us.conn, SIZE_MAX);
	for (int i = 0; i < 9; i++)
		assert_null(look_after_10_s());
	peer_frames(&us);
	assert_null(look_after_30_s());
	assert_ptr_equal(look_after_10_s(), s);
}

static void streams_that_wait_for_the_connections_window_are_judged_by_all_its_bytes(void **state)
{
	start_server();
	set_initial_window(100000);
	struct h2_stream *a = responding(1), *b = responding(3);
	assert_true(h2_stream_send_data(a, zeros, 80000, false));
	assert_true(h2_stream_send_data(b, zeros, 80000, false));
	peer_frames(&us);
	h2_conn_look(us.conn, 30 * NS_PER_SECOND, 100);
	for (int i = 0; i < 9; i++) { // one of them takes all, in turn
		give(0, 1000);
		assert_null(look_after_10_s());
	}
	give(0, 500);
	struct h2_stream *s = look_after_30_s();
	h2_stream_reset(s, H2_CANCEL);
	assert_ptr_equal(h2_conn_stalled(us.conn), s == a ? b : a);
}

// A period that nobody looked at says nothing.
static void looks_begin_anew_when_nothing_waited_in_between(void **state)
{
	start_server();
	set_initial_window(10);
	struct h2_stream *s = windowless(1, 10000);
	give(1, 10000);
	assert_false(h2_conn_waits(us.conn));
	assert_null(look_after_10_s());
	us.now_ns += 100 * NS_PER_SECOND;
	assert_true(h2_stream_send_data(s, zeros, 10000, false));
	peer_frames(&us);
	assert_null(look_after_30_s());
	assert_ptr_equal(look_after_10_s(), s);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define SMALL(f) cmocka_unit_test_setup_teardown(f, set_up_small_streams, tear_down)
RUN_SUITE("h2/flow", SMALL(stream_credit_is_given_by_consumption_in_halves),
	SMALL(data_up_to_the_window_is_taken_and_one_byte_more_resets),
	CASE(data_beyond_the_connection_window_ends_the_connection),
	CASE(a_window_sent_in_full_frames_comes_back_whole),
	CASE(a_server_gets_connection_credit_whatever_lies_unconsumed),
	CASE(a_stream_that_is_given_little_window_stalls),
	CASE(a_stream_that_is_given_a_hundred_bytes_a_second_does_not_stall),
	CASE(a_stream_that_takes_what_there_is_does_not_stall),
	CASE(no_stream_stalls_before_its_bytes_have_left_the_output),
	CASE(streams_that_wait_for_the_connections_window_are_judged_by_all_its_bytes),
	CASE(looks_begin_anew_when_nothing_waited_in_between),
	CASE(unconsumed_bytes_of_a_dead_stream_are_forgotten),
	CASE(data_on_reset_streams_counts_for_the_connection),
	SMALL(padding_counts_and_comes_back_by_itself),
	SMALL(no_credit_for_a_stream_that_has_ended),
	cmocka_unit_test_setup_teardown(
		windows_larger_than_the_default_are_announced, set_up_large, tear_down),
	SMALL(our_window_is_in_force_from_the_acknowledgement_on),
	CASE(body_stops_at_the_window_and_goes_on_with_updates), CASE(ends_pass_shut_windows),
	CASE(trailers_wait_for_the_body_before_them),
	CASE(trailers_that_never_fit_are_refused_behind_a_body_too),
	CASE(a_smaller_initial_window_can_make_windows_negative),
	CASE(an_initial_window_that_overflows_a_stream_is_an_error),
	CASE(streams_that_have_ended_overflow_no_more),
	CASE(an_initial_window_gives_and_takes_of_all_streams_alike),
	CASE(a_window_may_be_filled_to_its_last_byte), CASE(streams_take_turns),
	CASE(pump_keeps_to_its_room), CASE(blocked_by_windows_is_not_waiting_for_room),
	CASE(credit_waits_for_room_like_data), CASE(what_passes_goes_out_at_once),
	CASE(what_cannot_pass_is_queued_in_order),
	CASE(what_passes_keeps_to_the_last_pumps_room_and_the_connections_window),
	CASE(random_windows_are_used_exactly))
