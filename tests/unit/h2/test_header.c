// SPDX-License-Identifier: Apache-2.0
// Header rules, HX-04 to HX-10, HX-16, HX-17: every row runs through a connection of ours and
// through an nghttp2 session, and either both say the same or the row says why not. nghttp2 by
// default drops invalid regular fields instead of refusing the message; its documented callback for
// the strict behaviour is set here. All of it runs with the fast path of header_text.c and without.
#include "dataplane/h2/header.h"
#include "dataplane/h2/header_text.h"
#include "dataplane/h2/hpack_memo.h"
#include "dataplane/h2/hpack_table.h"
#include "tests/unit/h2/h2_peer.h"
#include "tests/unit/h2/header_rows.h"

#include <nghttp2/nghttp2.h>

static const char *const verdict_names[] = {"OK", "MALFORMED", "ANSWER_400"};

static struct pool chunks;
static struct peer us;
static bool slow_path;

static void write_row(struct raw *raw, const struct row *r)
{
	bool end = !(r->flags & NO_END);
	if (r->informational[0])
		raw_headers(raw, 1, false, r->informational);
	raw_headers(raw, 1, end && !r->has_body && !r->has_trailers, r->head);
	static const uint8_t body[4096];
	if (r->has_body)
		raw_frame(raw, H2_DATA, end && !r->has_trailers ? H2_FLAG_END_STREAM : 0, 1, body,
			r->body);
	if (r->has_trailers)
		raw_headers(raw, 1, end, r->trailers);
}

static void open_request(int flags)
{
	struct h2_message m = {.kind = H2_REQUEST,
		.method = flags & TO_HEAD ? STR("HEAD") : STR("GET"),
		.scheme = STR("http"),
		.authority = STR("a.test"),
		.path = STR("/"),
		.is_grpc = flags & TO_GRPC};
	if (flags & TO_CONNECT)
		m = (struct h2_message){.kind = H2_REQUEST,
			.method = STR("CONNECT"),
			.authority = STR("a.test:80")};
	struct h2_stream *s = h2_stream_open(us.conn, &m, NULL);
	assert_non_null(s);
	peer_add_stream(&us, s);
}

static enum verdict our_verdict(const struct raw *frames, enum side side, int flags)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	us.n_streams = 0;
	peer_clear_log(&us);
	assert_non_null(peer_connect(&us, side == REQUEST ? H2_SERVER : H2_CLIENT));
	raw_preface(raw, side == REQUEST ? H2_CLIENT : H2_SERVER);
	peer_feed(&us, raw);
	if (side == RESPONSE)
		open_request(flags);
	raw_bytes(raw, frames->data, frames->len);
	peer_feed(&us, raw);
	free(raw);
	enum h2_error code;
	assert_false(h2_conn_failed(us.conn, &code));
	const char *out = peer_frames(&us);
	enum verdict v = OK;
	if (strstr(out, "RST_STREAM 1 PROTOCOL_ERROR"))
		v = MALFORMED;
	else if (strstr(us.log, "bad=400"))
		v = ANSWER_400;
	else
		assert_null(strstr(out, "RST_STREAM"));
	// A malformed request's head never reaches the owner; what began well ends with one error.
	if (v == MALFORMED && us.n_streams)
		assert_non_null(strstr(us.log, "closed(1 PROTOCOL_ERROR peer)"));
	if (v == OK)
		assert_non_null(strstr(us.log, side == REQUEST ? "request(" : "response("));
	peer_disconnect(&us, H2_NO_ERROR);
	return v;
}

static int refuse_invalid(nghttp2_session *s, const nghttp2_frame *f, nghttp2_rcbuf *name,
	nghttp2_rcbuf *value, uint8_t flags, void *user)
{
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static nghttp2_session *their_session(enum side side)
{
	nghttp2_session *s;
	nghttp2_session_callbacks *cb;
	assert_int_equal(nghttp2_session_callbacks_new(&cb), 0);
	nghttp2_session_callbacks_set_on_invalid_header_callback2(cb, refuse_invalid);
	if (side == REQUEST)
		assert_int_equal(nghttp2_session_server_new(&s, cb, NULL), 0);
	else
		assert_int_equal(nghttp2_session_client_new(&s, cb, NULL), 0);
	nghttp2_session_callbacks_del(cb);
	assert_int_equal(nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, NULL, 0), 0);
	return s;
}

