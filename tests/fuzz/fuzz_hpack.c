// SPDX-License-Identifier: Apache-2.0
// Header blocks of one connection, decoded by ours and by nghttp2's coder: the same verdict and the
// same fields. What was decoded is encoded by ours and decoded again by nghttp2's, with the same
// result. Input: records of two bytes and a block: 12 bits of length, and 4 that change the limits
// of tables. Text that ours only borrows is looked at when the whole block is decoded. A third
// decoder gets each block in parts.
#include "dataplane/h2/hpack_memo.h"
#include "dataplane/h2/hpack_part.h"
#include "lb/base/check.h"

#include <nghttp2/nghttp2.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
// Fields on which both agreed so far: tells a test that it has not compared nothing.
extern uint64_t fuzz_hpack_n_fields;
uint64_t fuzz_hpack_n_fields;

#define MAX_FIELDS 8192
#define MAX_BLOCK 4095
#define N_PAGES 8

struct list {
	struct field fields[MAX_FIELDS];
	size_t n;
	char *copies[2 * MAX_FIELDS]; // owned
	size_t n_copies;
};

static struct list ours, theirs, pieces;
static struct hpack_mem *memory;
static struct hpack_memo *memo; // a new one for each input

static struct str copied(struct list *l, const void *p, size_t len)
{
	char *copy = malloc(len + 1);
	CHECK(copy && l->n_copies < 2 * MAX_FIELDS);
	if (len)
		memcpy(copy, p, len);
	l->copies[l->n_copies++] = copy;
	return (struct str){copy, len};
}

static void clear(struct list *l)
{
	for (size_t i = 0; i < l->n_copies; i++)
		free(l->copies[i]);
	l->n = l->n_copies = 0;
}

static bool emit(void *ctx, struct hpack_field *f)
{
	struct list *l = ctx;
	CHECK(l->n < MAX_FIELDS);
	CHECK(f->id < HPACK_N_NAMES);
	l->fields[l->n++] = (struct field){f->name, f->value, f->never_index, (uint8_t)f->id};
	f->mark |= 1;
	return true;
}

static void rescue(struct list *l, struct str *s, const char *text, size_t len)
{
	if (s->len && s->p >= text && s->p < text + len)
		*s = copied(l, s->p, s->len);
}

static void moves(void *ctx, const char *text, size_t len)
{
	struct list *l = ctx;
	for (size_t i = 0; i < l->n; i++) {
		rescue(l, &l->fields[i].name, text, len);
		rescue(l, &l->fields[i].value, text, len);
	}
}

// False = not a block.
static bool inflate(nghttp2_hd_inflater *h, const uint8_t *in, size_t len, struct list *ret)
{
	for (;;) {
		nghttp2_nv nv;
		int flags = 0;
		ssize_t n = nghttp2_hd_inflate_hd2(h, &nv, &flags, in, len, 1);
		if (n < 0)
			return false;
		in += n;
		len -= (size_t)n;
		if (flags & NGHTTP2_HD_INFLATE_EMIT) {
			CHECK(ret->n < MAX_FIELDS);
			ret->fields[ret->n].name = copied(ret, nv.name, nv.namelen);
			ret->fields[ret->n].value = copied(ret, nv.value, nv.valuelen);
			ret->fields[ret->n++].never_index = nv.flags & NGHTTP2_NV_FLAG_NO_INDEX;
		}
		if (flags & NGHTTP2_HD_INFLATE_FINAL)
			break;
	}
	nghttp2_hd_inflate_end_headers(h);
	return true;
}

static void compare(const struct list *a, const struct list *b, bool exactly)
{
	CHECK(a->n == b->n);
	for (size_t i = 0; i < a->n; i++) {
		const struct field *x = &a->fields[i], *y = &b->fields[i];
		CHECK(str_eq(x->name, y->name) && str_eq(x->value, y->value));
		// What was never indexed stays so; more may be.
		CHECK(!x->never_index || y->never_index);
		CHECK(!exactly || x->never_index == y->never_index);
	}
	fuzz_hpack_n_fields += a->n;
}

