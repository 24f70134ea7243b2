// SPDX-License-Identifier: Apache-2.0
#include "tests/support/llhttp_twin.h"

#include "dataplane/h1/h1.h"
#include "lb/base/check.h"

#include <llhttp/llhttp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_CHUNKS 256
#define MAX_REQUESTS 64
#define MAX_HEADER_BYTES 61440
#define MAX_HEADER_FIELDS 128
#define ONLY_PREFACE "Expected HTTP/2 Connection Preface" // of what follows a method named PRI

enum text { METHOD, TARGET, FIELDS, BODY, N_TEXTS };

// One request as llhttp reads it; of FIELDS each is "name:value\n", trailers among them.
struct theirs {
	struct grown {
		char *p;
		size_t len, size;
	} texts[N_TEXTS];
	bool has_head, is_whole;
};

struct twin {
	struct theirs theirs[MAX_REQUESTS];
	size_t n_theirs;
	size_t n_ours; // heads
	size_t field_at, body_at; // of the last one of ours: where in theirs it has come to
	bool is_open; // our request has not ended
	bool head_closes;
	// It heeds Connection in trailers, too (RFC 9110 6.5.1), and in HTTP/1.0 no keep-alive
	// that a tab follows (RFC 9110 5.5).
	bool closes_early;
	bool knows_less; // llhttp has stopped where it need not
	const char *complaint;
	char reason[128];
};

static void grow(struct grown *g, const char *p, size_t len)
{
	if (g->len + len > g->size) {
		g->size = 2 * (g->len + len);
		g->p = realloc(g->p, g->size);
		CHECK(g->p);
	}
	if (len)
		memcpy(g->p + g->len, p, len);
	g->len += len;
}

// llhttp's side.

static struct grown *text_of(llhttp_t *parser, enum text which)
{
	struct twin *t = parser->data;
	CHECK(t->n_theirs);
	return &t->theirs[t->n_theirs - 1].texts[which];
}

static int on_begin(llhttp_t *parser)
{
	struct twin *t = parser->data;
	if (t->n_theirs == MAX_REQUESTS)
		return HPE_PAUSED;
	t->n_theirs++;
	return 0;
}

static int on_method(llhttp_t *parser, const char *p, size_t len)
{
	grow(text_of(parser, METHOD), p, len);
	return 0;
}

static int on_url(llhttp_t *parser, const char *p, size_t len)
{
	grow(text_of(parser, TARGET), p, len);
	return 0;
}

static int on_name(llhttp_t *parser, const char *p, size_t len)
{
	struct grown *g = text_of(parser, FIELDS);
	grow(g, p, len);
	for (char *at = g->p + g->len - len; at < g->p + g->len; at++)
		*at += (char)(*at >= 'A' && *at <= 'Z' ? 'a' - 'A' : 0);
	return 0;
}

static int on_name_end(llhttp_t *parser)
{
	grow(text_of(parser, FIELDS), ":", 1);
	return 0;
}

static int on_value(llhttp_t *parser, const char *p, size_t len)
{
	grow(text_of(parser, FIELDS), p, len);
	return 0;
}

// Blanks behind a value are left to llhttp's user.
static int on_value_end(llhttp_t *parser)
{
	struct grown *g = text_of(parser, FIELDS);
	while (g->p[g->len - 1] == ' ' || g->p[g->len - 1] == '\t')
		g->len--;
	grow(g, "\n", 1);
	return 0;
}

static int on_head(llhttp_t *parser)
{
	struct twin *t = parser->data;
	t->theirs[t->n_theirs - 1].has_head = true;
	t->head_closes = parser->flags & F_CONNECTION_CLOSE;
	return 0;
}

static int on_body(llhttp_t *parser, const char *p, size_t len)
{
	grow(text_of(parser, BODY), p, len);
	return 0;
}

static int on_end(llhttp_t *parser)
{
	struct twin *t = parser->data;
	t->theirs[t->n_theirs - 1].is_whole = true;
	t->closes_early |= !t->head_closes && (parser->flags & F_CONNECTION_CLOSE);
	t->closes_early |= parser->http_minor == 0 && !llhttp_should_keep_alive(parser);
	return 0;
}