static nghttp2_nv their_nv(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
		strlen(value), NGHTTP2_NV_FLAG_NONE};
}

// Sends what it has; true = it reset stream 1.
static bool they_reset(nghttp2_session *s)
{
	bool reset = false;
	const uint8_t *p;
	ssize_t n;
	while ((n = nghttp2_session_mem_send(s, &p)) > 0) {
		if (n >= H2_PREFACE_LEN && memcmp(p, H2_PREFACE, H2_PREFACE_LEN) == 0) {
			p += H2_PREFACE_LEN;
			n -= H2_PREFACE_LEN;
		}
		while (n >= H2_FRAME_HEAD) {
			struct h2_frame f = h2_frame_unpack(p);
			if (f.type == H2_GOAWAY)
				fail_msg("nghttp2 ends the connection: code %u",
					h2_read_u32(p + H2_FRAME_HEAD + 4));
			reset |= f.type == H2_RST_STREAM;
			p += H2_FRAME_HEAD + f.length;
			n -= (ssize_t)(H2_FRAME_HEAD + f.length);
		}
		assert_int_equal(n, 0);
	}
	return reset;
}

static enum verdict their_verdict(const struct raw *frames, enum side side, int flags)
{
	nghttp2_session *s = their_session(side);
	struct raw *raw = calloc(1, sizeof(*raw));
	raw_preface(raw, side == REQUEST ? H2_CLIENT : H2_SERVER);
	if (side == RESPONSE) {
		nghttp2_nv plain[] = {their_nv(":method", flags & TO_HEAD ? "HEAD" : "GET"),
			their_nv(":scheme", "http"), their_nv(":authority", "a.test"),
			their_nv(":path", "/")};
		nghttp2_nv tunnel[] = {
			their_nv(":method", "CONNECT"), their_nv(":authority", "a.test:80")};
		bool connect = flags & TO_CONNECT;
		assert_int_equal(nghttp2_submit_request(s, NULL, connect ? tunnel : plain,
					 connect ? 2 : 4, NULL, NULL),
			1);
		they_reset(s);
	}
	raw_bytes(raw, frames->data, frames->len);
	ssize_t n = nghttp2_session_mem_recv(s, raw->data, raw->len);
	assert_int_equal(n, raw->len);
	enum verdict v = they_reset(s) ? MALFORMED : OK;
	nghttp2_session_del(s);
	free(raw);
	return v;
}

static int set_up(void **state)
{
	struct h2_conf conf = peer_conf();
	conf.slow_path = slow_path;
	assert_int_equal(buf_pool_init(&chunks, 256), 0);
	peer_init(&us, &chunks, &conf);
	return 0;
}

static int tear_down(void **state)
{
	peer_fini(&us);
	assert_int_equal(chunks.n_used, 0);
	pool_fini(&chunks);
	return 0;
}

// TH-12, TH-19
static void verdicts_equal_nghttp2s(void **state)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	int n_wrong = 0;
	for (size_t i = 0; i < n_header_rows; i++) {
		const struct row *r = &header_rows[i];
		raw->len = 0;
		write_row(raw, r);
		enum verdict ours = our_verdict(raw, r->side, r->flags);
		enum verdict theirs = their_verdict(raw, r->side, r->flags);
		// A difference that is no longer one must lose its explanation.
		bool same = (ours == OK) == (theirs == OK) && ours != ANSWER_400;
		if (ours == r->ours && same == !r->differs)
			continue;
		print_error("row \"%s\": expected %s, ours %s, nghttp2 %s\n", r->name,
			verdict_names[r->ours], verdict_names[ours], verdict_names[theirs]);
		n_wrong++;
	}
	free(raw);
	assert_int_equal(n_wrong, 0);
	assert_true(n_header_rows >= 150);
}

struct place {
	const char *name;
	const char *fields[12];
	size_t field, at; // where the byte goes
	const char *differing; // bytes that we judge otherwise
	enum verdict differing_ours;
};

