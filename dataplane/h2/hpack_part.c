// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/hpack_part.h"

#include "dataplane/h2/hpack_number.h"
#include "dataplane/h2/hpack_table.h"
#include "dataplane/h2/hpack_tables.h"

enum extent {
	WHOLE,
	CUT, // not all of it is there
	LARGE_VALUE, // nor is all of this, which no table takes
	LARGE_NAME,
	BAD,
};

struct measured {
	uint32_t index; // of the name; 0 = it has its own
	uint32_t missing; // LARGE_VALUE: bytes that are not there
	bool is_added; // to the table
};

static enum extent measure_number(
	const uint8_t **p, const uint8_t *end, uint8_t prefix_max, uint32_t *ret)
{
	if (*p == end)
		return CUT;
	if (hpack_number_read(p, end, prefix_max, ret))
		return WHOLE;
	return *p == end ? CUT : BAD;
}

static enum extent measure_text(const uint8_t **p, const uint8_t *end, uint32_t *ret_missing)
{
	uint32_t len;
	enum extent e = measure_number(p, end, 0x7f, &len);
	if (e != WHOLE)
		return e;
	size_t there = (size_t)(end - *p);
	*p += len < there ? len : there;
	*ret_missing = len > there ? len - (uint32_t)there : 0;
	if (!*ret_missing)
		return WHOLE;
	return len > HPACK_PART_TEXT_MAX ? LARGE_VALUE : CUT;
}

static bool resizes(uint8_t first)
{
	return (first & 0xe0) == 0x20;
}

// The field at *p, which is below end (RFC 7541 6). *p is then behind what is there of it.
static enum extent measure(const uint8_t **p, const uint8_t *end, struct measured *f)
{
	uint8_t first = **p;
	f->is_added = !(first & 0x80) && first & 0x40;
	if (first & 0x80)
		return measure_number(p, end, 0x7f, &f->index);
	if (resizes(first))
		return measure_number(p, end, 0x1f, &f->index);
	enum extent e = measure_number(p, end, f->is_added ? 0x3f : 0xf, &f->index);
	if (e == WHOLE && f->index == 0) {
		e = measure_text(p, end, &f->missing);
		if (e == LARGE_VALUE)
			return LARGE_NAME;
	}
	return e == WHOLE ? measure_text(p, end, &f->missing) : e;
}

enum hpack_result hpack_decode_last(const struct hpack_part *part, struct hpack *h,
	struct hpack_mem *m, struct hpack_memo *memo, const uint8_t *in, size_t len, char *room,
	const struct hpack_sink *sink)
{
	if (part->skip || (part->begun && len && resizes(in[0])))
		return HPACK_BAD; // cut short, or RFC 7541 4.2: only before the first field
	return hpack_decode_rare(h, m, memo, in, len, room, sink);
}

enum hpack_result hpack_decode_part(struct hpack_part *part, struct hpack *h, struct hpack_mem *m,
	struct hpack_memo *memo, const uint8_t *in, size_t len, char *room,
	const struct hpack_sink *sink, size_t *ret_used)
{
	const uint8_t *p = in, *end = in + len, *whole = in;
	struct measured f = {0};
	enum extent e = WHOLE;
	bool begun = false;
	while (p < end && (e = measure(&p, end, &f)) == WHOLE) {
		begun |= !resizes(*whole);
		whole = p;
	}
	enum hpack_result r =
		hpack_decode_last(part, h, m, memo, in, (size_t)(whole - in), room, sink);
	if (r != HPACK_OK)
		return r;
	part->begun |= begun;
	if (e == BAD)
		return HPACK_BAD;
	if (e == LARGE_NAME)
		return HPACK_STOPPED;
	if (e == LARGE_VALUE) {
		if (f.index > HPACK_N_STATIC + hpack_table_n(h->received))
			return HPACK_BAD;
		if (f.is_added) // RFC 7541 4.4
			hpack_table_evict(h->received, 0);
		part->begun = true;
		part->skip = f.missing;
		whole = end;
	}
	*ret_used = (size_t)(whole - in);
	return HPACK_OK;
}
