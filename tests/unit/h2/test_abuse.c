// SPDX-License-Identifier: Apache-2.0
// Floods and bombs (HX-25, TH-01 to TH-14, TH-24, TH-87, TH-133 to TH-135): each ends its own
// connection with ENHANCE_YOUR_CALM at its budget, and honest use below it never does.
#include "lb/base/time.h"
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
	assert_non_null(peer_connect(&us, role));
	raw_preface(&raw, role == H2_SERVER ? H2_CLIENT : H2_SERVER);
	raw_frame(&raw, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0);
	peer_feed(&us, &raw);
	peer_frames(&us);
	peer_clear_log(&us);
}

static bool calmed(void)
{
	enum h2_error code = H2_NO_ERROR;
	if (!h2_conn_failed(us.conn, &code))
		return false;
	assert_int_equal(code, H2_ENHANCE_YOUR_CALM);
	assert_non_null(strstr(peer_frames(&us), "ENHANCE_YOUR_CALM"));
	return true;
}

// A request and what follows it; then the log is cleared, so that a flood does not fill it.
static void feed(void)
{
	peer_feed(&us, &raw);
	us.n_streams = 0;
	peer_clear_log(&us);
}

static void open_and_cancel(uint32_t *id)
{
	raw_headers(&raw, *id, true, get_request);
	raw_u32_frame(&raw, H2_RST_STREAM, *id, H2_CANCEL);
	*id += 2;
	feed();
}

// TH-01, CVE-2023-44487: 1000 at once, 33 a second.
static void rapid_reset_is_calmed_after_1000(void **state)
{
	uint32_t id = 1;
	start(H2_SERVER);
	for (int i = 0; i < 1000; i++)
		open_and_cancel(&id);
	assert_false(calmed());
	open_and_cancel(&id);
	assert_true(calmed());
	assert_int_equal(peer_counter(&us, "abuse_resets"), 1);
}

// TH-01
static void reset_budget_refills_with_33_a_second(void **state)
{
	uint32_t id = 1;
	start(H2_SERVER);
	for (int i = 0; i < 1000; i++)
		open_and_cancel(&id);
	for (int second = 0; second < 20; second++) {
		us.now_ns += NS_PER_SECOND;
		for (int i = 0; i < 33; i++)
			open_and_cancel(&id);
		assert_false(calmed());
	}
	open_and_cancel(&id);
	open_and_cancel(&id);
	assert_true(calmed());
}

// Begins a connection anew.
static void start_sharing(struct h2_budgets *shared)
{
	if (us.conn)
		peer_disconnect(&us, H2_NO_ERROR);
	start(H2_SERVER);
	h2_conn_share(us.conn, shared);
}

// TH-83: 4000 at once, 133 a second, whichever connections they are of.
static void connections_that_share_a_budget_are_calmed_beyond_4000(void **state)
{
	struct h2_budgets shared = {0};
	for (int n = 0; n < 4000; n += 500) {
		uint32_t id = 1;
		start_sharing(&shared);
		assert_false(h2_shared_is_spent(&shared, us.now_ns));
		for (int i = 0; i < 500; i++)
			open_and_cancel(&id);
		assert_false(calmed());
	}
	uint32_t id = 1;
	start_sharing(&shared);
	assert_true(h2_shared_is_spent(&shared, us.now_ns));
	us.now_ns += NS_PER_SECOND;
	assert_false(h2_shared_is_spent(&shared, us.now_ns));
	for (int i = 0; i < 133; i++)
		open_and_cancel(&id);
	assert_false(calmed());
	open_and_cancel(&id);
	assert_true(calmed());
	assert_int_equal(peer_counter(&us, "abuse_shared_resets"), 1);
}

static void settings(uint32_t window)
{
	uint8_t payload[6] = {0, H2_SETTING_INITIAL_WINDOW_SIZE};
	h2_write_u32(payload + 2, window);
	raw_frame(&raw, H2_SETTINGS, 0, 0, payload, sizeof(payload));
	peer_frames(&us); // the answers are read, unlike those of TH-08
	feed();
}