// Whether it stops at what RFC 9110 9.1 and RFC 9112 7.1.1 have, methods beyond its list, and chunk
// extensions with a blank before them, several, or with quotes; or where we have it stop.
static bool knows_less(llhttp_errno_t error, const char *at, const char *begin, const char *end)
{
	if (error != HPE_INVALID_CHUNK_SIZE && error != HPE_STRICT)
		return error == HPE_INVALID_METHOD || error == HPE_PAUSED;
	while (at > begin && at[-1] != '\n')
		at--;
	const char *size = at;
	while (at < end && strchr("0123456789abcdefABCDEF", *at) && *at)
		at++;
	bool has_size = at > size;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return has_size && at < end && *at == ';';
}

// An upgrade, which we ignore (H1-16), makes it pause; it goes on behind it.
static void read_as_llhttp(struct twin *t, const char *p, size_t len)
{
	llhttp_settings_t settings;
	llhttp_t parser;
	llhttp_settings_init(&settings);
	settings.on_message_begin = on_begin;
	settings.on_method = on_method;
	settings.on_url = on_url;
	settings.on_header_field = on_name;
	settings.on_header_field_complete = on_name_end;
	settings.on_header_value = on_value;
	settings.on_header_value_complete = on_value_end;
	settings.on_headers_complete = on_head;
	settings.on_body = on_body;
	settings.on_message_complete = on_end;
	llhttp_init(&parser, HTTP_REQUEST, &settings);
	parser.data = t;
	llhttp_errno_t error;
	while ((error = llhttp_execute(&parser, p, len)) == HPE_PAUSED_UPGRADE) {
		const char *at = llhttp_get_error_pos(&parser);
		len -= (size_t)(at - p);
		p = at;
		llhttp_resume_after_upgrade(&parser);
	}
	const char *why = error == HPE_OK ? "it waits for more" : llhttp_get_error_reason(&parser);
	t->knows_less = t->closes_early || strcmp(why, ONLY_PREFACE) == 0 ||
	                knows_less(error, llhttp_get_error_pos(&parser), p, p + len);
	snprintf(t->reason, sizeof(t->reason), "llhttp does not take it: %s", why);
}

// Ours.

static void complain(struct twin *t, const char *text)
{
	if (!t->complaint)
		t->complaint = text;
}

// Theirs of our last one; NULL = nothing is said of it.
static struct theirs *same(struct twin *t)
{
	if (t->n_ours == 0 || t->complaint)
		return NULL;
	if (t->n_ours <= t->n_theirs && t->theirs[t->n_ours - 1].has_head)
		return &t->theirs[t->n_ours - 1];
	if (!t->knows_less)
		complain(t, t->reason);
	return NULL;
}

// Ours are theirs, but for those that end at this hop.
static void compare_fields(struct twin *t, struct theirs *r, const struct h1_message *m)
{
	struct grown line = {0};
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		const struct grown *all = &r->texts[FIELDS];
		line.len = 0;
		grow(&line, f->name.p, f->name.len);
		grow(&line, ":", 1);
		grow(&line, f->value.p, f->value.len);
		grow(&line, "\n", 1);
		for (bool found = false; !found;) {
			size_t left = all->len - t->field_at;
			const char *at = all->p + t->field_at;
			const char *end = left ? memchr(at, '\n', left) : NULL;
			if (!end && (r->is_whole || !t->knows_less))
				complain(t, "a field is another one, or none, to llhttp");
			if (!end)
				break;
			size_t n = (size_t)(end - at) + 1;
			found = n == line.len && memcmp(at, line.p, n) == 0;
			t->field_at += n;
		}
	}
	free(line.p);
}

static bool is(const struct grown *g, struct str s)
{
	return g->len == s.len && memcmp(g->p, s.p, s.len) == 0;
}

// A path is what a target ends with, or stands for none.
static bool is_path_of(struct str path, const struct grown *target)
{
	if (path.len <= target->len &&
		memcmp(target->p + target->len - path.len, path.p, path.len) == 0)
		return true;
	return path.len == 1 && target->len && target->p[0] != '/';
}

