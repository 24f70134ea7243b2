// SPDX-License-Identifier: Apache-2.0
// Layout of a header block: four pseudo-header values, then the fields, each as two 32-bit lengths
// (the value's with the top bit for never-indexed), name, value. Written flat into the scratch
// space first, so that the chunks see one copy.
#include "dataplane/proxy/replay.h"

#include "dataplane/proxy/state.h"
#include "lb/base/check.h"

#include <string.h>

#define NEVER_INDEX (UINT32_C(1) << 31)

struct block {
	uint8_t *p;
	size_t len, room;
	bool full;
};

static void put(struct block *b, struct str name, struct str value, bool never_index)
{
	uint32_t lens[2] = {(uint32_t)name.len, (uint32_t)value.len};
	if (b->room - b->len < sizeof(lens) + name.len + value.len) {
		b->full = true;
		return;
	}
	if (never_index)
		lens[1] |= NEVER_INDEX;
	uint8_t *p = b->p + b->len;
	memcpy(p, lens, sizeof(lens));
	p += sizeof(lens);
	if (name.len)
		memcpy(p, name.p, name.len);
	p += name.len;
	if (value.len)
		memcpy(p, value.p, value.len);
	b->len += sizeof(lens) + name.len + value.len;
}

// 0 = larger than any header list we accept.
static size_t lay_out(struct proxy *p, const struct h2_message *m)
{
	struct block b = {.p = p->scratch, .room = p->scratch_size};
	put(&b, (struct str){0}, m->method, false);
	put(&b, (struct str){0}, m->scheme, false);
	put(&b, (struct str){0}, m->authority, false);
	put(&b, (struct str){0}, m->path, false);
	for (size_t i = 0; i < m->n_fields; i++)
		put(&b, m->fields[i].name, m->fields[i].value, m->fields[i].never_index);
	return b.full ? 0 : b.len;
}

static const uint8_t *get(
	const uint8_t *p, struct str *ret_name, struct str *ret_value, bool *ret_never_index)
{
	uint32_t lens[2];
	memcpy(lens, p, sizeof(lens));
	p += sizeof(lens);
	*ret_never_index = lens[1] & NEVER_INDEX;
	*ret_name = (struct str){(const char *)p, lens[0]};
	p += lens[0];
	*ret_value = (struct str){(const char *)p, lens[1] & ~NEVER_INDEX};
	return p + ret_value->len;
}

static void read_block(struct proxy *p, const struct proxy_replay *r, size_t at, size_t len,
	struct h2_message *ret)
{
	DCHECK(len <= p->scratch_size);
	buf_copy_out(&r->bytes, at, p->scratch, len);
	const uint8_t *next = p->scratch, *end = p->scratch + len;
	struct str *pseudo[] = {&ret->method, &ret->scheme, &ret->authority, &ret->path};
	for (size_t i = 0; i < 4; i++) {
		struct str no_name;
		bool never_index;
		next = get(next, &no_name, pseudo[i], &never_index);
	}
	size_t n = 0;
	for (; next < end; n++) {
		CHECK(n < p->max_fields);
		struct field *f = &p->fields[n];
		*f = (struct field){0}; // no number: the name is looked for
		next = get(next, &f->name, &f->value, &f->never_index);
	}
	ret->fields = p->fields;
	ret->n_fields = n;
}

bool proxy_replay_put_head(struct proxy *p, struct proxy_replay *r, const struct h2_message *m)
{
	DCHECK(r->bytes.len == 0);
	size_t len = m->n_fields <= p->max_fields ? lay_out(p, m) : 0;
	if (!len || !buf_append(&r->bytes, p->chunks, p->scratch, len))
		return false;
	r->head_len = (uint32_t)len;
	return true;
}

bool proxy_replay_put_body(struct proxy *p, struct proxy_replay *r, const uint8_t *data, size_t len)
{
	DCHECK(r->trailers_len == 0);
	return len == 0 || buf_append(&r->bytes, p->chunks, data, len);
}

bool proxy_replay_put_trailers(struct proxy *p, struct proxy_replay *r, const struct h2_message *m)
{
	size_t len = m->n_fields <= p->max_fields ? lay_out(p, m) : 0;
	if (!len || !buf_append(&r->bytes, p->chunks, p->scratch, len))
		return false;
	r->trailers_len = (uint32_t)len;
	return true;
}

void proxy_replay_head(struct proxy *p, const struct proxy_replay *r, struct h2_message *ret)
{
	*ret = (struct h2_message){.kind = H2_REQUEST, .content_length = -1};
	read_block(p, r, 0, r->head_len, ret);
}

void proxy_replay_trailers(struct proxy *p, const struct proxy_replay *r, struct h2_message *ret)
{
	*ret = (struct h2_message){.kind = H2_TRAILERS, .content_length = -1, .end_stream = true};
	read_block(p, r, r->bytes.len - r->trailers_len, r->trailers_len, ret);
}

static bool send_copy(
	struct proxy *p, const struct proxy_replay *r, struct h2_stream *s, bool end_stream)
{
	size_t left = proxy_replay_body_len(r);
	for (size_t at = r->head_len; left;) {
		size_t n = left < p->scratch_size ? left : p->scratch_size;
		buf_copy_out(&r->bytes, at, p->scratch, n);
		at += n;
		left -= n;
		if (!h2_stream_send_data(s, p->scratch, n, end_stream && !left))
			return false;
	}
	return true;
}

bool proxy_replay_send_body(
	struct proxy *p, struct proxy_replay *r, struct h2_stream *s, bool end_stream, bool keep)
{
	if (keep)
		return send_copy(p, r, s, end_stream);
	struct buf body = {0};
	size_t body_len = proxy_replay_body_len(r);
	buf_consume(&r->bytes, p->chunks, r->head_len);
	r->head_len = 0;
	if (!buf_move(&body, &r->bytes, body_len, p->chunks))
		return false;
	bool ok = h2_stream_send_buf(s, &body, end_stream);
	buf_clear(&body, p->chunks);
	return ok;
}

void proxy_replay_drop(struct proxy *p, struct proxy_replay *r)
{
	buf_clear(&r->bytes, p->chunks);
	r->head_len = r->trailers_len = 0;
}