// TH-09: 100 at once, 10 a second; by whomever.
static void settings_are_calmed_beyond_100_and_10_a_second(void **state)
{
	start(H2_SERVER);
	for (uint32_t i = 1; i < 100; i++) // the first came with the preface
		settings(i % 2 * 65535);
	for (int second = 0; second < 20; second++) {
		us.now_ns += NS_PER_SECOND;
		for (uint32_t i = 0; i < 10; i++)
			settings(i % 2 * 65535);
	}
	enum h2_error code;
	assert_false(h2_conn_failed(us.conn, &code));
	settings(1);
	assert_true(calmed());
	assert_int_equal(peer_counter(&us, "abuse_settings"), 1);
}

// CVE-2025-8671: the resets that the peer makes us send. Each variant opens a stream and spoils it.
static void spoil(int variant, uint32_t id)
{
	switch (variant) {
	case 0:
		raw_headers(&raw, id, false, get_request);
		raw_u32_frame(&raw, H2_WINDOW_UPDATE, id, 0);
		break;
	case 1:
		raw_headers(&raw, id, false, get_request);
		raw_u32_frame(&raw, H2_WINDOW_UPDATE, id, 0x7fffffff);
		break;
	case 2:
		raw_headers(&raw, id, true, get_request);
		raw_frame(&raw, H2_DATA, 0, id, "x", 1);
		break;
	case 3:
		raw_headers(&raw, id, true, get_request);
		raw_headers(&raw, id, true, get_request);
		break;
	case 4:
		raw_headers(&raw, id, false, get_request);
		raw_frame(&raw, H2_PRIORITY, 0, id, "\0\0\0", 3);
		break;
	case 5: {
		uint8_t self[5];
		h2_write_u32(self, id);
		raw_headers(&raw, id, false, get_request);
		raw_frame(&raw, H2_PRIORITY, 0, id, self, 5);
		break;
	}
	default:
		raw_headers(&raw, id, true, (const char *const[]){"no", "pseudo", NULL});
		break;
	}
}

// TH-02
static void resets_that_we_are_made_to_send_are_calmed_too(void **state)
{
	for (int variant = 0; variant < 7; variant++) {
		start(H2_SERVER);
		for (uint32_t i = 0; i < 1000; i++) {
			spoil(variant, 1 + 2 * i);
			feed();
			if (strstr(peer_frames(&us), "RST_STREAM") == NULL)
				fail_msg("variant %d: no reset", variant);
		}
		assert_false(calmed());
		spoil(variant, 2001);
		feed();
		if (!calmed())
			fail_msg("variant %d is not calmed", variant);
		peer_disconnect(&us, H2_CANCEL);
	}
}

// A backend that refuses a lot is overloaded, no attacker.
static void a_backend_may_reset_what_we_ask(void **state)
{
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/")};
	start(H2_CLIENT);
	for (int i = 0; i < 3000; i++) {
		struct h2_stream *s = h2_stream_open(us.conn, &m, NULL);
		assert_non_null(s);
		raw_u32_frame(&raw, H2_RST_STREAM, h2_stream_id(s), H2_REFUSED_STREAM);
		peer_feed(&us, &raw);
		if (i == 0)
			assert_string_equal(us.log, "closed(1 REFUSED_STREAM peer unprocessed) ");
		peer_clear_log(&us);
		peer_frames(&us);
	}
	assert_false(calmed());
}

// TH-08, CVE-2019-9512: answers that nobody reads.
static void ping_flood_is_calmed_when_answers_pile_up(void **state)
{
	start(H2_SERVER);
	for (int i = 0; i < 1001; i++)
		raw_frame(&raw, H2_PING, 0, 0, "12345678", 8);
	peer_feed(&us, &raw);
	assert_true(calmed());
	assert_int_equal(peer_counter(&us, "abuse_answers"), 1);
}

