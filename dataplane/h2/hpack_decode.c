// SPDX-License-Identifier: Apache-2.0
// Header blocks in (RFC 7541 3.2, 6).
#include "dataplane/h2/hpack_memo.h"
#include "dataplane/h2/hpack_number.h"
#include "dataplane/h2/hpack_table.h"
#include "dataplane/h2/hpack_tables.h"
#include "dataplane/h2/huffman.h"

#define INDEXED 0x80 // RFC 7541 6.1
#define MAX_SHORT 0x7f // of an index: more needs more bytes
#define N_SHORT (MAX_SHORT - HPACK_N_STATIC - 1) // newest entries, which such an index may name

struct reader {
	const uint8_t *p, *end;
	char *room; // for what is decoded next
	struct hpack_table **table;
	struct hpack_memo *memo; // NULL = none
};

static bool read_number(struct reader *r, uint8_t prefix_max, uint32_t *ret)
{
	return hpack_number_read(&r->p, r->end, prefix_max, ret);
}

// RFC 7541 5.2.
static bool read_text(struct reader *r, struct str *ret)
{
	uint32_t len;
	if (r->p == r->end)
		return false;
	bool coded = *r->p & 0x80;
	if (!read_number(r, 0x7f, &len) || len > (size_t)(r->end - r->p))
		return false;
	const uint8_t *p = r->p;
	r->p += len;
	if (!coded) {
		*ret = (struct str){(const char *)p, len};
		return true;
	}
	ptrdiff_t n = huffman_decode(p, len, r->room);
	if (n < 0)
		return false;
	*ret = (struct str){r->room, (size_t)n};
	r->room += n;
	return true;
}

static inline struct hpack_field field_of(const struct hpack_table *t, const struct hpack_entry *e)
{
	return (struct hpack_field){.name = hpack_entry_name(t, e),
		.value = hpack_entry_value(t, e),
		.id = e->id,
		.mark = e->mark};
}

static struct hpack_entry *find(struct reader *r, uint32_t index)
{
	uint32_t age = index - HPACK_N_STATIC - 1;
	return age < hpack_table_n(*r->table) ? hpack_table_entry(*r->table, age) : NULL;
}

// RFC 7541 6.1. *ret_entry: that of the dynamic table.
static inline __attribute__((always_inline)) bool read_indexed(
	struct reader *r, struct hpack_field *f, struct hpack_entry **ret_entry)
{
	uint32_t index;
	if (!read_number(r, MAX_SHORT, &index) || index == 0)
		return false;
	*ret_entry = NULL;
	if (index <= HPACK_N_STATIC) {
		const struct hpack_static *s = &hpack_static[index];
		*f = (struct hpack_field){.name = {s->name, s->name_len},
			.value = {s->value, s->value_len},
			.id = s->id,
			.mark = s->value_len ? HPACK_MARK_STATIC : 0};
		return true;
	}
	struct hpack_entry *e = find(r, index);
	if (!e)
		return false;
	*f = field_of(*r->table, e);
	*ret_entry = e;
	return true;
}

// RFC 7541 6.2.
static bool read_literal(struct reader *r, uint8_t prefix_max, struct hpack_field *f)
{
	uint32_t index;
	*f = (struct hpack_field){0};
	if (!read_number(r, prefix_max, &index))
		return false;
	if (index == 0) {
		if (!read_text(r, &f->name))
			return false;
		f->id = hpack_name_of(f->name);
	} else if (index <= HPACK_N_STATIC) {
		const struct hpack_static *s = &hpack_static[index];
		f->name = (struct str){s->name, s->name_len};
		f->id = s->id;
	} else {
		const struct hpack_entry *e = find(r, index);
		if (!e)
			return false;
		f->name = hpack_entry_name(*r->table, e);
		f->id = e->id;
	}
	return read_text(r, &f->value);
}

// Length of the literal at hand, if it is one for the memo: its name is of its own or of the static
// table, and all of it is there. 0 = it is not.
static inline size_t literal_len(const struct reader *r, uint8_t prefix_max)
{
	size_t left = (size_t)(r->end - r->p), len = 1;
	uint32_t index = *r->p & prefix_max;
	if (index == prefix_max || index > HPACK_N_STATIC)
		return 0;
	for (int texts = index ? 1 : 2; texts > 0; texts--) {
		if (len >= left)
			return 0;
		len += 1 + (r->p[len] & 0x7fu); // a length of more bytes is too large anyway
	}
	return len <= left && len >= HPACK_MEMO_MIN && len <= HPACK_MEMO_MAX ? len : 0;
}

static bool read_by_memo(struct reader *r, uint8_t prefix_max, struct hpack_field *f,
	struct hpack_memo_field **ret_known)
{
	const uint8_t *bytes = r->p;
	size_t len = literal_len(r, prefix_max);
	struct hpack_memo_field *place = NULL;
	if (len) {
		const struct hpack_memo_field *e = *ret_known =
			hpack_memo_find(r->memo, bytes, len, &place);
		if (e) {
			*f = (struct hpack_field){.name = {e->text, e->name_len},
				.value = {e->text + e->name_len, e->value_len},
				.id = e->id,
				.mark = e->mark};
			r->p += len;
			return true;
		}
	}
	if (!read_literal(r, prefix_max, f))
		return false;
	if (place)
		*ret_known = hpack_memo_keep(r->memo, place, bytes, len, f);
	return true;
}

