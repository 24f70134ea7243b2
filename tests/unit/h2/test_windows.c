// SPDX-License-Identifier: Apache-2.0
// Windows that follow what the owner leaves free: of a stream, and of a client's connection.
#include "tests/unit/h2/h2_peer.h"

static struct pool chunks;
static struct peer us;
static struct raw raw;
static const uint8_t zeros[H2_FRAME_MAX];

static int set_up_with(uint32_t stream_window)
{
	struct h2_conf conf = peer_conf();
	conf.stream_window = stream_window;
	assert_int_equal(buf_pool_init(&chunks, 2048), 0);
	peer_init(&us, &chunks, &conf);
	us.consume = false;
	raw.len = 0;
	return 0;
}

static int set_up(void **state)
{
	return set_up_with(65535);
}

static int set_up_small_streams(void **state)
{
	return set_up_with(1000);
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
	raw_preface(&raw, role == H2_SERVER ? H2_CLIENT : H2_SERVER);
	raw_frame(&raw, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0);
	peer_feed(&us, &raw);
	peer_frames(&us);
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

// TH-88: what lies unconsumed keeps its part of the connection's window, and no other: a slow
// stream stops itself only.
static void th_88_unconsumed_bytes_keep_their_part_of_the_connection_window(void **state)
{
	start(H2_SERVER);
	request(1);
	struct h2_stream *s = request(3);
	feed_data(1, 40000);
	for (int i = 0; i < 10; i++) {
		feed_data(3, 12768);
		h2_stream_consumed(s, 12768);
		assert_string_equal(peer_frames(&us),
			i % 2 == 1 ? "WINDOW_UPDATE 0 12768\nWINDOW_UPDATE 3 25536\n"
				   : "WINDOW_UPDATE 0 12768\n");
	}
}

// TH-88, HX-24: a peer never has more to send than the window less what is unconsumed.
static void th_88_unconsumed_bytes_never_exceed_the_connection_window(void **state)
{
	start(H2_SERVER);
	struct h2_stream *s[] = {request(1), request(3)};
	feed_data(1, 60000);
	feed_data(3, 5535);
	assert_string_equal(peer_frames(&us), "");
	h2_stream_consumed(s[1], 4094); // less than a sixteenth of the window is worth no frame
	assert_string_equal(peer_frames(&us), "");
	h2_stream_consumed(s[1], 1);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 0 4095\n");
	h2_stream_consumed(s[0], 60000);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 0 60000\nWINDOW_UPDATE 1 60000\n");
}

static struct h2_stream *open_request(uint32_t id)
{
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a.test"),
		.path = STR("/"),
		.end_stream = true};
	struct h2_stream *s = h2_stream_open(us.conn, &m, NULL);
	peer_add_stream(&us, s);
	raw_headers(&raw, id, false, ok_response);
	peer_feed(&us, &raw);
	peer_frames(&us);
	return s;
}

// TH-86: a stream begins with the window advertised to servers, and its owner says when there is
// room for more.
static void th_86_a_window_grows_as_its_owner_has_room(void **state)
{
	start(H2_CLIENT);
	struct h2_stream *s = open_request(1);
	feed_data(1, 499);
	assert_false(h2_stream_is_short(s));
	feed_data(1, 1);
	assert_true(h2_stream_is_short(s));
	h2_stream_set_ahead(s, 10000);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 1 10000\n");
	feed_data(1, 4999);
	assert_false(h2_stream_is_short(s));
	feed_data(1, 1); // half of 11000
	assert_true(h2_stream_is_short(s));
	h2_stream_consumed(s, 2999);
	assert_string_equal(peer_frames(&us), "");
	h2_stream_consumed(s, 1); // half of what it is at first and a quarter of what it is ahead
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 1 3000\n");
	feed_data(1, 8500);
	assert_string_equal(peer_frames(&us), "");
	feed_data(1, 1);
	assert_string_equal(peer_frames(&us), "RST_STREAM 1 FLOW_CONTROL_ERROR\n");
}

// TH-86: what was granted can't be taken back, only withheld as bytes are consumed.
static void th_86_a_window_shrinks_as_bytes_are_consumed(void **state)
{
	start(H2_CLIENT);
	struct h2_stream *s = open_request(1);
	h2_stream_set_ahead(s, 10000);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 1 10000\n");
	h2_stream_set_ahead(s, 0);
	feed_data(1, 11000);
	h2_stream_consumed(s, 10499);
	assert_string_equal(peer_frames(&us), "");
	h2_stream_consumed(s, 1);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 1 500\n");
	h2_stream_consumed(s, 500);
	assert_string_equal(peer_frames(&us), "WINDOW_UPDATE 1 500\n");
	feed_data(1, 1001);
	assert_string_equal(peer_frames(&us), "RST_STREAM 1 FLOW_CONTROL_ERROR\n");
}