static void pings_whose_answers_are_read_are_fine(void **state)
{
	start(H2_SERVER);
	for (int i = 0; i < 20000; i++) {
		raw_frame(&raw, H2_PING, 0, 0, "12345678", 8);
		peer_feed(&us, &raw);
		if (i % 100 == 99)
			peer_frames(&us);
	}
	assert_false(calmed());
}

// TH-08, CVE-2019-9515
static void settings_flood_is_calmed_when_answers_pile_up(void **state)
{
	start(H2_SERVER);
	for (int i = 0; i < 1001; i++)
		raw_frame(&raw, H2_SETTINGS, 0, 0, NULL, 0);
	peer_feed(&us, &raw);
	assert_true(calmed());
}

// TH-09, CVE-2020-11080
static void settings_of_more_than_32_entries_are_calmed(void **state)
{
	static const uint8_t entries[33 * 6];
	start(H2_SERVER);
	raw_frame(&raw, H2_SETTINGS, 0, 0, entries, 32 * 6);
	peer_feed(&us, &raw);
	assert_string_equal(peer_frames(&us), "SETTINGS ack\n");
	raw_frame(&raw, H2_SETTINGS, 0, 0, entries, 33 * 6);
	peer_feed(&us, &raw);
	assert_true(calmed());
}

// TH-09
static void huge_settings_in_pieces_are_calmed(void **state)
{
	static const uint8_t entries[2700 * 6];
	start(H2_SERVER);
	raw_frame(&raw, H2_SETTINGS, 0, 0, entries, sizeof(entries));
	for (size_t i = 0; i < raw.len; i += 100)
		h2_conn_feed(us.conn, raw.data + i, raw.len - i < 100 ? raw.len - i : 100);
	assert_true(calmed());
}

// TH-04, VU#421644
static void more_than_8_continuations_are_calmed(void **state)
{
	start(H2_SERVER);
	raw_frame(&raw, H2_HEADERS, 0, 1, "\x82", 1);
	for (int i = 0; i < 8; i++)
		raw_frame(&raw, H2_CONTINUATION, 0, 1, "\x82", 1);
	peer_feed(&us, &raw);
	assert_false(calmed());
	raw_frame(&raw, H2_CONTINUATION, 4, 1, "\x82", 1);
	peer_feed(&us, &raw);
	assert_true(calmed());
	assert_int_equal(peer_counter(&us, "abuse_continuation"), 1);
}

// TH-05, CVE-2016-6581: one-byte references to a large entry. Above the limit it is 431, far above
// calm.
static void header_bomb_is_431_and_then_calmed(void **state)
{
	static uint8_t block[16384];
	uint8_t *p = block;
	memcpy(p, "\x82\x86\x84\x41\1a\x40\1b\x7f\xa1\x1e", 12); // b: 4000 bytes
	p += 12;
	memset(p, 'x', 4000);
	p += 4000;
	start(H2_SERVER);
	memset(p, 0xbe, 15); // 16 * 4033 bytes < 4 * 16384
	raw_frame(&raw, H2_HEADERS, 5, 1, block, (size_t)(p + 15 - block));
	peer_feed(&us, &raw);
	assert_int_equal(peer_counter(&us, "requests_too_large_431"), 1);
	assert_non_null(strstr(us.log, "bad=431"));
	assert_false(calmed());
	memset(p, 0xbe, 10000);
	raw_frame(&raw, H2_HEADERS, 5, 3, block, (size_t)(p + 10000 - block));
	peer_feed(&us, &raw);
	assert_true(calmed());
	assert_int_equal(peer_counter(&us, "abuse_header_bomb"), 1);
}

// One entry of 4033 bytes, which all requests that follow can name by a byte.
static void add_large_entry(void)
{
	static uint8_t block[4100];
	memcpy(block, "\x82\x86\x84\x01\1a\x40\1b\x7f\xa1\x1e", 12);
	memset(block + 12, 'x', 4000);
	raw_frame(&raw, H2_HEADERS, 5, 1, block, 4012);
	raw_u32_frame(&raw, H2_RST_STREAM, 1, H2_CANCEL);
	feed();
}