struct peer {
	struct hpack hpack, parted;
	nghttp2_hd_inflater *inflater, *second;
};

static bool emit_copy(void *ctx, struct hpack_field *f)
{
	struct list *l = ctx;
	CHECK(l->n < MAX_FIELDS);
	l->fields[l->n].name = copied(l, f->name.p, f->name.len);
	l->fields[l->n].value = copied(l, f->value.p, f->value.len);
	l->fields[l->n++].never_index = f->never_index;
	return true;
}

// Each part has so many bytes more than the one before it left.
static bool in_parts(struct peer *p, const uint8_t *in, size_t len, size_t more, char *room)
{
	const struct hpack_sink sink = {emit_copy, moves, &pieces};
	struct hpack_part part = {0};
	size_t from = 0, to = 0, used;
	for (;;) {
		size_t skipped = part.skip < len - to ? part.skip : len - to;
		part.skip -= (uint32_t)skipped;
		from += skipped;
		to = from > to ? from : to;
		to = len - to < more ? len : to + more;
		if (to == len)
			break;
		if (hpack_decode_part(&part, &p->parted, memory, NULL, in + from, to - from, room,
			    &sink, &used) != HPACK_OK)
			return false;
		from += used;
	}
	return hpack_decode_last(&part, &p->parted, memory, NULL, in + from, len - from, room,
		       &sink) == HPACK_OK;
}

static bool block(struct peer *p, const uint8_t *in, size_t len)
{
	char *room = malloc(HPACK_ROOM(len));
	char *room_for_parts = malloc(HPACK_ROOM(len));
	CHECK(room && room_for_parts);
	const struct hpack_sink sink = {emit, moves, &ours};
	enum hpack_result r = hpack_decode(&p->hpack, memory, memo, in, len, room, &sink);
	bool ok = inflate(p->inflater, in, len, &theirs);
	CHECK(ok == (r == HPACK_OK) && (ok || r == HPACK_BAD));
	CHECK(ok == in_parts(p, in, len, 1 + len % 61, room_for_parts));
	if (ok) {
		compare(&pieces, &theirs, true);
		compare(&ours, &theirs, true);
		clear(&theirs);
		uint8_t *out = malloc(hpack_bound(ours.fields, ours.n));
		CHECK(out);
		size_t n = hpack_encode(&p->hpack, memory, ours.fields, ours.n, out);
		CHECK(n <= hpack_bound(ours.fields, ours.n));
		CHECK(inflate(p->second, out, n, &theirs));
		compare(&ours, &theirs, false);
		free(out);
	}
	clear(&ours);
	clear(&theirs);
	clear(&pieces);
	free(room);
	free(room_for_parts);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer p;
	if (!memory)
		memory = hpack_mem_new(N_PAGES);
	memo = hpack_memo_new();
	CHECK(memory && memo);
	hpack_init(&p.hpack, size & 1);
	hpack_init(&p.parted, false);
	CHECK(nghttp2_hd_inflate_new(&p.inflater) == 0);
	CHECK(nghttp2_hd_inflate_new(&p.second) == 0);
	bool ok = true;
	while (ok && size >= 2) {
		size_t len = data[0] | (data[1] & 0xfu) << 8;
		uint8_t limit = data[1] >> 4;
		data += 2;
		size -= 2;
		if (len > size)
			len = size;
		if (limit) { // the peer's SETTINGS; its decoder knows them, too
			uint32_t bytes = limit == 15 ? 65536 : (limit - 1u) * 70;
			hpack_set_table_size(&p.hpack, bytes);
			CHECK(nghttp2_hd_inflate_change_table_size(p.second, bytes) == 0);
		}
		ok = block(&p, data, len);
		data += len;
		size -= len;
	}
	nghttp2_hd_inflate_del(p.inflater);
	nghttp2_hd_inflate_del(p.second);
	hpack_fini(&p.hpack, memory);
	hpack_fini(&p.parted, memory);
	CHECK(hpack_mem_used(memory) == 0);
	hpack_memo_free(memo);
	return 0;
}