// Fields with one byte replaced, which may be NUL.
static void write_place(struct raw *raw, const struct place *p, uint8_t byte)
{
	uint8_t block[512];
	size_t n = raw_fields(block, p->fields);
	// Find the place again in the coded block: fields are uncompressed.
	size_t at = 0;
	for (size_t i = 0; i <= p->field; i++) {
		at += i % 2 == 0 ? 2 : 1;
		if (i < p->field)
			at += strlen(p->fields[i]);
	}
	block[at + p->at] = byte;
	raw_frame(raw, H2_HEADERS, H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM, 1, block, n);
}

static const struct place places[] = {
	{"name", {REQ, "xy", "z"}, 8, 1, NULL, OK},
	{"first of name", {REQ, "xy", "z"}, 8, 0, NULL, OK},
	{"pseudo name", {":method", "GET", REQ}, 0, 3, NULL, OK},
	{"value", {REQ, "x", "abc"}, 9, 1, NULL, OK},
	{"start of value", {REQ, "x", "abc"}, 9, 0, NULL, OK},
	{"end of value", {REQ, "x", "abc"}, 9, 2, NULL, OK},
	{"method", {REQ}, 1, 1, NULL, OK},
	{"scheme", {REQ}, 3, 1, NULL, OK},
	{"start of scheme", {REQ}, 3, 0, NULL, OK},
	{"authority", {REQ}, 5, 1, "@", MALFORMED}, // HX-09: userinfo
	{"host", {":method", "GET", ":scheme", "http", ":path", "/", "host", "abc"}, 7, 1, "@",
		MALFORMED},
	{"length", {REQ, "content-length", "000"}, 9, 1, "123456789", MALFORMED},
	{"te", {REQ, "te", "trailers"}, 9, 2, NULL, OK},
};

// TH-19
static void each_byte_in_each_place_gets_nghttp2s_verdict(void **state)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (int byte = 0; byte < 256; byte++) {
			const struct place *p = &places[i];
			raw->len = 0;
			write_place(raw, p, (uint8_t)byte);
			enum verdict ours = our_verdict(raw, REQUEST, 0);
			enum verdict theirs = their_verdict(raw, REQUEST, 0);
			if (byte && p->differing && strchr(p->differing, byte))
				assert_int_equal(ours, p->differing_ours);
			else if (ours != theirs)
				fail_msg("byte %02x in %s: ours %s, nghttp2 %s", byte, p->name,
					verdict_names[ours], verdict_names[theirs]);
		}
	free(raw);
}

// HX-09: what nghttp2 resets we answer with 400, but for bytes that could cut a line.
static void each_bad_byte_in_path_is_400_or_malformed(void **state)
{
	static const struct place path = {"path",
		{":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/ab"}, 7, 1,
		NULL, OK};
	struct raw *raw = calloc(1, sizeof(*raw));
	for (int byte = 0; byte < 256; byte++) {
		raw->len = 0;
		write_place(raw, &path, (uint8_t)byte);
		enum verdict ours = our_verdict(raw, REQUEST, 0);
		bool cuts = byte == 0 || byte == '\r' || byte == '\n';
		bool fine = their_verdict(raw, REQUEST, 0) == OK;
		assert_int_equal(ours, fine ? OK : cuts ? MALFORMED : ANSWER_400);
	}
	free(raw);
}

static enum verdict verdict_of_block(const char *block, size_t len)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	raw_frame(raw, H2_HEADERS, H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM, 1, block, len);
	enum verdict ours = our_verdict(raw, REQUEST, 0);
	free(raw);
	return ours;
}

// HX-09. RFC 7541 appendix A has a name alone with an empty value: `:authority` is its first one.
static void empty_authority_is_malformed_however_it_is_coded(void **state)
{
	static const char literal[] = "\x83\x86\x84\x01";
	static const char indexed[] = "\x83\x86\x84\x81";
	static const char indexed_and_host[] = "\x83\x86\x84\x81\x0f\x17\x01z";
	assert_int_equal(verdict_of_block(literal, sizeof(literal)), MALFORMED); // with its NUL
	assert_int_equal(verdict_of_block(indexed, sizeof(indexed) - 1), MALFORMED);
	assert_int_equal(
		verdict_of_block(indexed_and_host, sizeof(indexed_and_host) - 1), MALFORMED);
}

