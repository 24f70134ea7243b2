// SPDX-License-Identifier: Apache-2.0
// Layout of a header block: four pseudo-header values, then the fields, each as two 32-bit words,
// the name unless it has a number, and the value. Written in place where a chunk holds all of it.
#include "dataplane/proxy/replay.h"

#include "dataplane/h2/hpack_names.h"
#include "dataplane/h2/hpack_tables.h"
#include "dataplane/proxy/state.h"
#include "lb/base/check.h"
#include "lb/base/min.h"

#include <string.h>

#define NUMBERED (UINT32_C(1) << 31) // first word: the name's number, else its length
#define NEVER_INDEX (UINT32_C(1) << 31) // second word: with the value's length
#define N_PSEUDO 4
// What is noted of a head that small[] does not hold.
#define NOTE_METHOD 16
#define NOTE_AUTHORITY 64
#define NOTE_PATH 112
#define NOTE_ID 64
_Static_assert((N_PSEUDO + 1) * 2 * sizeof(uint32_t) + NOTE_METHOD + NOTE_AUTHORITY + NOTE_PATH +
			       NOTE_ID <=
		       PROXY_REPLAY_SMALL,
	"a note fits");

// As two pieces of this size, which may overlap; it is a constant.
static inline __attribute__((always_inline)) void copy_ends(uint8_t *p, struct str s, size_t size)
{
	uint8_t first[8], last[8];
	memcpy(first, s.p, size);
	memcpy(last, s.p + s.len - size, size);
	memcpy(p, first, size);
	memcpy(p + s.len - size, last, size);
}

// Most are short, and a call costs as much as the copy.
static inline uint8_t *put_text(uint8_t *p, struct str s)
{
	if (s.len > 16)
		memcpy(p, s.p, s.len);
	else if (s.len >= 8)
		copy_ends(p, s, 8);
	else if (s.len >= 4)
		copy_ends(p, s, 4);
	else
		for (size_t i = 0; i < s.len; i++)
			p[i] = (uint8_t)s.p[i];
	return p + s.len;
}

static inline __attribute__((always_inline)) uint8_t *put_value(uint8_t *p, struct str value)
{
	const uint32_t words[2] = {0, (uint32_t)value.len};
	memcpy(p, words, sizeof(words));
	return put_text(p + sizeof(words), value);
}

static inline __attribute__((always_inline)) uint8_t *put_field(uint8_t *p, const struct field *f)
{
	const uint32_t words[2] = {f->name_id ? NUMBERED | f->name_id : (uint32_t)f->name.len,
		(uint32_t)f->value.len | (f->never_index ? NEVER_INDEX : 0)};
	memcpy(p, words, sizeof(words));
	p += sizeof(words);
	if (!f->name_id)
		p = put_text(p, f->name);
	return put_text(p, f->value);
}

static inline __attribute__((always_inline)) size_t len_of(const struct h2_message *m)
{
	size_t len = (N_PSEUDO + m->n_fields) * 2 * sizeof(uint32_t) + m->method.len +
	             m->scheme.len + m->authority.len + m->path.len;
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		len += (f->name_id ? 0 : f->name.len) + f->value.len;
	}
	return len;
}

// Room for len bytes in small[]; NULL = there is none, or something lies behind it already.
static inline uint8_t *small_space(struct proxy_replay *r, size_t len)
{
	bool fits = !r->bytes.head && len <= sizeof(r->small) - r->n_small;
	return fits ? r->small + r->n_small : NULL;
}

static inline __attribute__((always_inline)) void write_block(
	uint8_t *at, const struct h2_message *m)
{
	at = put_value(at, m->method);
	at = put_value(at, m->scheme);
	at = put_value(at, m->authority);
	at = put_value(at, m->path);
	for (size_t i = 0; i < m->n_fields; i++)
		at = put_field(at, &m->fields[i]);
}

static struct str cut(struct str s, size_t most)
{
	return (struct str){s.p, min_size(s.len, most)};
}

// HTTP/1.1 gives no numbers.
struct str proxy_replay_request_id(const struct h2_message *m)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		bool is_id = f->name_id ? f->name_id == HPACK_X_REQUEST_ID
		                        : str_eq(f->name, STR("x-request-id"));
		if (is_id && f->value.len)
			return f->value;
	}
	return STR("");
}

