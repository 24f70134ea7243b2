// SPDX-License-Identifier: Apache-2.0
// Header rules, HX-04 to HX-10, HX-16, HX-17: every row runs through a connection of ours and
// through an nghttp2 session, and either both say the same or the row says why not. nghttp2 by
// default drops invalid regular fields instead of refusing the message; its documented callback for
// the strict behaviour is set here.
#include "tests/unit/h2/h2_peer.h"

#include <nghttp2/nghttp2.h>

enum verdict { OK, MALFORMED, ANSWER_400 };
static const char *const verdict_names[] = {"OK", "MALFORMED", "ANSWER_400"};

enum side { REQUEST, RESPONSE };
enum row_flag {
	NO_END = 1, // the last frame does not end the stream
	TO_HEAD = 2, // the response answers HEAD
	TO_CONNECT = 4,
};

#define MAX_FIELDS 12
struct row {
	const char *name;
	enum side side;
	const char *head[2 * MAX_FIELDS];
	enum verdict ours;
	const char *informational[4]; // before a response's head
	const char *trailers[2 * MAX_FIELDS];
	bool has_trailers;
	bool has_body;
	size_t body;
	int flags;
	const char *differs; // nghttp2 says the opposite, because…
};

static struct pool chunks;
static struct peer us;

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
		.path = STR("/")};
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

#define REQ ":method", "GET", ":scheme", "http", ":authority", "a.test", ":path", "/"
#define POST ":method", "POST", ":scheme", "http", ":authority", "a.test", ":path", "/"
#define RES ":status", "200"
#define BODY(n) .has_body = true, .body = (n)
#define TRAILERS(...) .has_trailers = true, .trailers = {__VA_ARGS__}

#define PATH_400 "HX-09: answered with 400 instead of a reset"
#define STRICT_HOST "HX-10, RFC 9113 8.3.1: a host that differs from :authority is malformed"
#define USERINFO "HX-09, RFC 9113 8.3.1: :authority must not include userinfo"
#define STATUS_RANGE "HX-16: status below 100"