static void name_it(uint32_t *id, int times)
{
	char block[16] = "\x82\x86\x84\x01\1a";
	memset(block + 6, 0xbe, (size_t)times);
	*id += 2;
	raw_frame(&raw, H2_HEADERS, 5, *id, block, 6 + (size_t)times);
	raw_u32_frame(&raw, H2_RST_STREAM, *id, H2_CANCEL);
	feed();
}

// TH-87, CVE-2026-49975: each is below the limit of a list, and nothing but copies.
static void th_87_lists_made_of_one_entry_are_calmed(void **state)
{
	uint32_t id = 1;
	start(H2_SERVER);
	add_large_entry();
	uint32_t n = 0;
	for (; n < 500 && !calmed(); n++)
		name_it(&id, 3);
	assert_in_range(n, 160, 180); // a MiB of what is beyond 6 KiB each
	assert_int_equal(peer_counter(&us, "abuse_header_bytes"), 1);
	assert_int_equal(peer_counter(&us, "requests_too_large_431"), 0);
}

// TH-87
static void th_87_the_budget_of_headers_refills(void **state)
{
	uint32_t id = 1;
	start(H2_SERVER);
	add_large_entry();
	for (int i = 0; i < 160; i++)
		name_it(&id, 3);
	for (int second = 0; second < 20; second++) {
		us.now_ns += NS_PER_SECOND;
		for (int i = 0; i < 10; i++)
			name_it(&id, 3);
		assert_false(calmed());
	}
}

// TH-87: a token that fills the table costs nothing, however often it is sent.
static void th_87_a_large_field_may_be_in_every_request(void **state)
{
	uint32_t id = 1;
	start(H2_SERVER);
	add_large_entry();
	for (int i = 0; i < 900; i++)
		name_it(&id, 1);
	assert_false(calmed());
}

// TH-133: a MiB, of which each connection has too little to be calmed, four times; then none.
static void th_133_new_connections_have_no_new_budget_of_headers(void **state)
{
	struct h2_budgets shared = {0};
	int n_conns = 0;
	for (; !h2_shared_is_spent(&shared, us.now_ns); n_conns++) {
		uint32_t id = 1;
		start_sharing(&shared);
		add_large_entry();
		for (int i = 0; i < 100 && !calmed(); i++) // some 600 KiB beyond what is free
			name_it(&id, 3);
	}
	assert_in_range(n_conns, 6, 8);
	assert_int_equal(peer_counter(&us, "abuse_shared_header_bytes"), 1);
	assert_int_equal(peer_counter(&us, "abuse_header_bytes"), 0);
	us.now_ns += NS_PER_SECOND;
	assert_false(h2_shared_is_spent(&shared, us.now_ns));
}

// TH-133: however many clients an address has, each with a token as large as the table and cookies
// that are larger, they take nothing of it.
static void th_133_honest_headers_of_ten_thousand_clients_cost_nothing(void **state)
{
	static char cookie[8000];
	memset(cookie, 'c', sizeof(cookie) - 1);
	const char *fields[] = {":method", "GET", ":scheme", "http", ":authority", "a.test",
		":path", "/", "cookie", cookie, NULL};
	struct h2_budgets shared = {0};
	for (int client = 0; client < 10000; client++) {
		uint32_t id = 1;
		start_sharing(&shared);
		us.now_ns += 20 * NS_PER_MS; // the resets are within their budget
		add_large_entry();
		name_it(&id, 1);
		raw_headers(&raw, id + 2, true, fields);
		feed();
		assert_false(calmed());
	}
	assert_int_equal(shared.of[H2_BUDGET_HEADER_BYTES].full_at_ns, 0);
	assert_int_equal(peer_counter(&us, "streams_accepted"), 30000);
}

