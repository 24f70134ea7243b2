// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/hpack_table.h"

#include <string.h>

// Blocks, smallest first. The last one has room for all entries of a full table, and for half as
// much text again, so that it is not replaced too often.
static const struct shape {
	uint16_t bytes, n_entries;
} shapes[] = {{256, 8}, {512, 16}, {1024, 32}, {2048, 64}, {4096, 128}, {8144, 128}};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static size_t text_room(const struct shape *s)
{
	return s->bytes - sizeof(struct hpack_table) - s->n_entries * sizeof(struct hpack_entry);
}

void hpack_table_evict(struct hpack_table *t, size_t size)
{
	while (t && t->size > size) {
		const struct hpack_entry *e = hpack_table_entry(t, t->n - 1u);
		t->size = (uint16_t)(t->size - e->name_len - e->value_len - HPACK_ENTRY_OVERHEAD);
		t->n--;
	}
}

static size_t live_text(const struct hpack_table *t)
{
	return t ? t->size - (size_t)t->n * HPACK_ENTRY_OVERHEAD : 0;
}

static const struct shape *shape_for(size_t n_entries, size_t text)
{
	const struct shape *s = shapes;
	while (s < &shapes[N_SHAPES - 1] &&
		(s->n_entries < n_entries || text_room(s) < text + text / 2))
		s++;
	return s;
}

// Of text that may be added later: a guess must not take much memory.
#define MAX_TO_COME 256

// With the same entries, and room for one more and for so much more text. NULL = out of memory.
static struct hpack_table *renewed(struct hpack_table *old, struct hpack_mem *m, size_t text)
{
	uint32_t n = hpack_table_n(old);
	const struct shape *s = shape_for(n + 1, live_text(old) + text);
	struct hpack_table *t = hpack_mem_take(m, s->bytes);
	if (!t)
		return NULL;
	size_t text_at = s->bytes - text_room(s);
	*t = (struct hpack_table){.mask = (uint16_t)(s->n_entries - 1),
		.newest = old ? old->newest : 0,
		.n = (uint16_t)n,
		.size = old ? old->size : 0,
		.text_end = (uint16_t)text_at,
		.end = s->bytes};
	if (!n)
		return t;
	// Live text is consecutive: entries leave in the order in which they came.
	size_t start = hpack_table_entry(old, n - 1)->at, len = old->text_end - start;
	memcpy((char *)t + text_at, (const char *)old + start, len);
	t->text_end = (uint16_t)(text_at + len);
	for (uint32_t age = 0; age < n; age++) {
		struct hpack_entry *e = hpack_table_entry(t, age);
		*e = *hpack_table_entry(old, age);
		e->at = (uint16_t)(e->at - start + text_at);
	}
	return t;
}

// Returns where its text belongs.
static char *append_entry(struct hpack_table *t, const struct hpack_field *f, size_t text)
{
	char *at = (char *)t + t->text_end;
	t->newest++;
	t->n++;
	*hpack_table_entry(t, 0) = (struct hpack_entry){.at = t->text_end,
		.name_len = (uint16_t)f->name.len,
		.value_len = (uint16_t)f->value.len,
		.id = (uint8_t)f->id,
		.mark = f->mark};
	t->text_end = (uint16_t)(t->text_end + text);
	t->size = (uint16_t)(t->size + text + HPACK_ENTRY_OVERHEAD);
	return at;
}

static bool has_room(const struct hpack_table *t, size_t text)
{
	return t && t->n <= t->mask && t->text_end + text <= t->end;
}

static __attribute__((noinline)) enum hpack_added add_any(struct hpack_table **table,
	struct hpack_mem *m, size_t limit, const struct hpack_field *f, size_t to_come,
	const struct hpack_sink *sink)
{
	struct hpack_table *old = *table, *t = old;
	size_t text = f->name.len + f->value.len;
	if (text + HPACK_ENTRY_OVERHEAD > limit) {
		hpack_table_evict(t, 0);
		return HPACK_TOO_LARGE;
	}
	hpack_table_evict(t, limit - text - HPACK_ENTRY_OVERHEAD);
	if (!has_room(t, text)) {
		size_t more = to_come < MAX_TO_COME ? to_come : MAX_TO_COME;
		t = renewed(old, m, text + more);
	}
	if (!t)
		return HPACK_NOT_ADDED;
	char *at = append_entry(t, f, text);
	memcpy(at, f->name.p, f->name.len);
	if (f->value.len)
		memcpy(at + f->name.len, f->value.p, f->value.len);
	if (t == old)
		return HPACK_ADDED;
	if (old && sink)
		sink->moves(sink->ctx, (const char *)old, old->text_end);
	hpack_mem_put(m, old);
	*table = t;
	return HPACK_ADDED;
}

// Apart, so that the way to it saves no registers.
static __attribute__((noinline)) enum hpack_added add_to_room(
	struct hpack_table *t, const struct hpack_field *f, size_t text)
{
	memcpy(append_entry(t, f, text), f->name.p, text);
	return HPACK_ADDED;
}

enum hpack_added hpack_table_add(struct hpack_table **table, struct hpack_mem *m, size_t limit,
	const struct hpack_field *f, size_t to_come, const struct hpack_sink *sink)
{
	struct hpack_table *t = *table;
	size_t text = f->name.len + f->value.len;
	bool is_one_text = f->value.p == f->name.p + f->name.len; // as in the memo
	if (is_one_text && has_room(t, text) && t->size + text + HPACK_ENTRY_OVERHEAD <= limit)
		return add_to_room(t, f, text);
	return add_any(table, m, limit, f, to_come, sink);
}