static void compare_head(struct twin *t, const struct h1_message *m)
{
	t->n_ours++;
	t->field_at = t->body_at = 0;
	struct theirs *r = same(t);
	if (!r)
		return;
	if (!is(&r->texts[METHOD], m->method))
		complain(t, "the method is another one to llhttp");
	if (!is_path_of(m->path, &r->texts[TARGET]))
		complain(t, "the path is another one to llhttp");
	compare_fields(t, r, m);
}

static void compare_body(struct twin *t, const uint8_t *p, size_t len)
{
	struct theirs *r = same(t);
	if (!r)
		return;
	const struct grown *body = &r->texts[BODY];
	size_t left = body->len - t->body_at, n = len < left ? len : left;
	if (n && memcmp(body->p + t->body_at, p, n))
		complain(t, "the body is another one to llhttp");
	else if (n < len && (r->is_whole || !t->knows_less))
		complain(t, t->reason);
	else
		t->body_at += n;
}

static void compare_end(struct twin *t)
{
	struct theirs *r = same(t);
	t->is_open = false;
	if (!r)
		return;
	if (!r->is_whole && !t->knows_less)
		complain(t, t->reason);
	if (t->body_at < r->texts[BODY].len)
		complain(t, "the body is longer to llhttp");
}

static void ended(struct h1_conn *c)
{
	static const struct h1_message no_content = {
		.kind = H1_RESPONSE, .status = 204, .content_length = -1, .end_stream = true};
	compare_end(h1_conn_user(c));
	CHECK(h1_conn_send_message(c, &no_content));
}

static void on_message(struct h1_conn *c, const struct h1_message *m)
{
	struct twin *t = h1_conn_user(c);
	t->is_open = true;
	if (m->kind == H1_REQUEST)
		compare_head(t, m);
	else if (same(t))
		compare_fields(t, same(t), m);
	if (m->end_stream)
		ended(c);
}

static void on_data(struct h1_conn *c, const uint8_t *p, size_t len, bool end_stream)
{
	compare_body(h1_conn_user(c), p, len);
	if (end_stream)
		ended(c);
}

static void read_as_we_do(struct twin *t, const uint8_t *p, size_t len)
{
	static const struct h1_conf conf = {.max_conns = 1,
		.max_header_bytes = MAX_HEADER_BYTES,
		.max_header_fields = MAX_HEADER_FIELDS};
	static const struct h1_events events = {on_message, on_data};
	static struct pool chunks;
	static struct h1_context *ctx;
	struct buf out = {0};
	if (!ctx) {
		CHECK(buf_pool_init(&chunks, N_CHUNKS) == 0);
		ctx = h1_context_new(&conf, &chunks);
		CHECK(ctx);
	}
	struct h1_conn *conn = h1_conn_new(ctx, &events, &out, STR("http"), t);
	CHECK(conn);
	for (size_t at = 0, n = 1; at < len && n && t->n_ours < MAX_REQUESTS; at += n) {
		n = h1_conn_step(conn, p + at, len - at);
		buf_clear(&out, &chunks);
	}
	h1_conn_free(conn);
	buf_clear(&out, &chunks);
}

const char *llhttp_twin_complaint(const uint8_t *p, size_t len, struct llhttp_twin_count *count)
{
	static char told[sizeof(((struct twin *)0)->reason)];
	struct twin t = {0};
	read_as_llhttp(&t, (const char *)p, len);
	read_as_we_do(&t, p, len);
	size_t both = t.n_ours < t.n_theirs ? t.n_ours : t.n_theirs;
	count->n_left += t.knows_less;
	count->n_heads += both;
	count->n_whole += both - (both && t.is_open);
	for (size_t i = 0; i < t.n_theirs; i++)
		for (size_t k = 0; k < N_TEXTS; k++)
			free(t.theirs[i].texts[k].p);
	if (!t.complaint)
		return NULL;
	snprintf(told, sizeof(told), "%s", t.complaint);
	return told;
}