// TH-05, TH-06: Cookie crumbs count like any field.
static void more_fields_than_the_limit_are_431(void **state)
{
	for (int n = 96; n <= 97; n++) { // with four pseudo-header fields: 100, 101
		const char *fields[300];
		int k = 0;
		for (; get_request[k]; k++)
			fields[k] = get_request[k];
		for (int i = 0; i < n; i++) {
			fields[k++] = "cookie";
			fields[k++] = "a";
		}
		fields[k] = NULL;
		start(H2_SERVER);
		raw_headers(&raw, 1, true, fields);
		peer_feed(&us, &raw);
		assert_int_equal(strstr(us.log, "bad=431") != NULL, n == 97);
		peer_disconnect(&us, H2_CANCEL);
		us.n_streams = 0;
	}
}

// TH-05, RFC 9113 6.5.2: 32 bytes more for each field.
static void list_of_one_byte_above_the_limit_is_431(void **state)
{
	size_t plain = 0;
	for (size_t i = 0; get_request[i]; i += 2)
		plain += 32 + strlen(get_request[i]) + strlen(get_request[i + 1]);
	for (size_t over = 0; over < 2; over++) {
		char *value = calloc(1, 16385);
		memset(value, 'v', 16384 - plain - 33 + over);
		const char *fields[] = {":method", "GET", ":scheme", "http", ":authority", "a.test",
			":path", "/", "x", value, NULL};
		uint8_t *block = malloc(20000);
		size_t len = raw_fields(block, fields);
		start(H2_SERVER);
		raw_frame(&raw, H2_HEADERS, 1, 1, block, 16000);
		raw_frame(&raw, H2_CONTINUATION, 4, 1, block + 16000, len - 16000);
		us.log_len = 0;
		peer_feed(&us, &raw);
		assert_int_equal(strstr(us.log, "bad=431") != NULL, over);
		peer_disconnect(&us, H2_CANCEL);
		us.n_streams = 0;
		free(value);
		free(block);
	}
}

// TH-25, HX-25: a response or trailers that large end their stream.
static void oversized_response_resets_its_stream(void **state)
{
	char *value = calloc(1, 16385);
	memset(value, 'v', 16384);
	const char *fields[] = {":status", "200", "x", value, NULL};
	uint8_t *block = malloc(20000);
	size_t len = raw_fields(block, fields);
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/")};
	start(H2_CLIENT);
	assert_non_null(h2_stream_open(us.conn, &m, NULL));
	raw_frame(&raw, H2_HEADERS, 0, 1, block, 16000);
	raw_frame(&raw, H2_CONTINUATION, 4, 1, block + 16000, len - 16000);
	peer_feed(&us, &raw);
	assert_string_equal(us.log, "closed(1 ENHANCE_YOUR_CALM peer) ");
	assert_int_equal(peer_counter(&us, "malformed_too_large"), 1);
	free(value);
	free(block);
}

// TH-10, CVE-2019-9518
static void second_empty_data_in_a_row_is_calmed(void **state)
{
	start(H2_SERVER);
	raw_headers(&raw, 1, false, get_request);
	for (int i = 0; i < 10; i++) {
		raw_frame(&raw, H2_DATA, 0, 1, NULL, 0);
		raw_frame(&raw, H2_DATA, 0, 1, "x", 1);
	}
	peer_feed(&us, &raw);
	assert_false(calmed());
	raw_frame(&raw, H2_DATA, 0, 1, NULL, 0);
	raw_frame(&raw, H2_DATA, 0, 1, NULL, 0);
	peer_feed(&us, &raw);
	assert_true(calmed());
}

// HX-12: empty DATA with END_STREAM is half-close, however many streams do it.
static void empty_data_that_ends_is_honest(void **state)
{
	start(H2_SERVER);
	for (uint32_t id = 1; id < 100; id += 2)
		raw_headers(&raw, id, false, get_request);
	for (uint32_t id = 1; id < 100; id += 2)
		raw_frame(&raw, H2_DATA, H2_FLAG_END_STREAM, id, NULL, 0);
	peer_feed(&us, &raw);
	assert_false(calmed());
	assert_non_null(strstr(us.log, "data(99 0 end)"));
}