// As read_literal(), but the memo, if there is one, is asked first. *ret_known: its field, which is
// to have the mark that the sink makes.
static inline bool read_known(struct reader *r, uint8_t prefix_max, struct hpack_field *f,
	struct hpack_memo_field **ret_known)
{
	*ret_known = NULL;
	return r->memo ? read_by_memo(r, prefix_max, f, ret_known) : read_literal(r, prefix_max, f);
}

// RFC 7541 4.2, 6.3. Before the first field: nobody has borrowed from the table.
static bool resize(struct hpack *h, struct hpack_mem *m, struct reader *r)
{
	uint32_t size;
	if (!read_number(r, 0x1f, &size) || size > HPACK_TABLE_SIZE)
		return false;
	h->received_limit = (uint16_t)size;
	hpack_table_evict(h->received, size);
	if (hpack_table_n(h->received) == 0) {
		hpack_mem_put(m, h->received);
		h->received = NULL;
	}
	return true;
}

static inline bool resize_all(struct hpack *h, struct hpack_mem *m, struct reader *r)
{
	while (r->p < r->end && (*r->p & 0xe0) == 0x20)
		if (!resize(h, m, r))
			return false;
	return true;
}

// What most fields are: entries of our table, each in one byte. Returns where another field begins;
// NULL = the sink stopped.
static inline const uint8_t *read_again(
	struct hpack_table *t, const uint8_t *p, const uint8_t *end, const struct hpack_sink *sink)
{
	uint32_t n = hpack_table_n(t) < N_SHORT ? hpack_table_n(t) : N_SHORT;
	for (; p < end; p++) {
		uint32_t age = *p - (INDEXED + HPACK_N_STATIC + 1u);
		if (age >= n)
			break;
		struct hpack_entry *e = hpack_table_entry(t, age);
		struct hpack_field f = field_of(t, e);
		if (!sink->emit(sink->ctx, &f))
			return NULL;
		e->mark = f.mark;
	}
	return p;
}

// Any other field.
static inline __attribute__((always_inline)) enum hpack_result read_other(
	struct hpack *h, struct hpack_mem *m, struct reader *r, const struct hpack_sink *sink)
{
	struct hpack_memo_field *known;
	struct hpack_field f;
	uint8_t first = *r->p;
	if (first & INDEXED) {
		struct hpack_entry *e;
		if (!read_indexed(r, &f, &e))
			return HPACK_BAD;
		uint8_t mark = f.mark;
		if (!sink->emit(sink->ctx, &f))
			return HPACK_STOPPED;
		if (e && f.mark != mark)
			e->mark = f.mark;
	} else if (first & 0x40) {
		if (!read_known(r, 0x3f, &f, &known))
			return HPACK_BAD;
		if (!sink->emit(sink->ctx, &f))
			return HPACK_STOPPED;
		if (known)
			known->mark = f.mark;
		if (hpack_table_add(&h->received, m, h->received_limit, &f, (size_t)(r->end - r->p),
			    sink) == HPACK_NOT_ADDED)
			return HPACK_NO_MEMORY;
	} else if (first & 0x20) {
		return HPACK_BAD; // only before the first field
	} else if (first & 0x10) {
		if (!read_literal(r, 0xf, &f))
			return HPACK_BAD;
		f.never_index = true;
		if (!sink->emit(sink->ctx, &f))
			return HPACK_STOPPED;
	} else {
		if (!read_known(r, 0xf, &f, &known))
			return HPACK_BAD;
		if (!sink->emit(sink->ctx, &f))
			return HPACK_STOPPED;
		if (known)
			known->mark = f.mark;
	}
	return HPACK_OK;
}

static inline __attribute__((always_inline)) enum hpack_result decode(struct hpack *h,
	struct hpack_mem *m, struct hpack_memo *memo, const uint8_t *in, size_t len, char *room,
	const struct hpack_sink *sink)
{
	struct reader r = {in, in + len, room, &h->received, memo};
	if (memo)
		hpack_memo_begin(memo);
	if (!resize_all(h, m, &r))
		return HPACK_BAD;
	for (;;) {
		r.p = read_again(h->received, r.p, r.end, sink);
		if (r.p == r.end)
			return HPACK_OK;
		if (!r.p)
			return HPACK_STOPPED;
		do {
			enum hpack_result result = read_other(h, m, &r, sink);
			if (result)
				return result;
		} while (r.p < r.end && !(*r.p & INDEXED));
	}
}

enum hpack_result hpack_decode(struct hpack *h, struct hpack_mem *m, struct hpack_memo *memo,
	const uint8_t *in, size_t len, char *room, const struct hpack_sink *sink)
{
	return decode(h, m, memo, in, len, room, sink);
}

__attribute__((cold)) enum hpack_result hpack_decode_rare(struct hpack *h, struct hpack_mem *m,
	struct hpack_memo *memo, const uint8_t *in, size_t len, char *room,
	const struct hpack_sink *sink)
{
	return decode(h, m, memo, in, len, room, sink);
}