// Room that comes and goes within a turn is nobody's business.
static void th_86_credit_that_is_withdrawn_before_it_is_sent_is_not_sent(void **state)
{
	start(H2_CLIENT);
	struct h2_stream *s = open_request(1);
	h2_stream_set_ahead(s, 10000);
	h2_stream_set_ahead(s, 0);
	assert_string_equal(peer_frames(&us), "");
}

// No frame for the last bytes of a length that is known, nor after them.
static void a_stream_whose_window_holds_the_rest_is_not_short(void **state)
{
	start(H2_CLIENT);
	struct h2_stream *s = open_request(1);
	raw_frame(&raw, H2_DATA, H2_FLAG_END_STREAM, 1, zeros, 1000);
	peer_feed(&us, &raw);
	assert_false(h2_stream_is_short(s));
}

static unsigned n_short_streams, n_short_conns;

static void double_it(struct peer *p, struct h2_stream *s, bool is_short)
{
	if (!is_short)
		return;
	if (!s) {
		n_short_conns++;
		h2_conn_set_window(p->conn, 2 * h2_conn_window(p->conn));
	} else {
		n_short_streams++;
		h2_stream_set_ahead(s, 2 * h2_stream_window(s) - 65535);
	}
}

// So many bytes, consumed at once, in each of n steps so far apart.
static struct h2_stream *take(unsigned n, size_t len, uint64_t apart_ns)
{
	start(H2_SERVER);
	struct h2_stream *s = request(1);
	n_short_streams = n_short_conns = 0;
	us.on_window = double_it;
	for (unsigned i = 0; i < n; i++) {
		us.now_ns += apart_ns;
		feed_data(1, len);
		h2_stream_consumed(s, len);
		peer_frames(&us);
	}
	return s;
}

// HX-35
static void hx_35_windows_of_which_half_is_used_in_a_round_trip_are_short(void **state)
{
	us.round_trip_ns = 1000;
	struct h2_stream *s = take(4, 16384, 500);
	assert_int_equal(n_short_streams, 1);
	assert_int_equal(n_short_conns, 0); // TH-88: not before it has brought much
	assert_int_equal(h2_stream_window(s), 2 * 65535);
	assert_int_equal(h2_conn_window(us.conn), 65535);
	feed_data(1, 65535);
	enum h2_error code;
	assert_false(h2_conn_failed(us.conn, &code));
}

// HX-35
static void hx_35_windows_of_which_less_is_used_in_a_round_trip_are_not_short(void **state)
{
	us.round_trip_ns = 1000;
	take(20, 16384, 1100);
	assert_int_equal(n_short_streams + n_short_conns, 0);
}

// HX-35
static void hx_35_without_a_round_trip_no_window_is_short(void **state)
{
	take(20, 16384, 0);
	assert_int_equal(n_short_streams + n_short_conns, 0);
}

// HX-35: also a window that was larger takes nothing back, and nobody is cut off for it.
static void hx_35_a_smaller_connection_window_takes_nothing_back(void **state)
{
	us.round_trip_ns = 1000;
	struct h2_stream *s = take(80, 16384, 500);
	assert_int_equal(n_short_conns, 1);
	assert_int_equal(h2_conn_window(us.conn), 2 * 65535);
	h2_conn_set_window(us.conn, 65535);
	us.on_window = NULL;
	enum h2_error code;
	feed_data(1, 60000);
	assert_false(h2_conn_failed(us.conn, &code));
	assert_string_equal(peer_frames(&us), "");
	h2_stream_consumed(s, 60000);
	assert_null(strstr(peer_frames(&us), "WINDOW_UPDATE 0")); // it has what it is to have
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define SMALL(name) cmocka_unit_test_setup_teardown(name, set_up_small_streams, tear_down)

RUN_SUITE("h2/windows", CASE(th_88_unconsumed_bytes_keep_their_part_of_the_connection_window),
	CASE(th_88_unconsumed_bytes_never_exceed_the_connection_window),
	SMALL(th_86_a_window_grows_as_its_owner_has_room),
	SMALL(th_86_a_window_shrinks_as_bytes_are_consumed),
	SMALL(th_86_credit_that_is_withdrawn_before_it_is_sent_is_not_sent),
	CASE(hx_35_windows_of_which_half_is_used_in_a_round_trip_are_short),
	CASE(hx_35_windows_of_which_less_is_used_in_a_round_trip_are_not_short),
	CASE(hx_35_without_a_round_trip_no_window_is_short),
	CASE(hx_35_a_smaller_connection_window_takes_nothing_back),
	SMALL(a_stream_whose_window_holds_the_rest_is_not_short))