__attribute__((noinline)) void proxy_replay_note(struct proxy_replay *r, const struct h2_message *m)
{
	struct h2_message brief = {.method = cut(m->method, NOTE_METHOD),
		.authority = cut(m->authority, NOTE_AUTHORITY),
		.path = cut(m->path, NOTE_PATH)};
	struct field id = {
		.name_id = HPACK_X_REQUEST_ID, .value = cut(proxy_replay_request_id(m), NOTE_ID)};
	brief.fields = &id;
	brief.n_fields = id.value.len > 0;
	write_block(r->small, &brief);
	r->note_len = (uint32_t)len_of(&brief);
}

// Its length; 0 = larger than any header list we accept, or chunks exhausted.
static uint32_t put_block(struct proxy *p, struct proxy_replay *r, const struct h2_message *m)
{
	size_t len = len_of(m);
	if (m->n_fields > p->scratch.max_fields || len > p->scratch.size)
		return 0;
	uint8_t *small = small_space(r, len);
	uint8_t *in_place = small ? small : buf_space(&r->bytes, p->chunks, len);
	write_block(in_place ? in_place : p->scratch.bytes, m);
	if (small) {
		if (!r->n_small)
			r->note_len = (uint32_t)len;
		r->n_small += (uint32_t)len;
		return (uint32_t)len;
	}
	if (!r->note_len)
		proxy_replay_note(r, m);
	if (in_place)
		buf_added(&r->bytes, len);
	else if (!buf_append(&r->bytes, p->chunks, p->scratch.bytes, len))
		return 0;
	*r->sum += len;
	return (uint32_t)len;
}

static const uint8_t *get_value(const uint8_t *p, struct str *ret)
{
	uint32_t words[2];
	memcpy(words, p, sizeof(words));
	*ret = (struct str){(const char *)p + sizeof(words), words[1]};
	return p + sizeof(words) + ret->len;
}

static const uint8_t *get_field(const uint8_t *p, struct field *ret)
{
	uint32_t words[2];
	memcpy(words, p, sizeof(words));
	p += sizeof(words);
	*ret = (struct field){.never_index = words[1] & NEVER_INDEX};
	if (words[0] & NUMBERED) {
		ret->name_id = (uint8_t)words[0];
		const struct hpack_known *k = &hpack_known[ret->name_id];
		ret->name = (struct str){k->name, k->len};
	} else {
		ret->name = (struct str){(const char *)p, words[0]};
		p += words[0];
	}
	ret->value = (struct str){(const char *)p, words[1] & ~NEVER_INDEX};
	return p + ret->value.len;
}

static void copy_out(const struct proxy_replay *r, size_t at, uint8_t *to, size_t len)
{
	size_t n = at < r->n_small ? r->n_small - at : 0;
	n = n < len ? n : len;
	if (n)
		memcpy(to, r->small + at, n);
	if (n < len)
		buf_copy_out(&r->bytes, at + n - r->n_small, to + n, len - n);
}

// Of scratch.bytes.
static void parse_block(struct proxy *p, size_t len, struct h2_message *ret)
{
	const uint8_t *next = p->scratch.bytes, *end = p->scratch.bytes + len;
	struct str *pseudo[N_PSEUDO] = {&ret->method, &ret->scheme, &ret->authority, &ret->path};
	for (size_t i = 0; i < N_PSEUDO; i++)
		next = get_value(next, pseudo[i]);
	size_t n = 0;
	for (; next < end; n++) {
		CHECK(n < p->scratch.max_fields);
		next = get_field(next, &p->scratch.fields[n]);
	}
	ret->fields = p->scratch.fields;
	ret->n_fields = n;
}

static void read_block(struct proxy *p, const struct proxy_replay *r, size_t at, size_t len,
	struct h2_message *ret)
{
	DCHECK(len <= p->scratch.size);
	copy_out(r, at, p->scratch.bytes, len);
	parse_block(p, len, ret);
}