// One connection's coder and the rules behind it, without a connection.
struct decoder {
	struct hpack_mem *memory;
	struct hpack_memo *memo;
	struct hpack hpack;
	struct h2_block block;
	char room[HPACK_ROOM(16384)];
};

static struct decoder *decoder_new(void)
{
	struct decoder *d = calloc(1, sizeof(*d));
	d->memory = hpack_mem_new(4);
	d->memo = hpack_memo_new();
	assert_non_null(d->memory);
	assert_non_null(d->memo);
	hpack_init(&d->hpack, true);
	assert_int_equal(h2_block_init(&d->block, 128, 61440), 0);
	d->block.slow_path = slow_path;
	return d;
}

static void decoder_free(struct decoder *d)
{
	h2_block_fini(&d->block);
	hpack_fini(&d->hpack, d->memory);
	assert_int_equal(hpack_mem_used(d->memory), 0);
	hpack_mem_free(d->memory);
	hpack_memo_free(d->memo);
	free(d);
}

static enum h2_malformed judge(struct decoder *d, const void *block, size_t len)
{
	const struct hpack_sink sink = {h2_block_add, h2_block_moves, &d->block};
	h2_block_begin(&d->block, H2_REQUEST);
	assert_int_equal(
		hpack_decode(&d->hpack, d->memory, d->memo, block, len, d->room, &sink), HPACK_OK);
	return h2_block_end(&d->block, true);
}

// What the table's entry or the memo's is known for must not depend on how often it was looked at.
// `literal` is added to the table by one block, behind `before`; others refer to it, or have the
// same literal.
static void text_that_came_before_is_judged_as_when_it_came(void **state)
{
	static const struct {
		const char *name, *before, *literal;
		size_t len; // of literal
		enum h2_malformed verdict;
		uint16_t bad;
		bool is_grpc;
	} rows[] = {
		{"value", "\x82\x86\x84",
			"\x40\x01x\x06"
			"a\0bcde",
			10, H2_BAD_VALUE, 0},
		{"name", "\x82\x86\x84",
			"\x40\x01X\x05"
			"bcdef",
			9, H2_BAD_NAME, 0},
		{"both", "\x82\x86\x84", "\x40\x01X\x05\ngggg", 9, H2_BAD_NAME, 0},
		{"authority", "\x82\x86\x84",
			"\x41\x06"
			"abc@de",
			8, H2_BAD_AUTHORITY, 0},
		{"empty authority", "\x82\x86\x84", "\x41\x00", 2, H2_BAD_AUTHORITY, 0},
		{"method", "\x86\x84",
			"\x42\x06"
			"GET IT",
			8, H2_BAD_METHOD, 0},
		{"scheme", "\x82\x84",
			"\x46\x06"
			"1xxxxx",
			8, H2_BAD_SCHEME, 0},
		{"cut path", "\x82\x86", "\x44\x06/a\r/bc", 8, H2_BAD_VALUE, 400},
		{"path", "\x82\x86", "\x44\x06/a /bc", 8, H2_WELL_FORMED, 400},
		{"good value", "\x82\x86\x84",
			"\x40\x01x\x05"
			"bcdef",
			9, H2_WELL_FORMED, 0},
		{"good path", "\x82\x86", "\x44\x06/bcdef", 8, H2_WELL_FORMED, 0},
		{"te", "\x82\x86\x84", "\x40\x02te\x04gzip", 9, H2_BAD_TE, 0},
		{"good te", "\x82\x86\x84", "\x40\x02te\x08trailers", 13, H2_WELL_FORMED, 0},
		{"grpc", "\x82\x86\x84",
			"\x5f\x10"
			"application/grpc",
			18, H2_WELL_FORMED, 0, true},
		{"no grpc", "\x82\x86\x84", "\x5f\x0atext/plain", 12, H2_WELL_FORMED, 0},
		{"connection", "\x82\x86\x84",
			"\x40\x0a"
			"connection\x01x",
			14, H2_BAD_CONNECTION_FIELD, 0},
		{"length", "\x82\x86\x84", "\x5c\x06xxxxxx", 8, H2_BAD_CONTENT_LENGTH, 0},
		{"host", "\x82\x86\x84",
			"\x66\x06"
			"abc@de",
			8, H2_BAD_AUTHORITY, 0},
	};
	for (size_t k = 0; k < 2 * sizeof(rows) / sizeof(rows[0]); k++) {
		size_t i = k / 2;
		bool by_index = k % 2;
		struct decoder *d = decoder_new();
		char block[40];
		size_t n = strlen(rows[i].before), len = rows[i].len;
		memcpy(block, rows[i].before, n);
		if (!strstr(rows[i].name, "authority") && strcmp(rows[i].name, "host") != 0) {
			memcpy(block + n, "\x01\x01s", 3);
			n += 3;
		}
		memcpy(block + n, rows[i].literal, len);
		for (int time = 0; time < 4; time++) {
			enum h2_malformed verdict = judge(d, block, n + len);
			const struct h2_message *m = &d->block.message;
			if (verdict != rows[i].verdict || m->bad != rows[i].bad ||
				m->is_grpc != rows[i].is_grpc)
				fail_msg("%s, time %d, by %s: %d, bad=%u, is_grpc=%d", rows[i].name,
					time, by_index ? "index" : "literal", verdict, m->bad,
					m->is_grpc);
			if (!by_index)
				continue;
			block[n] = (char)0xbe; // the newest entry
			len = 1;
		}
		decoder_free(d);
	}
}

