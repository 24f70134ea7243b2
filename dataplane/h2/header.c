// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/header.h"

#include "dataplane/h2/header_text.h"
#include "lb/base/cacheline.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// Above the limits fields are still decoded, since the answer is 431 and the HPACK table must stay
// right; a list this many times larger is an attack (one-byte references to large entries).
#define BOMB_FACTOR 4

// Equality with a literal, whose length the compiler knows: no call.
#define IS(s, literal)                                                                             \
	((s).len == sizeof(literal) - 1 && memcmp((s).p, literal, sizeof(literal) - 1) == 0)

// For what most fields need not: what stays has fewer registers to save.
#define APART __attribute__((noinline))

int h2_block_init(struct h2_block *b, uint32_t max_fields, size_t max_bytes)
{
	*b = (struct h2_block){.max_fields = max_fields, .max_bytes = max_bytes};
	b->fields = cacheline_alloc(max_fields, sizeof(*b->fields));
	b->text = cacheline_alloc(1, max_bytes);
	if (b->fields && b->text)
		return 0;
	h2_block_fini(b);
	return -ENOMEM;
}

void h2_block_fini(struct h2_block *b)
{
	cacheline_free(b->fields);
	cacheline_free(b->text);
	*b = (struct h2_block){0};
}

struct str h2_malformed_text(enum h2_malformed why)
{
	static const struct str texts[H2_N_MALFORMED] = {
		[H2_WELL_FORMED] = STR("a stream that depends on itself"),
		[H2_BAD_NAME] = STR("malformed name of a field"),
		[H2_BAD_VALUE] = STR("malformed value of a field"),
		[H2_BAD_PSEUDO] = STR("pseudo-header fields that are missing, repeated, unknown or "
				      "late"),
		[H2_BAD_METHOD] = STR("malformed :method"),
		[H2_BAD_SCHEME] = STR("malformed :scheme"),
		[H2_BAD_AUTHORITY] = STR("malformed :authority or host"),
		[H2_BAD_STATUS] = STR("malformed :status"),
		[H2_BAD_CONNECTION_FIELD] = STR("a field of HTTP/1.1's connections"),
		[H2_BAD_TE] = STR("te other than trailers"),
		[H2_BAD_CONTENT_LENGTH] = STR("malformed content-length, or not the body's"),
		[H2_BAD_SEQUENCE] = STR("messages out of order"),
		[H2_TOO_LARGE] = STR("header fields too large")};
	return texts[why];
}

void h2_block_begin(struct h2_block *b, enum h2_message_kind kind)
{
	memset(&b->message, 0, sizeof(*b) - offsetof(struct h2_block, message));
	b->message.kind = kind;
	b->message.fields = b->fields;
	b->message.content_length = -1;
}

void h2_block_resume(struct h2_block *b, const struct h2_facts *facts)
{
	b->facts = *facts;
	b->facts.too_large = true;
}