static const struct row rows[] = {
	// clang-format off
	// RFC 9113 8.3.1: pseudo-header fields of requests (HX-06)
	{"plain get", REQUEST, {REQ}, OK},
	{"pseudo in another order", REQUEST, {":path", "/", ":authority", "a", ":scheme", "http", ":method", "GET"}, OK},
	{"https scheme", REQUEST, {":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/"}, OK},
	{"no method", REQUEST, {":scheme", "http", ":authority", "a", ":path", "/"}, MALFORMED},
	{"no scheme", REQUEST, {":method", "GET", ":authority", "a", ":path", "/"}, MALFORMED},
	{"no path", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a"}, MALFORMED},
	{"no authority, no host", REQUEST, {":method", "GET", ":scheme", "http", ":path", "/"}, MALFORMED},
	{"host for authority", REQUEST, {":method", "GET", ":scheme", "http", ":path", "/", "host", "a"}, OK},
	{"no fields at all", REQUEST, {NULL}, MALFORMED},
	{"method twice", REQUEST, {REQ, ":method", "GET"}, MALFORMED},
	{"scheme twice", REQUEST, {REQ, ":scheme", "http"}, MALFORMED},
	{"authority twice", REQUEST, {REQ, ":authority", "a.test"}, MALFORMED},
	{"path twice", REQUEST, {REQ, ":path", "/"}, MALFORMED},
	{"path after a field", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", "x", "y", ":path", "/"}, MALFORMED},
	{"late repeated method", REQUEST, {REQ, "x", "y", ":method", "GET"}, MALFORMED},
	{"unknown pseudo", REQUEST, {REQ, ":foo", "bar"}, MALFORMED},
	{"status in a request", REQUEST, {REQ, ":status", "200"}, MALFORMED},
	{"only a colon", REQUEST, {REQ, ":", "bar"}, MALFORMED},
	{"double colon", REQUEST, {REQ, "::path", "/"}, MALFORMED},
	{"upper-case pseudo", REQUEST, {":Method", "GET", ":scheme", "http", ":authority", "a", ":path", "/"}, MALFORMED},
	{"protocol not offered (HX-17)", REQUEST, {":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":authority", "a", ":path", "/"}, MALFORMED},
	// RFC 9113 8.5: CONNECT
	{"connect", REQUEST, {":method", "CONNECT", ":authority", "a.test:443"}, OK, .flags = NO_END},
	{"connect with scheme", REQUEST, {":method", "CONNECT", ":scheme", "http", ":authority", "a:1"}, MALFORMED},
	{"connect with path", REQUEST, {":method", "CONNECT", ":path", "/", ":authority", "a:1"}, MALFORMED},
	{"connect without authority", REQUEST, {":method", "CONNECT"}, MALFORMED},
	{"connect with host only", REQUEST, {":method", "CONNECT", "host", "a:1"}, MALFORMED},
	{"connect ignores content-length", REQUEST, {":method", "CONNECT", ":authority", "a:1", "content-length", "5"}, OK, BODY(2)},
	{"lower-case connect is no CONNECT", REQUEST, {":method", "connect", ":authority", "a:1"}, MALFORMED},
	// methods
	{"head", REQUEST, {":method", "HEAD", ":scheme", "http", ":authority", "a", ":path", "/"}, OK},
	{"made-up method", REQUEST, {":method", "FROB-it!", ":scheme", "http", ":authority", "a", ":path", "/"}, OK},
	{"empty method", REQUEST, {":method", "", ":scheme", "http", ":authority", "a", ":path", "/"}, MALFORMED},
	{"method with blank", REQUEST, {":method", "GE T", ":scheme", "http", ":authority", "a", ":path", "/"}, MALFORMED},
	{"method with slash", REQUEST, {":method", "GET/", ":scheme", "http", ":authority", "a", ":path", "/"}, MALFORMED},
	// schemes
	{"empty scheme", REQUEST, {":method", "GET", ":scheme", "", ":authority", "a", ":path", "/"}, MALFORMED},
	{"scheme with digit first", REQUEST, {":method", "GET", ":scheme", "1http", ":authority", "a", ":path", "/"}, MALFORMED},
	{"scheme with colon", REQUEST, {":method", "GET", ":scheme", "http:", ":authority", "a", ":path", "/"}, MALFORMED},
	{"scheme with plus", REQUEST, {":method", "GET", ":scheme", "coap+tcp", ":authority", "a", ":path", "/"}, OK},
	{"upper-case scheme", REQUEST, {":method", "GET", ":scheme", "HTTP", ":authority", "a", ":path", "/"}, OK},
	{"scheme that names injection", REQUEST, {":method", "GET", ":scheme", "http://x/?", ":authority", "a", ":path", "/"}, MALFORMED},
	// :path (HX-09)
	{"path with query", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/a?b=c#d"}, OK},
	{"path of raw utf-8", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/\xc3\xa4"}, OK},
	{"path of odd bytes", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/\"<>\\^`{|}"}, OK},
	{"empty path", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", ""}, ANSWER_400, .differs = PATH_400},
	{"path without slash", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "x"}, ANSWER_400, .differs = PATH_400},
	{"absolute uri as path", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "http://b/"}, ANSWER_400, .differs = PATH_400},
	{"path with blank", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/a b"}, ANSWER_400, .differs = PATH_400},
	{"path with blank first", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", " /a"}, ANSWER_400, .differs = PATH_400},
	{"path with tab", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/a\tb"}, ANSWER_400, .differs = PATH_400},
	{"path with delete", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/a\x7f"}, ANSWER_400, .differs = PATH_400},
	{"path with cr lf", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/ HTTP/1.1\r\nx: y"}, MALFORMED},
	{"options asterisk", REQUEST, {":method", "OPTIONS", ":scheme", "http", ":authority", "a", ":path", "*"}, OK},
	{"get asterisk", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "*"}, ANSWER_400, .differs = PATH_400},
	{"options two asterisks", REQUEST, {":method", "OPTIONS", ":scheme", "http", ":authority", "a", ":path", "**"}, ANSWER_400, .differs = PATH_400},
	{"asterisk before options", REQUEST, {":path", "*", ":scheme", "http", ":authority", "a", ":method", "OPTIONS"}, OK},
	{"path without slash of another scheme", REQUEST, {":method", "GET", ":scheme", "urn", ":authority", "a", ":path", "x"}, ANSWER_400, .differs = "HX-09 makes no exception for schemes that we don't speak"},
	{"bad path in a malformed request", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "x", "connection", "close"}, MALFORMED},
	// :authority, host (HX-09, HX-10)
	{"authority with port", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a.test:8080", ":path", "/"}, OK},
	{"authority in ip6", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "[::1]:80", ":path", "/"}, OK},
	{"empty authority", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "", ":path", "/"}, MALFORMED},
	{"authority with slash", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a/b", ":path", "/"}, MALFORMED},
	{"authority with blank", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a b", ":path", "/"}, MALFORMED},
	{"authority with query", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "a?b", ":path", "/"}, MALFORMED},
	{"authority of raw utf-8", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "\xc3\xa4", ":path", "/"}, MALFORMED},
	{"userinfo in authority", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "u@a", ":path", "/"}, MALFORMED, .differs = USERINFO},
	{"userinfo with password", REQUEST, {":method", "GET", ":scheme", "http", ":authority", "u:p@a", ":path", "/"}, MALFORMED, .differs = USERINFO},
	{"userinfo in host", REQUEST, {":method", "GET", ":scheme", "http", ":path", "/", "host", "u@a"}, MALFORMED, .differs = USERINFO},
	{"host equal to authority", REQUEST, {REQ, "host", "a.test"}, OK},
	{"host equal but for case", REQUEST, {REQ, "host", "A.TEST"}, OK},
	{"host with the default port", REQUEST, {REQ, "host", "a.test:80"}, OK},
	{"host that differs", REQUEST, {REQ, "host", "b.test"}, MALFORMED, .differs = STRICT_HOST},
	{"host with another port", REQUEST, {REQ, "host", "a.test:81"}, MALFORMED, .differs = STRICT_HOST},
	{"host twice", REQUEST, {REQ, "host", "a.test", "host", "a.test"}, MALFORMED},
	{"host empty", REQUEST, {REQ, "host", ""}, MALFORMED},
	{"host with slash", REQUEST, {REQ, "host", "a/b"}, MALFORMED},
	// RFC 9113 8.2.1: names (HX-07)
	{"upper-case name", REQUEST, {REQ, "X-Y", "z"}, MALFORMED},
	{"upper-case last letter", REQUEST, {REQ, "x-Y", "z"}, MALFORMED},
	{"empty name", REQUEST, {REQ, "", "z"}, MALFORMED},
	{"name with blank", REQUEST, {REQ, "x y", "z"}, MALFORMED},
	{"name with colon inside", REQUEST, {REQ, "x:y", "z"}, MALFORMED},
	{"name with trailing blank", REQUEST, {REQ, "x ", "z"}, MALFORMED},
	{"name with lf", REQUEST, {REQ, "x\ny", "z"}, MALFORMED},
	{"name with brackets", REQUEST, {REQ, "x(y)", "z"}, MALFORMED},
	{"name with utf-8", REQUEST, {REQ, "\xc3\xa4", "z"}, MALFORMED},
	{"name of every odd token byte", REQUEST, {REQ, "!#$%&'*+-.^_`|~09az", "z"}, OK},
	// values (HX-07)
	{"empty value", REQUEST, {REQ, "x", ""}, OK},
	{"value with blanks inside", REQUEST, {REQ, "x", "a b\tc"}, OK},
	{"value with leading blank", REQUEST, {REQ, "x", " a"}, MALFORMED},
	{"value with trailing blank", REQUEST, {REQ, "x", "a "}, MALFORMED},
	{"value with leading tab", REQUEST, {REQ, "x", "\ta"}, MALFORMED},
	{"value with trailing tab", REQUEST, {REQ, "x", "a\t"}, MALFORMED},
	{"value of one blank", REQUEST, {REQ, "x", " "}, MALFORMED},
	{"value with cr", REQUEST, {REQ, "x", "a\rb"}, MALFORMED},
	{"value with lf", REQUEST, {REQ, "x", "a\nb"}, MALFORMED},
	{"value that splits", REQUEST, {REQ, "x", "a\r\ntransfer-encoding: chunked"}, MALFORMED},
	{"value with escape", REQUEST, {REQ, "x", "a\x1b"}, MALFORMED},
	{"value with delete", REQUEST, {REQ, "x", "a\x7f"}, MALFORMED},
	{"value of utf-8", REQUEST, {REQ, "x", "\xc3\xa4\xff"}, OK},
	// connection-specific fields (HX-04)
	{"connection", REQUEST, {REQ, "connection", "close"}, MALFORMED},
	{"connection, empty", REQUEST, {REQ, "connection", ""}, MALFORMED},
	{"proxy-connection", REQUEST, {REQ, "proxy-connection", "keep-alive"}, MALFORMED},
	{"keep-alive", REQUEST, {REQ, "keep-alive", "timeout=5"}, MALFORMED},
	{"transfer-encoding", REQUEST, {REQ, "transfer-encoding", "chunked"}, MALFORMED},
	{"upgrade", REQUEST, {REQ, "upgrade", "h2c"}, MALFORMED},
	{"http2-settings passes", REQUEST, {REQ, "http2-settings", "AAMAAABk"}, OK},
	{"a name close to connection", REQUEST, {REQ, "connectiom", "close"}, OK},
	{"x-upgrade", REQUEST, {REQ, "x-upgrade", "h2c"}, OK},
	// te (HX-05)
	{"te trailers", REQUEST, {REQ, "te", "trailers"}, OK},
	{"te in another case", REQUEST, {REQ, "te", "TRAILERS"}, OK},
	{"te gzip", REQUEST, {REQ, "te", "gzip"}, MALFORMED},
	{"te list", REQUEST, {REQ, "te", "trailers, gzip"}, MALFORMED},
	{"te with weight", REQUEST, {REQ, "te", "trailers;q=0.5"}, MALFORMED},
	{"te empty", REQUEST, {REQ, "te", ""}, MALFORMED},
	{"te twice", REQUEST, {REQ, "te", "trailers", "te", "trailers"}, OK},
	// content-length (HX-08)
	{"length that fits", REQUEST, {POST, "content-length", "5"}, OK, BODY(5)},
	{"length zero, no body", REQUEST, {POST, "content-length", "0"}, OK},
	{"length zero, empty data", REQUEST, {POST, "content-length", "0"}, OK, BODY(0)},
	{"length without body", REQUEST, {POST, "content-length", "5"}, MALFORMED},
	{"length too long", REQUEST, {POST, "content-length", "6"}, MALFORMED, BODY(5)},
	{"length too short", REQUEST, {POST, "content-length", "4"}, MALFORMED, BODY(5)},
	{"length too short, no end", REQUEST, {POST, "content-length", "4"}, MALFORMED, BODY(5), .flags = NO_END},
	{"length not yet reached", REQUEST, {POST, "content-length", "6"}, OK, BODY(5), .flags = NO_END},
	{"length twice, equal", REQUEST, {POST, "content-length", "5", "content-length", "5"}, MALFORMED, BODY(5)},
	{"length twice, differing", REQUEST, {POST, "content-length", "5", "content-length", "6"}, MALFORMED, BODY(5)},
	{"length as list", REQUEST, {POST, "content-length", "5, 5"}, MALFORMED, BODY(5)},
	{"length empty", REQUEST, {POST, "content-length", ""}, MALFORMED},
	{"length negative", REQUEST, {POST, "content-length", "-1"}, MALFORMED},
	{"length with plus", REQUEST, {POST, "content-length", "+5"}, MALFORMED, BODY(5)},
	{"length hexadecimal", REQUEST, {POST, "content-length", "0x5"}, MALFORMED, BODY(5)},
	{"length with a fraction", REQUEST, {POST, "content-length", "5.0"}, MALFORMED, BODY(5)},
	{"length with leading zeros", REQUEST, {POST, "content-length", "0005"}, OK, BODY(5)},
	{"length at 2^63-1", REQUEST, {POST, "content-length", "9223372036854775807"}, OK, .flags = NO_END},
	{"length at 2^63", REQUEST, {POST, "content-length", "9223372036854775808"}, MALFORMED, .flags = NO_END},
	{"length of 30 digits", REQUEST, {POST, "content-length", "100000000000000000000000000005"}, MALFORMED, BODY(5)},
	{"length before trailers fits", REQUEST, {POST, "content-length", "5"}, OK, BODY(5), TRAILERS("a", "b")},
	{"length before trailers does not", REQUEST, {POST, "content-length", "6"}, MALFORMED, BODY(5), TRAILERS("a", "b")},
	{"length, trailers, no data", REQUEST, {POST, "content-length", "5"}, MALFORMED, TRAILERS("a", "b")},
	// trailers of requests
	{"trailers", REQUEST, {POST}, OK, BODY(5), TRAILERS("a", "b")},
	{"trailers without data", REQUEST, {POST}, OK, TRAILERS("a", "b")},
	{"empty trailers", REQUEST, {POST}, OK, BODY(5), TRAILERS(NULL)},
	{"trailers without end", REQUEST, {POST}, MALFORMED, BODY(5), TRAILERS("a", "b"), .flags = NO_END},
	{"pseudo in trailers", REQUEST, {POST}, MALFORMED, BODY(5), TRAILERS(":path", "/")},
	{"status in request trailers", REQUEST, {POST}, MALFORMED, BODY(5), TRAILERS(":status", "200")},
	{"upper case in trailers", REQUEST, {POST}, MALFORMED, BODY(5), TRAILERS("A", "b")},
	{"bad value in trailers", REQUEST, {POST}, MALFORMED, BODY(5), TRAILERS("a", "b\n")},
	{"connection in trailers", REQUEST, {POST}, MALFORMED, BODY(5), TRAILERS("connection", "close")},
	{"te in trailers", REQUEST, {POST}, MALFORMED, BODY(5), TRAILERS("te", "gzip")},
	{"length in trailers fits", REQUEST, {POST}, OK, BODY(5), TRAILERS("content-length", "5")},
	{"length in trailers does not", REQUEST, {POST}, MALFORMED, BODY(5), TRAILERS("content-length", "6")},
	{"length in trailers again", REQUEST, {POST, "content-length", "5"}, MALFORMED, BODY(5), TRAILERS("content-length", "5")},
	{"host in trailers", REQUEST, {POST}, OK, BODY(5), TRAILERS("host", "b")},
	// grpc
	{"grpc request", REQUEST, {POST, "content-type", "application/grpc", "te", "trailers", "grpc-timeout", "1S"}, OK, BODY(5)},
	{"binary metadata", REQUEST, {POST, "x-bin", "AAECAw==", "x-bin", "AAEC"}, OK, BODY(5)},
	{"cookie crumbs", REQUEST, {REQ, "cookie", "a=b", "cookie", "c=d"}, OK},
	// responses: :status (HX-06, HX-16)
	{"plain response", RESPONSE, {RES}, OK},
	{"response with body", RESPONSE, {RES}, OK, BODY(5)},
	{"no status", RESPONSE, {"x", "y"}, MALFORMED},
	{"nothing at all", RESPONSE, {NULL}, MALFORMED},
	{"status twice", RESPONSE, {RES, ":status", "200"}, MALFORMED},
	{"status late", RESPONSE, {"x", "y", ":status", "200"}, MALFORMED},
	{"status empty", RESPONSE, {":status", ""}, MALFORMED},
	{"status of two digits", RESPONSE, {":status", "20"}, MALFORMED},
	{"status of four digits", RESPONSE, {":status", "2000"}, MALFORMED},
	{"status with letter", RESPONSE, {":status", "20a"}, MALFORMED},
	{"status with blank", RESPONSE, {":status", "20 "}, MALFORMED},
	{"status negative", RESPONSE, {":status", "-20"}, MALFORMED},
	{"status with reason", RESPONSE, {":status", "200 OK"}, MALFORMED},
	{"status 099", RESPONSE, {":status", "099"}, MALFORMED, .differs = STATUS_RANGE},
	{"status 000", RESPONSE, {":status", "000"}, MALFORMED, .differs = STATUS_RANGE},
	{"status 999", RESPONSE, {":status", "999"}, OK},
	{"status 101", RESPONSE, {":status", "101"}, MALFORMED, .flags = NO_END},
	{"path in a response", RESPONSE, {RES, ":path", "/"}, MALFORMED},
	{"method in a response", RESPONSE, {":method", "GET", RES}, MALFORMED},
	{"unknown pseudo in a response", RESPONSE, {RES, ":foo", "1"}, MALFORMED},
	// 1xx
	{"100 then 200", RESPONSE, {RES}, OK, .informational = {":status", "100"}},
	{"103 then 200 with body", RESPONSE, {RES}, OK, BODY(3), .informational = {":status", "103"}},
	{"100 that ends the stream", RESPONSE, {":status", "100"}, MALFORMED},
	{"100 then 100 that ends", RESPONSE, {":status", "100"}, MALFORMED, .informational = {":status", "100"}},
	{"data after 100", RESPONSE, {":status", "100"}, MALFORMED, BODY(3)},
	{"100 with length", RESPONSE, {":status", "100", "content-length", "0"}, MALFORMED, .flags = NO_END},
	{"trailers after 100", RESPONSE, {"a", "b"}, MALFORMED, .informational = {":status", "100"}},
	// fields of responses
	{"upper-case name in a response", RESPONSE, {RES, "X", "y"}, MALFORMED},
	{"empty name in a response", RESPONSE, {RES, "", "y"}, MALFORMED},
	{"bad value in a response", RESPONSE, {RES, "x", "y\r\n"}, MALFORMED},
	{"blank at the end in a response", RESPONSE, {RES, "x", "y "}, MALFORMED},
	{"connection in a response", RESPONSE, {RES, "connection", "close"}, MALFORMED},
	{"keep-alive in a response", RESPONSE, {RES, "keep-alive", "1"}, MALFORMED},
	{"proxy-connection in a response", RESPONSE, {RES, "proxy-connection", "1"}, MALFORMED},
	{"transfer-encoding in a response", RESPONSE, {RES, "transfer-encoding", "chunked"}, MALFORMED},
	{"upgrade in a response", RESPONSE, {RES, "upgrade", "h2c"}, MALFORMED},
	{"te in a response", RESPONSE, {RES, "te", "gzip"}, MALFORMED},
	{"te trailers in a response", RESPONSE, {RES, "te", "trailers"}, OK},
	{"host in a response", RESPONSE, {RES, "host", "b"}, OK},
	{"set-cookie twice", RESPONSE, {RES, "set-cookie", "a=b", "set-cookie", "c=d"}, OK},
	// content-length of responses (HX-08)
	{"response length fits", RESPONSE, {RES, "content-length", "5"}, OK, BODY(5)},
	{"response length too long", RESPONSE, {RES, "content-length", "6"}, MALFORMED, BODY(5)},
	{"response length too short", RESPONSE, {RES, "content-length", "4"}, MALFORMED, BODY(5)},
	{"response length, no body", RESPONSE, {RES, "content-length", "5"}, MALFORMED},
	{"response length twice", RESPONSE, {RES, "content-length", "5", "content-length", "5"}, MALFORMED, BODY(5)},
	{"response length of letters", RESPONSE, {RES, "content-length", "five"}, MALFORMED, BODY(5)},
	{"length of an answer to head", RESPONSE, {RES, "content-length", "5"}, OK, .flags = TO_HEAD},
	{"data in an answer to head", RESPONSE, {RES, "content-length", "5"}, MALFORMED, BODY(5), .flags = TO_HEAD},
	{"empty data in an answer to head", RESPONSE, {RES, "content-length", "5"}, OK, BODY(0), .flags = TO_HEAD},
	{"304 with length", RESPONSE, {":status", "304", "content-length", "5"}, OK},
	{"304 with data", RESPONSE, {":status", "304"}, MALFORMED, BODY(5)},
	{"204 plain", RESPONSE, {":status", "204"}, OK},
	{"204 with length zero", RESPONSE, {":status", "204", "content-length", "0"}, OK},
	{"204 with length", RESPONSE, {":status", "204", "content-length", "5"}, MALFORMED},
	{"204 with length zero twice", RESPONSE, {":status", "204", "content-length", "0", "content-length", "0"}, MALFORMED},
	{"204 with data", RESPONSE, {":status", "204"}, MALFORMED, BODY(5)},
	{"connect 200 ignores length", RESPONSE, {RES, "content-length", "5"}, OK, BODY(2), .flags = TO_CONNECT},
	{"connect 400 with length", RESPONSE, {":status", "400", "content-length", "x"}, MALFORMED, .flags = TO_CONNECT},
	// trailers of responses
	{"response trailers", RESPONSE, {RES}, OK, BODY(5), TRAILERS("grpc-status", "0")},
	{"response trailers without data", RESPONSE, {RES}, OK, TRAILERS("grpc-status", "0")},
	{"trailers-only (HX-13)", RESPONSE, {RES, "content-type", "application/grpc", "grpc-status", "14"}, OK},
	{"response trailers without end", RESPONSE, {RES}, MALFORMED, BODY(5), TRAILERS("a", "b"), .flags = NO_END},
	{"status in response trailers", RESPONSE, {RES}, MALFORMED, BODY(5), TRAILERS(":status", "200")},
	{"upper case in response trailers", RESPONSE, {RES}, MALFORMED, BODY(5), TRAILERS("A", "b")},
	{"connection in response trailers", RESPONSE, {RES}, MALFORMED, BODY(5), TRAILERS("connection", "b")},
	{"response length and trailers", RESPONSE, {RES, "content-length", "5"}, OK, BODY(5), TRAILERS("a", "b")},
	{"response length wrong at trailers", RESPONSE, {RES, "content-length", "6"}, MALFORMED, BODY(5), TRAILERS("a", "b")},
	// clang-format on
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static int set_up(void **state)
{
	struct h2_conf conf = peer_conf();
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

static void verdicts_equal_nghttp2s(void **state)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	int n_wrong = 0;
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct row *r = &rows[i];
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
	assert_true(N_ROWS >= 150);
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

static const char *heard(const char *const *fields)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	raw_headers(raw, 1, true, fields);
	our_verdict(raw, REQUEST, 0);
	free(raw);
	return strchr(us.log, ' ') + 1; // behind settings(…)
}

// HX-10
static void host_becomes_the_authority_and_is_no_field(void **state)
{
	static const char *const only_host[] = {
		":method", "GET", ":scheme", "http", ":path", "/", "host", "b", "x", "y", NULL};
	static const char *const both[] = {REQ, "host", "A.test", "x", "y", NULL};
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

RUN_SUITE("h2/header", cmocka_unit_test_setup_teardown(verdicts_equal_nghttp2s, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		each_byte_in_each_place_gets_nghttp2s_verdict, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		each_bad_byte_in_path_is_400_or_malformed, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		host_becomes_the_authority_and_is_no_field, set_up, tear_down),
	cmocka_unit_test_setup_teardown(fields_keep_order_and_duplicates, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		grpc_is_its_media_type_and_its_suffixed_ones, set_up, tear_down))