// RFC 9113 8.3, 8.2.2: so must the rules that are about the block be.
static void fields_of_the_table_keep_to_the_rules_of_the_block(void **state)
{
	static const char *const adds[] = {"\x40\x01x\x01" // x: b
					   "b",
		"\x40\x02te\x08trailers"};
	for (size_t i = 0; i < sizeof(adds) / sizeof(adds[0]); i++) {
		struct decoder *d = decoder_new();
		char block[32] = "\x82\x86\x84";
		strcat(block, adds[i]);
		assert_int_equal(judge(d, block, strlen(block)), H2_WELL_FORMED);
		assert_int_equal(judge(d, "\x82\x86\x84\xbe", 4), H2_WELL_FORMED);
		assert_int_equal(judge(d, "\x82\x86\xbe\x84", 4), H2_BAD_PSEUDO);
		d->block.max_fields = 4;
		assert_int_equal(judge(d, "\x82\x86\x84\xbe\xbe", 5), H2_WELL_FORMED);
		assert_int_equal(d->block.message.bad, 431);
		assert_int_equal(d->block.message.n_fields, 1);
		d->block.max_fields = 128;
		decoder_free(d);
	}
}

// RFC 9110 9.3.2: 431 to HEAD has no content, wherever the list became too large.
static void head_is_known_behind_the_limit(void **state)
{
	static const char *const blocks[] = {"\x84\x86\x02\x04HEAD", "\x02\x04HEAD\x84\x86"};
	for (size_t i = 0; i < 2; i++) {
		struct decoder *d = decoder_new();
		d->block.max_fields = 2;
		assert_int_equal(judge(d, blocks[i], strlen(blocks[i])), H2_WELL_FORMED);
		assert_int_equal(d->block.message.bad, 431);
		assert_true(str_eq(d->block.message.method, STR("HEAD")));
		decoder_free(d);
	}
}

// Every byte in every place of texts of up to two words, alone and beside bytes of each kind.
static void words_say_of_a_text_what_its_bytes_say(void **state)
{
	static const enum h2_text kinds[] = {H2_TEXT_NAME, H2_TEXT_VALUE, H2_TEXT_METHOD,
		H2_TEXT_AUTHORITY, H2_TEXT_PATH, H2_TEXT_SCHEME};
	static const char fillers[] = {'a', '~', '\x80', '\xff', ' ', '\t', '\0', '\x7f'};
	for (size_t i = 0; i < sizeof(fillers); i++)
		for (size_t n = 0; n <= 17; n++)
			for (size_t at = 0; at < n; at++)
				for (int byte = 0; byte < 256; byte++) {
					char text[17];
					memset(text, fillers[i], sizeof(text));
					text[at] = (char)byte;
					struct str s = {text, n};
					for (size_t k = 0; k < 6; k++)
						assert_int_equal(h2_text_is(s, kinds[k], false),
							h2_text_is(s, kinds[k], true));
				}
	assert_false(h2_text_is(STR(""), H2_TEXT_PATH, false));
}