static void spoil(struct h2_block *b, enum h2_malformed why)
{
	if (!b->facts.malformed)
		b->facts.malformed = why;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool has_blank_end(struct str v)
{
	return v.len && (is_blank(v.p[0]) || is_blank(v.p[v.len - 1]));
}

static bool value_is(const struct h2_block *b, struct hpack_field *f, enum h2_text t)
{
	return h2_text_value_is(f, t, b->slow_path);
}

static struct str keep(const struct h2_block *b, struct str s)
{
	return b->facts.too_large ? (struct str){0} : s;
}

static void copy_if_in(struct h2_block *b, struct str *s, const char *text, size_t len)
{
	if (s->len == 0 || s->p < text || s->p >= text + len)
		return;
	char *at = b->text + b->text_used;
	memcpy(at, s->p, s->len);
	b->text_used += s->len;
	s->p = at;
}

void h2_block_moves(void *block, const char *text, size_t len)
{
	struct h2_block *b = block;
	struct h2_message *m = &b->message;
	struct str *const pseudo[] = {&m->method, &m->scheme, &m->authority, &m->path, &b->host};
	for (size_t i = 0; i < sizeof(pseudo) / sizeof(pseudo[0]); i++)
		copy_if_in(b, pseudo[i], text, len);
	for (size_t i = 0; i < b->n_fields; i++) {
		copy_if_in(b, &b->fields[i].name, text, len);
		copy_if_in(b, &b->fields[i].value, text, len);
	}
}

// What the text of a request's pseudo-header may be, and what another makes the request. For :path
// that is check_path()'s.
static const struct {
	uint8_t text, malformed;
} pseudo_rules[HPACK_STATUS + 1] = {[HPACK_METHOD] = {H2_TEXT_METHOD, H2_BAD_METHOD},
	[HPACK_SCHEME] = {H2_TEXT_SCHEME, H2_BAD_SCHEME},
	[HPACK_AUTHORITY] = {H2_TEXT_AUTHORITY, H2_BAD_AUTHORITY},
	[HPACK_PATH] = {H2_TEXT_PATH}};

static inline void take_pseudo(
	struct h2_block *b, const struct hpack_field *f, bool *seen, struct str *ret)
{
	if (*seen)
		spoil(b, H2_BAD_PSEUDO);
	*seen = true;
	*ret = keep(b, f->value);
}

// What could cut a line is malformed like in any value; the rest of HX-09 gets its 400.
static void check_path(struct h2_block *b, struct str v)
{
	for (size_t i = 0; i < v.len; i++)
		if (v.p[i] == '\0' || v.p[i] == '\r' || v.p[i] == '\n')
			spoil(b, H2_BAD_VALUE);
	b->message.bad = 400;
}

// HX-16. 101 does not exist in HTTP/2 (RFC 9113 8.6).
static void on_status(struct h2_block *b, struct str v)
{
	if (b->message.status)
		spoil(b, H2_BAD_PSEUDO);
	uint32_t status = 0;
	for (size_t i = 0; i < v.len && i < 3; i++)
		status = v.p[i] >= '0' && v.p[i] <= '9' ? status * 10 + (uint32_t)(v.p[i] - '0')
		                                        : 10000;
	if (v.len != 3 || status < 100 || status > 999 || status == 101) {
		spoil(b, H2_BAD_STATUS);
		status = 200; // known, so that it is not also missing
	}
	b->message.status = (uint16_t)status;
}

static APART void on_pseudo(struct h2_block *b, const struct hpack_field *f)
{
	struct h2_message *m = &b->message;
	struct h2_facts *facts = &b->facts;
	bool request = m->kind == H2_REQUEST;
	if (facts->regular_seen || m->kind == H2_TRAILERS) {
		spoil(b, H2_BAD_PSEUDO);
	} else if (request && f->id == HPACK_METHOD) {
		take_pseudo(b, f, &facts->method_seen, &m->method);
		facts->method_connect = IS(f->value, "CONNECT");
		facts->method_options = IS(f->value, "OPTIONS");
		facts->method_head = IS(f->value, "HEAD");
	} else if (request && f->id == HPACK_SCHEME) {
		take_pseudo(b, f, &facts->scheme_seen, &m->scheme);
	} else if (request && f->id == HPACK_AUTHORITY) {
		take_pseudo(b, f, &facts->authority_seen, &m->authority);
	} else if (request && f->id == HPACK_PATH) {
		take_pseudo(b, f, &facts->path_seen, &m->path);
	} else if (!request && f->id == HPACK_STATUS) {
		on_status(b, f->value);
	} else {
		spoil(b, H2_BAD_PSEUDO); // `:protocol` too: never offered (HX-17)
	}
}

// Whose text is not known to be valid.
static APART void on_new_pseudo(struct h2_block *b, struct hpack_field *f)
{
	on_pseudo(b, f);
	enum h2_text text = pseudo_rules[f->id].text;
	if (b->message.kind != H2_REQUEST || !text || value_is(b, f, text))
		return;
	if (f->id == HPACK_PATH)
		check_path(b, f->value);
	else
		spoil(b, pseudo_rules[f->id].malformed);
}

enum keep_field { KEEP, DROP };

// A bit for each number from content-length's on, which is the first to have rules.
#define FROM_LENGTH(name) (UINT64_C(1) << (HPACK_##name - HPACK_CONTENT_LENGTH))

// HX-08. A repeated one is malformed even when equal, as in nghttp2.
static enum keep_field on_content_length(struct h2_block *b, struct str v)
{
	struct h2_message *m = &b->message;
	if (m->kind == H2_RESPONSE && b->connect_stream && m->status / 100 == 2)
		return DROP; // RFC 9110 9.3.6: to be ignored
	uint64_t number;
	int64_t n = str_number(v, INT64_MAX, &number) ? (int64_t)number : -1;
	if (n < 0 || m->content_length >= 0 || b->length_forbidden)
		spoil(b, H2_BAD_CONTENT_LENGTH);
	if (m->kind == H2_RESPONSE && m->status / 100 == 1)
		spoil(b, H2_BAD_CONTENT_LENGTH);
	m->content_length = n;
	if (m->kind != H2_RESPONSE || m->status != 204)
		return KEEP;
	// RFC 9110 8.6 forbids it here, yet a zero is common and harmless.
	if (n != 0)
		spoil(b, H2_BAD_CONTENT_LENGTH);
	return DROP;
}

static enum keep_field on_host(struct h2_block *b, struct str v)
{
	if (b->message.kind != H2_REQUEST)
		return KEEP;
	if (b->facts.host_seen || !h2_text_is(v, H2_TEXT_AUTHORITY, b->slow_path))
		spoil(b, H2_BAD_AUTHORITY);
	b->facts.host_seen = true;
	b->host = keep(b, v);
	return DROP;
}

static void on_te(struct h2_block *b, struct hpack_field *f)
{
	if (!h2_text_says_trailers(f))
		spoil(b, H2_BAD_TE);
}

// The fields that have rules of their own.
static APART enum keep_field on_special(struct h2_block *b, struct hpack_field *f)
{
	switch (f->id) {
	case HPACK_TE:
		on_te(b, f);
		break;
	case HPACK_HOST:
		return on_host(b, f->value);
	case HPACK_CONTENT_TYPE:
		b->facts.is_grpc = h2_text_says_grpc(f);
		break;
	case HPACK_CONTENT_LENGTH:
		return on_content_length(b, f->value);
	case HPACK_CONNECTION:
	case HPACK_KEEP_ALIVE:
	case HPACK_PROXY_CONNECTION:
	case HPACK_TRANSFER_ENCODING:
	case HPACK_UPGRADE:
		spoil(b, H2_BAD_CONNECTION_FIELD);
		break;
	default:
		break;
	}
	return KEEP;
}

// Of a name that on_special() knows: a bit of a word spares most fields the call.
static bool is_special(enum hpack_name id)
{
	_Static_assert(HPACK_CONTENT_LENGTH < HPACK_CONTENT_TYPE && HPACK_TE < HPACK_UPGRADE &&
			       HPACK_UPGRADE - HPACK_CONTENT_LENGTH < 64,
		"the first and the last of them");
	const uint64_t names = FROM_LENGTH(CONTENT_LENGTH) | FROM_LENGTH(CONTENT_TYPE) |
	                       FROM_LENGTH(HOST) | FROM_LENGTH(TRANSFER_ENCODING) |
	                       FROM_LENGTH(TE) | FROM_LENGTH(CONNECTION) | FROM_LENGTH(KEEP_ALIVE) |
	                       FROM_LENGTH(PROXY_CONNECTION) | FROM_LENGTH(UPGRADE);
	return id >= HPACK_CONTENT_LENGTH && id <= HPACK_UPGRADE &&
	       names >> (id - HPACK_CONTENT_LENGTH) & 1;
}

// A name with a number is well formed.
static APART void check_text(struct h2_block *b, struct hpack_field *f)
{
	bool name_ok = f->id || h2_text_is(f->name, H2_TEXT_NAME, b->slow_path);
	bool ok = f->value.len == 0 || h2_text_is(f->value, H2_TEXT_VALUE, b->slow_path);
	if (!name_ok)
		spoil(b, H2_BAD_NAME);
	if (!ok)
		spoil(b, H2_BAD_VALUE);
	if (name_ok && ok)
		f->mark |= H2_MARK_CHECKED;
}

static inline void keep_field(struct h2_block *b, const struct hpack_field *f)
{
	b->facts.regular_seen = true;
	b->fields[b->n_fields++] = (struct field){.name = f->name,
		.value = f->value,
		.never_index = f->never_index,
		.name_id = (uint8_t)f->id};
}

static APART void on_regular(struct h2_block *b, struct hpack_field *f)
{
	b->facts.regular_seen = true;
	if (!(f->mark & H2_MARK_CHECKED))
		check_text(b, f);
	bool special = is_special(f->id);
	if (special && on_special(b, f) == DROP)
		return;
	if (f->mark & H2_MARK_CHECKED && (!special || f->mark & H2_MARK_TRAILERS) && !b->slow_path)
		f->mark |= H2_MARK_PLAIN;
	if (!b->facts.too_large)
		keep_field(b, f);
}

// gRPC over HTTP/2, "Custom-Metadata": such blanks may be stripped. Whose they are is known at the
// end of the block. The connection's table must have what came, and no mark.
static APART void on_blank_end(struct h2_block *b, const struct hpack_field *f)
{
	struct hpack_field stripped = *f;
	stripped.value = str_trim(f->value);
	b->facts.blank_seen = true;
	on_regular(b, &stripped);
}

static APART void on_other(struct h2_block *b, struct hpack_field *f)
{
	if (b->slow_path)
		f->mark = 0;
	bool pseudo = f->id ? f->id <= HPACK_STATUS : f->name.len && f->name.p[0] == ':';
	bool known = f->mark & H2_MARK_CHECKED;
	if (pseudo && known)
		on_pseudo(b, f);
	else if (pseudo)
		on_new_pseudo(b, f);
	else if (!known && has_blank_end(f->value))
		on_blank_end(b, f);
	else
		on_regular(b, f);
}

// Of a list above the limits. False = no honest one.
static APART bool on_excess(struct h2_block *b, struct hpack_field *f)
{
	b->facts.too_large = true;
	if (b->list_bytes > BOMB_FACTOR * b->max_bytes)
		return false;
	on_other(b, f);
	return true;
}

bool h2_block_add(void *block, struct hpack_field *f)
{
	struct h2_block *b = block;
	b->list_bytes += f->name.len + f->value.len + 32;
	b->list_fields++;
	if (b->list_bytes > b->max_bytes || b->list_fields > b->max_fields)
		return on_excess(b, f);
	if (f->mark & H2_MARK_PLAIN)
		keep_field(b, f);
	else
		on_other(b, f);
	return true;
}

// RFC 9113 8.3.1, 8.5.
static void end_request(struct h2_block *b)
{
	struct h2_message *m = &b->message;
	if (!b->facts.method_seen)
		spoil(b, H2_BAD_PSEUDO);
	if (b->facts.method_connect) {
		if (b->facts.scheme_seen || b->facts.path_seen || !b->facts.authority_seen)
			spoil(b, H2_BAD_PSEUDO);
		m->content_length = -1;
	} else if (!b->facts.scheme_seen || !b->facts.path_seen) {
		spoil(b, H2_BAD_PSEUDO);
	}
	// VH-11: :authority rules; host, which might say something else to the backend, ends here.
	if (b->facts.host_seen && !b->facts.authority_seen)
		m->authority = b->host;
	else if (!b->facts.authority_seen)
		m->bad = 400; // nobody could tell whose routes are meant
	bool asterisk = b->facts.method_options && str_eq(m->path, STR("*"));
	if (b->facts.path_seen && !b->facts.too_large && !asterisk &&
		!str_starts(m->path, STR("/")))
		m->bad = 400;
	if (!b->facts.too_large)
		return;
	m->bad = 431;
	if (b->facts.method_head) // no content may answer it
		m->method = STR("HEAD");
}

static void end_response(struct h2_block *b, bool end_stream)
{
	if (!b->message.status && !b->facts.too_large)
		spoil(b, H2_BAD_PSEUDO);
	if (b->message.status / 100 != 1)
		return;
	b->message.kind = H2_INFORMATIONAL;
	if (end_stream)
		spoil(b, H2_BAD_SEQUENCE);
}

enum h2_malformed h2_block_end(struct h2_block *b, bool end_stream)
{
	b->message.is_grpc = b->facts.is_grpc;
	b->message.end_stream = end_stream;
	b->message.n_fields = b->n_fields;
	if (b->facts.blank_seen &&
		!(b->message.kind == H2_REQUEST ? b->facts.is_grpc : b->grpc_stream))
		spoil(b, H2_BAD_VALUE);
	if (b->message.kind == H2_REQUEST)
		end_request(b);
	else if (b->message.kind == H2_RESPONSE)
		end_response(b, end_stream);
	else if (!end_stream)
		spoil(b, H2_BAD_SEQUENCE); // RFC 9113 8.1
	if (b->facts.too_large && b->message.kind != H2_REQUEST)
		spoil(b, H2_TOO_LARGE);
	return b->facts.malformed;
}