// TH-13, CVE-2019-9513
static void priority_flood_is_calmed(void **state)
{
	start(H2_SERVER);
	for (int i = 0; i < 100; i++)
		raw_frame(&raw, H2_PRIORITY, 0, 1, "\0\0\0\0\1", 5);
	peer_feed(&us, &raw);
	assert_false(calmed());
	raw_frame(&raw, H2_PRIORITY, 0, 1, "\0\0\0\0\1", 5);
	peer_feed(&us, &raw);
	assert_true(calmed());
}

// TH-14
static void window_update_flood_is_calmed(void **state)
{
	start(H2_SERVER);
	for (int i = 0; i < 5; i++)
		raw_u32_frame(&raw, H2_WINDOW_UPDATE, 0, 1);
	peer_feed(&us, &raw);
	assert_false(calmed());
	raw_u32_frame(&raw, H2_WINDOW_UPDATE, 0, 1);
	peer_feed(&us, &raw);
	assert_true(calmed());
}

enum ignored { UNKNOWN, UNKNOWN_EMPTY, PING_ACK, GOAWAY, LATE_HEADERS, N_IGNORED };

static void add_ignored(enum ignored kind)
{
	switch (kind) {
	case UNKNOWN:
		raw_frame(&raw, 0x10, 0, 0, "\0\0\0\1u=1", 7); // PRIORITY_UPDATE
		break;
	case UNKNOWN_EMPTY:
		raw_frame(&raw, 0x0b, 0xff, 77, NULL, 0);
		break;
	case PING_ACK:
		raw_frame(&raw, H2_PING, H2_FLAG_ACK, 0, "12345678", 8);
		break;
	case GOAWAY:
		raw_frame(&raw, H2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8);
		break;
	default:
		raw_headers(&raw, 1, true, get_request);
		break;
	}
}

// A connection with one stream, which is reset; of the kind that is the first that says something.
static void start_to_ignore(enum ignored kind)
{
	start(H2_SERVER);
	raw_headers(&raw, 1, false, get_request);
	peer_feed(&us, &raw);
	h2_stream_reset(us.streams[0].stream, H2_CANCEL);
	if (kind == GOAWAY)
		add_ignored(kind);
	feed();
	peer_frames(&us);
}

static void ignore(enum ignored kind, int n)
{
	for (int i = 0; i < n; i++) {
		add_ignored(kind);
		feed();
	}
}

// TH-134: 1000 at once, 33 a second, and ten for the stream.
static void th_134_frames_that_ask_for_nothing_have_a_budget(void **state)
{
	for (enum ignored kind = 0; kind < N_IGNORED; kind++) {
		start_to_ignore(kind);
		ignore(kind, 1010);
		assert_false(calmed());
		us.now_ns += NS_PER_SECOND;
		ignore(kind, 33);
		assert_false(calmed());
		ignore(kind, 1);
		if (!calmed())
			fail_msg("kind %d is not calmed", kind);
		assert_int_equal(peer_counter(&us, "abuse_ignored_frames"), kind + 1);
		peer_disconnect(&us, H2_CANCEL);
	}
}

// TH-134: as a browser does, for each of its streams, and as often as it likes.
static void th_134_a_few_with_each_stream_are_honest(void **state)
{
	start(H2_SERVER);
	for (uint32_t id = 1; id < 40000; id += 2) {
		raw_headers(&raw, id, true, get_request);
		for (int i = 0; i < 10; i++)
			add_ignored(i % 2 ? UNKNOWN : UNKNOWN_EMPTY);
		peer_feed(&us, &raw);
		h2_stream_reset(us.streams[0].stream, H2_NO_ERROR);
		us.n_streams = 0;
		peer_clear_log(&us);
		peer_frames(&us);
	}
	assert_false(calmed());
}