// A field that is plain is known again by its mark, and by no mark on the slow path.
static void only_the_fast_path_knows_a_field_again(void **state)
{
	struct decoder *d = decoder_new();
	struct hpack_field f = {.name = STR("x"), .value = STR("b")};
	h2_block_begin(&d->block, H2_REQUEST);
	assert_true(h2_block_add(&d->block, &f));
	assert_int_equal(!(f.mark & H2_MARK_PLAIN), slow_path);
	f.value = STR("\n"); // what no decoder does: the mark speaks of another text
	assert_true(h2_block_add(&d->block, &f));
	assert_int_equal(d->block.facts.malformed == H2_BAD_VALUE, slow_path);
	decoder_free(d);
}

static size_t add_literal(uint8_t *out, char name, char of, size_t len)
{
	const uint8_t head[] = {0x40, 1, (uint8_t)name, 0x7f, (uint8_t)((len - 127) | 0x80),
		(uint8_t)((len - 127) >> 7)};
	memcpy(out, head, sizeof(head));
	memset(out + sizeof(head), of, len);
	return sizeof(head) + len;
}

// Refers to entries first and then pushes them out of the table, whose memory changes on the way.
static void text_outlives_the_table_that_it_came_from(void **state)
{
	static const char first[] = "\x82\x86\x41\x06"
				    "a.test"
				    "\x44\x05/path"
				    "\x40\x04name\x05value";
	static const char refers[] = "\x82\x86\xc0\xbf\xbe";
	struct decoder *d = decoder_new();
	const struct h2_message *m = &d->block.message;
	assert_int_equal(judge(d, first, sizeof(first) - 1), H2_WELL_FORMED);
	uint8_t block[16384];
	size_t n = sizeof(refers) - 1, n_literals = 0;
	memcpy(block, refers, n);
	for (; n < 8000; n_literals++)
		n += add_literal(block + n, 'y', (char)('a' + n_literals), 900);
	block[n++] = 0xbe;
	assert_int_equal(judge(d, block, n), H2_WELL_FORMED);
	assert_true(str_eq(m->authority, STR("a.test")));
	assert_true(str_eq(m->path, STR("/path")));
	assert_int_equal(m->n_fields, 2 + n_literals);
	assert_true(str_eq(m->fields[0].name, STR("name")));
	assert_true(str_eq(m->fields[0].value, STR("value")));
	for (size_t i = 1; i < m->n_fields; i++) {
		char expected[900];
		size_t literal = i <= n_literals ? i - 1 : n_literals - 1;
		memset(expected, (int)('a' + literal), sizeof(expected));
		assert_true(str_eq(m->fields[i].name, STR("y")));
		assert_true(str_eq(m->fields[i].value, (struct str){expected, sizeof(expected)}));
	}
	decoder_free(d);
}

static const char *heard(const char *const *fields)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	raw_headers(raw, 1, true, fields);
	our_verdict(raw, REQUEST, 0);
	free(raw);
	return strchr(us.log, ' ') + 1; // behind settings(…)
}

// HX-10, VH-11
static void host_becomes_the_authority_and_is_no_field(void **state)
{
	static const char *const only_host[] = {
		":method", "GET", ":scheme", "http", ":path", "/", "host", "b", "x", "y", NULL};
	static const char *const both[] = {REQ, "host", "other.test", "x", "y", NULL};
	assert_string_equal(
		heard(only_host), "request(1 GET http b / x=y end) closed(1 NO_ERROR peer) ");
	assert_string_equal(
		heard(both), "request(1 GET http a.test / x=y end) closed(1 NO_ERROR peer) ");
}