bool proxy_replay_put_head(struct proxy *p, struct proxy_replay *r, const struct h2_message *m)
{
	DCHECK(proxy_replay_len(r) == 0);
	r->head_len = put_block(p, r, m);
	return r->head_len != 0;
}

bool proxy_replay_put_body(struct proxy *p, struct proxy_replay *r, const uint8_t *data, size_t len)
{
	DCHECK(r->trailers_len == 0);
	uint8_t *small = small_space(r, len);
	if (small) {
		if (!r->n_small)
			r->note_len = 0;
		memcpy(small, data, len);
		r->n_small += (uint32_t)len;
		return true;
	}
	if (!buf_append(&r->bytes, p->chunks, data, len))
		return false;
	*r->sum += len;
	return true;
}

bool proxy_replay_put_trailers(struct proxy *p, struct proxy_replay *r, const struct h2_message *m)
{
	r->trailers_len = put_block(p, r, m);
	return r->trailers_len != 0;
}

void proxy_replay_head(struct proxy *p, const struct proxy_replay *r, struct h2_message *ret)
{
	*ret = (struct h2_message){.kind = H2_REQUEST, .content_length = -1};
	read_block(p, r, 0, r->head_len, ret);
}

bool proxy_replay_known(struct proxy *p, const struct proxy_replay *r, struct h2_message *ret)
{
	*ret = (struct h2_message){.kind = H2_REQUEST, .content_length = -1};
	if (r->head_len) {
		read_block(p, r, 0, r->head_len, ret);
	} else if (r->note_len) {
		memcpy(p->scratch.bytes, r->small, r->note_len);
		parse_block(p, r->note_len, ret);
	}
	return r->head_len || r->note_len;
}

void proxy_replay_trailers(struct proxy *p, const struct proxy_replay *r, struct h2_message *ret)
{
	*ret = (struct h2_message){.kind = H2_TRAILERS, .content_length = -1, .end_stream = true};
	read_block(p, r, proxy_replay_len(r) - r->trailers_len, r->trailers_len, ret);
}

static bool send_copy(
	struct proxy *p, const struct proxy_replay *r, struct h2_stream *s, bool end_stream)
{
	size_t left = proxy_replay_body_len(r);
	for (size_t at = r->head_len; left;) {
		size_t n = left < p->scratch.size ? left : p->scratch.size;
		copy_out(r, at, p->scratch.bytes, n);
		at += n;
		left -= n;
		if (!h2_stream_send_data(s, p->scratch.bytes, n, end_stream && !left))
			return false;
	}
	return true;
}

// Head and body go; trailers stay.
static bool pass_on(struct proxy *p, struct proxy_replay *r, struct h2_stream *s, bool end_stream)
{
	size_t body_len = proxy_replay_body_len(r), before = r->bytes.len;
	size_t from = min_size(r->head_len, r->n_small);
	size_t to = min_size(r->head_len + body_len, r->n_small);
	size_t left = body_len - (to - from); // behind small[]
	bool ok = to == from ||
	          h2_stream_send_data(s, r->small + from, to - from, end_stream && !left);
	buf_consume(&r->bytes, p->chunks, r->head_len - from);
	r->head_len = 0;
	r->n_small -= (uint32_t)to;
	memmove(r->small, r->small + to, r->n_small);
	if (r->n_small)
		r->note_len = 0;
	struct buf body = {0};
	ok = ok && buf_move(&body, &r->bytes, left, p->chunks);
	*r->sum -= before - r->bytes.len;
	if (ok && left)
		ok = h2_stream_send_buf(s, &body, end_stream);
	buf_clear(&body, p->chunks);
	return ok;
}

bool proxy_replay_send_body(
	struct proxy *p, struct proxy_replay *r, struct h2_stream *s, bool end_stream, bool keep)
{
	return keep ? send_copy(p, r, s, end_stream) : pass_on(p, r, s, end_stream);
}

void proxy_replay_drop_bytes(struct proxy *p, struct proxy_replay *r)
{
	*r->sum -= r->bytes.len;
	if (r->bytes.head)
		buf_clear(&r->bytes, p->chunks);
	r->head_len = r->trailers_len = r->n_small = 0;
}