// TH-134: wherever TCP cuts them.
static void th_134_unknown_frames_in_pieces_count(void **state)
{
	start(H2_SERVER);
	for (int i = 0; i < 1001; i++)
		raw_frame(&raw, 0x42, 0, 1, "whatever", 8);
	for (size_t i = 0; i < raw.len; i += 5)
		h2_conn_feed(us.conn, raw.data + i, raw.len - i < 5 ? raw.len - i : 5);
	assert_true(calmed());
}

// TH-135: by whomever; the first one was asked for.
static void th_135_an_ack_of_no_settings_ends_the_connection(void **state)
{
	for (enum h2_role role = H2_SERVER; role <= H2_CLIENT; role++) {
		enum h2_error code = H2_NO_ERROR;
		start(role);
		assert_false(h2_conn_failed(us.conn, &code));
		raw_frame(&raw, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0);
		peer_feed(&us, &raw);
		assert_true(h2_conn_failed(us.conn, &code));
		assert_int_equal(code, H2_PROTOCOL_ERROR);
		assert_int_equal(peer_counter(&us, "settings_ack_unasked"), 1 + role);
		peer_disconnect(&us, H2_CANCEL);
	}
}

// TH-24: others of the connection go on.
static void endless_informational_responses_end_their_stream(void **state)
{
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/")};
	start(H2_CLIENT);
	assert_non_null(h2_stream_open(us.conn, &m, NULL));
	peer_frames(&us);
	for (int i = 0; i < 100; i++)
		raw_headers(&raw, 1, false, (const char *const[]){":status", "103", NULL});
	peer_feed(&us, &raw);
	assert_string_equal(peer_frames(&us), "");
	raw_headers(&raw, 1, false, (const char *const[]){":status", "103", NULL});
	peer_feed(&us, &raw);
	assert_string_equal(peer_frames(&us), "RST_STREAM 1 ENHANCE_YOUR_CALM\n");
	assert_int_equal(peer_counter(&us, "abuse_informational"), 1);
	assert_false(calmed());
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
RUN_SUITE("h2/abuse", CASE(rapid_reset_is_calmed_after_1000),
	CASE(reset_budget_refills_with_33_a_second),
	CASE(settings_are_calmed_beyond_100_and_10_a_second),
	CASE(connections_that_share_a_budget_are_calmed_beyond_4000),
	CASE(resets_that_we_are_made_to_send_are_calmed_too), CASE(a_backend_may_reset_what_we_ask),
	CASE(ping_flood_is_calmed_when_answers_pile_up),
	CASE(pings_whose_answers_are_read_are_fine),
	CASE(settings_flood_is_calmed_when_answers_pile_up),
	CASE(settings_of_more_than_32_entries_are_calmed), CASE(huge_settings_in_pieces_are_calmed),
	CASE(more_than_8_continuations_are_calmed), CASE(header_bomb_is_431_and_then_calmed),
	CASE(th_87_lists_made_of_one_entry_are_calmed), CASE(th_87_the_budget_of_headers_refills),
	CASE(th_87_a_large_field_may_be_in_every_request),
	CASE(th_133_new_connections_have_no_new_budget_of_headers),
	CASE(th_133_honest_headers_of_ten_thousand_clients_cost_nothing),
	CASE(th_134_frames_that_ask_for_nothing_have_a_budget),
	CASE(th_134_a_few_with_each_stream_are_honest), CASE(th_134_unknown_frames_in_pieces_count),
	CASE(th_135_an_ack_of_no_settings_ends_the_connection),
	CASE(more_fields_than_the_limit_are_431), CASE(list_of_one_byte_above_the_limit_is_431),
	CASE(oversized_response_resets_its_stream), CASE(second_empty_data_in_a_row_is_calmed),
	CASE(empty_data_that_ends_is_honest), CASE(priority_flood_is_calmed),
	CASE(window_update_flood_is_calmed), CASE(endless_informational_responses_end_their_stream))