// HX-11
static void fields_keep_order_and_duplicates(void **state)
{
	static const char *const fields[] = {REQ, "b-bin", "AAEC", "a", "1", "b-bin",
		"AA==", "cookie", "x", "cookie", "y", NULL};
	assert_string_equal(heard(fields),
		"request(1 GET http a.test / b-bin=AAEC a=1 b-bin=AA== cookie=x cookie=y end) "
		"closed(1 NO_ERROR peer) ");
}

// gRPC over HTTP/2, "Custom-Metadata"
static void blanks_at_the_ends_of_grpc_values_are_stripped(void **state)
{
	static const char *const fields[] = {REQ, "a", " \t1 2\t ", "content-type",
		"application/grpc ", "te", " trailers", "b", " ", NULL};
	assert_string_equal(heard(fields),
		"request(1 GET http a.test / grpc a=1 2 content-type=application/grpc te=trailers "
		"b= end) closed(1 NO_ERROR peer) ");
}

// What the table gets is what came: the peer's own has it with the blanks. A mark that one message
// leaves says nothing wrong to the next one.
static void a_blank_in_the_table_is_judged_as_when_it_came(void **state)
{
	struct decoder *d = decoder_new();
	const char *const adds[] = {"\x82\x86\x84\x41\1a\x5f\x10" // … content-type
				    "application/grpc"
				    "\x40\1x\2 b",
		"\x82\x86\x84\x41\1a\x40\1x\2 b"};
	for (int i = 0; i < 3; i++) // the literal comes from the memo at last
		assert_int_equal(judge(d, adds[0], strlen(adds[0])), H2_WELL_FORMED);
	assert_true(str_eq(d->block.message.fields[1].value, STR("b")));
	assert_int_equal(judge(d, "\x82\x86\x84\xc0\xbf\xbe", 6), H2_WELL_FORMED);
	assert_true(str_eq(d->block.message.fields[1].value, STR("b")));
	assert_int_equal(judge(d, "\x82\x86\x84\xc0\xbe", 5), H2_BAD_VALUE);
	assert_int_equal(judge(d, adds[1], strlen(adds[1])), H2_BAD_VALUE);
	// 4 bytes more or less show in what stays in the table.
	assert_int_equal(hpack_table_entry(d->hpack.received, 0)->value_len, 2);
	decoder_free(d);
}

// HX-01
static void grpc_is_its_media_type_and_its_suffixed_ones(void **state)
{
	static const struct {
		const char *type;
		bool grpc;
	} types[] = {{"application/grpc", true}, {"application/grpc+proto", true},
		{"application/grpc+", true}, {"application/grpc-web", false},
		{"application/grpc-web+proto", false}, {"application/grpcx", false},
		{"application/grp", false}, {"text/plain", false}, {"", false}};
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const char *fields[] = {REQ, "content-type", types[i].type, NULL};
		assert_int_equal(strstr(heard(fields), " grpc ") != NULL, types[i].grpc);
	}
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test_setup_teardown(verdicts_equal_nghttp2s, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			each_byte_in_each_place_gets_nghttp2s_verdict, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			each_bad_byte_in_path_is_400_or_malformed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			empty_authority_is_malformed_however_it_is_coded, set_up, tear_down),
		cmocka_unit_test(text_that_came_before_is_judged_as_when_it_came),
		cmocka_unit_test(fields_of_the_table_keep_to_the_rules_of_the_block),
		cmocka_unit_test(head_is_known_behind_the_limit),
		cmocka_unit_test(text_outlives_the_table_that_it_came_from),
		cmocka_unit_test_setup_teardown(
			host_becomes_the_authority_and_is_no_field, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			fields_keep_order_and_duplicates, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			blanks_at_the_ends_of_grpc_values_are_stripped, set_up, tear_down),
		cmocka_unit_test(a_blank_in_the_table_is_judged_as_when_it_came),
		cmocka_unit_test_setup_teardown(
			grpc_is_its_media_type_and_its_suffixed_ones, set_up, tear_down),
		cmocka_unit_test(words_say_of_a_text_what_its_bytes_say),
		cmocka_unit_test(only_the_fast_path_knows_a_field_again)};
	int n_failed = cmocka_run_group_tests_name("h2/header", suite, NULL, NULL);
	slow_path = true;
	return n_failed + cmocka_run_group_tests_name("h2/header, slow path", suite, NULL, NULL);
}
