// SPDX-License-Identifier: Apache-2.0
// Header blocks out (RFC 7541 6). What to add to the table is our choice: a field that comes for
// the second time within a while. One that never comes again would only push out others, here and
// at the peer, and make both work for it.
#include "dataplane/h2/hpack_table.h"
#include "dataplane/h2/hpack_tables.h"
#include "dataplane/h2/huffman.h"
#include "lb/base/check.h"

#include <string.h>

#define N_BUCKETS 32
#define N_SETS 4
#define SET_WORDS 2
#define SLACK HPACK_SENT_NAME_MAX
_Static_assert(SLACK >= HUFFMAN_SLACK, "whichever is last");
#define MAX_STEPS 8 // of a search: values of one name, or names of one bucket

struct hpack_encoder {
	struct hpack_table *table; // NULL = empty
	uint16_t heads[N_BUCKETS]; // number of the newest entry with such a name, if still there
	// Marks of fields that came and were not added, four to a word, from the newest, which is
	// lowest, to the oldest. Sets, since two that took turns in one place would never meet
	// themselves there.
	uint64_t seen[N_SETS][SET_WORDS];
};

static const struct hpack_encoder empty;
static const struct hpack_table no_table;

// RFC 7541 6.2: the first byte, and the largest number that fits it.
enum form {
	INDEXED = 0x80,
	ADDED = 0x40,
	RESIZED = 0x20,
	NEVER_ADDED = 0x10,
	NOT_ADDED = 0x00,
};

void hpack_init(struct hpack *h, bool huffman)
{
	*h = (struct hpack){.received_limit = HPACK_TABLE_SIZE,
		.sent_limit = HPACK_TABLE_SIZE,
		.sent_least = HPACK_TABLE_SIZE,
		.huffman = huffman};
}

static void free_encoder(struct hpack *h, struct hpack_mem *m)
{
	if (h->sent)
		hpack_mem_put(m, h->sent->table);
	hpack_mem_put(m, h->sent);
	h->sent = NULL;
}

void hpack_fini(struct hpack *h, struct hpack_mem *m)
{
	hpack_mem_put(m, h->received);
	free_encoder(h, m);
	hpack_init(h, h->huffman);
}

void hpack_set_table_size(struct hpack *h, uint32_t size)
{
	uint16_t limit = (uint16_t)(size < HPACK_TABLE_SIZE ? size : HPACK_TABLE_SIZE);
	if (limit == h->sent_limit)
		return;
	h->sent_limit = limit;
	if (limit < h->sent_least)
		h->sent_least = limit;
	h->sent_changed = true;
}

static uint64_t load_u64(const char *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t load_u32(const char *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

// Equal texts of one length; most are short, and a call costs as much as the comparison.
static inline bool same(const char *a, const char *b, size_t len)
{
	if (len >= 8) {
		for (size_t i = 0; i + 8 < len; i += 8)
			if (load_u64(a + i) != load_u64(b + i))
				return false;
		return load_u64(a + len - 8) == load_u64(b + len - 8);
	}
	if (len >= 4)
		return load_u32(a) == load_u32(b) && load_u32(a + len - 4) == load_u32(b + len - 4);
	return len == 0 || (a[0] == b[0] && a[len / 2] == b[len / 2] && a[len - 1] == b[len - 1]);
}

// Unkeyed: a collision costs an entry of the table, no more.
static uint64_t mix(uint64_t h, struct str s)
{
	const uint64_t k = 0x9e3779b97f4a7c15;
	size_t i = 0;
	for (; i + 8 <= s.len; i += 8)
		h = (h ^ load_u64(s.p + i)) * k;
	uint64_t last = s.len;
	if (i < s.len && s.len >= 8)
		last ^= load_u64(s.p + s.len - 8);
	else
		for (; i < s.len; i++)
			last = last << 8 ^ (uint8_t)s.p[i];
	h = (h ^ last) * k;
	return h ^ h >> 29;
}

static inline uint8_t *put_number(uint8_t *out, enum form form, uint32_t prefix_max, uint32_t n)
{
	if (n < prefix_max) {
		*out++ = (uint8_t)(form | n);
		return out;
	}
	*out++ = (uint8_t)(form | prefix_max);
	for (n -= prefix_max; n >= 0x80; n >>= 7)
		*out++ = (uint8_t)(n | 0x80);
	*out++ = (uint8_t)n;
	return out;
}

static uint8_t *put_text(const struct hpack *h, uint8_t *out, struct str s)
{
	// Behind the length that most have, of one byte.
	size_t coded = h->huffman ? huffman_encode(s.p, s.len, out + 1) : 0;
	if (coded && coded < 0x7f) {
		*out = (uint8_t)(0x80 | coded);
		return out + 1 + coded;
	}
	if (coded) {
		uint8_t number[6], *end = put_number(number, 0x80, 0x7f, (uint32_t)coded);
		size_t n = (size_t)(end - number);
		memmove(out + n, out + 1, coded);
		memcpy(out, number, n);
		return out + n + coded;
	}
	out = put_number(out, 0, 0x7f, (uint32_t)s.len);
	if (s.len)
		memcpy(out, s.p, s.len);
	return out + s.len;
}

struct search {
	const struct field *field;
	enum hpack_name id;
	uint32_t bucket;
	uint32_t name_index; // of the same name; 0 = none
};

// Both return the index of the whole field, 0 = none.
static inline uint32_t find_static(enum hpack_name id, struct str value)
{
	const struct hpack_known *k = &hpack_known[id];
	for (uint32_t i = k->first; i < k->first + k->n_values; i++) {
		const struct hpack_static *entry = &hpack_static[i];
		if (entry->value_len == value.len && same(entry->value, value.p, value.len))
			return i;
	}
	return 0;
}

static inline bool same_name(
	const struct hpack_table *t, const struct hpack_entry *e, const struct search *s)
{
	if (s->id || e->id)
		return s->id == e->id;
	struct str name = s->field->name;
	return e->name_len == name.len && same(hpack_entry_name(t, e).p, name.p, name.len);
}

static inline uint32_t find(const struct hpack_encoder *e, struct search *s)
{
	struct hpack_table *t = e->table;
	struct str value = s->field->value;
	uint16_t number = e->heads[s->bucket];
	for (int step = 0; t && step < MAX_STEPS; step++) {
		uint16_t age = (uint16_t)(t->newest - number);
		if (age >= t->n)
			break;
		const struct hpack_entry *entry = hpack_table_entry(t, age);
		if (same_name(t, entry, s)) {
			uint32_t index = HPACK_N_STATIC + 1u + age;
			if (entry->value_len == value.len &&
				same(hpack_entry_value(t, entry).p, value.p, value.len))
				return index;
			if (!s->name_index)
				s->name_index = index;
		}
		if (!entry->prev)
			break;
		number = (uint16_t)(number - entry->prev);
	}
	return 0;
}

// Makes the encoder when it is first needed. NULL = out of memory now.
static struct hpack_encoder *encoder(struct hpack *h, struct hpack_mem *m)
{
	if (!h->sent) {
		h->sent = hpack_mem_take(m, sizeof(*h->sent));
		if (h->sent)
			*h->sent = (struct hpack_encoder){0};
	}
	return h->sent;
}

#define EACH_MARK UINT64_C(0x0001000100010001)

// Whether the field came before, not long ago. If not, it has now.
static bool came_before(struct hpack_encoder *e, const struct search *s)
{
	// The bucket where a short value has no bits.
	uint64_t hash = mix((uint64_t)s->bucket << 59, s->field->value), mark = hash >> 48 | 1;
	uint64_t *set = e->seen[hash % N_SETS];
	for (int i = 0; i < SET_WORDS; i++) {
		uint64_t differ = set[i] ^ mark * EACH_MARK;
		uint64_t zero = (differ - EACH_MARK) & ~differ & EACH_MARK << 15;
		if (!zero)
			continue;
		// The lowest bit is that of a mark which is 0, whatever borrowed from it above.
		set[i] &= ~(UINT64_C(0xffff) << (__builtin_ctzll(zero) & ~15));
		return true;
	}
	for (int i = SET_WORDS - 1; i > 0; i--)
		set[i] = set[i] << 16 | set[i - 1] >> 48;
	set[0] = set[0] << 16 | mark;
	return false;
}

static bool add(
	struct hpack *h, struct hpack_mem *m, struct hpack_encoder *e, const struct search *s)
{
	const struct field *f = s->field;
	size_t size = f->name.len + f->value.len + HPACK_ENTRY_OVERHEAD;
	// A larger one would push out most of the others.
	if (size > h->sent_limit / 2 || !came_before(e, s))
		return false;
	struct hpack_field entry = {.name = f->name, .value = f->value, .id = s->id};
	if (hpack_table_add(&e->table, m, h->sent_limit, &entry, 0, NULL) != HPACK_ADDED)
		return false;
	struct hpack_table *t = e->table;
	uint16_t back = (uint16_t)(t->newest - e->heads[s->bucket]);
	hpack_table_entry(t, 0)->prev = back < t->n ? back : 0;
	e->heads[s->bucket] = t->newest;
	return true;
}

// Secrets that must not be guessed by how well they compress (RFC 7541 7.1.3).
static inline bool is_secret(const struct field *f, enum hpack_name id)
{
	return f->never_index || id == HPACK_AUTHORIZATION || id == HPACK_PROXY_AUTHORIZATION ||
	       (id == HPACK_COOKIE && f->value.len < 20);
}

static inline uint8_t *put_name(const struct hpack *h, uint8_t *out, const struct search *s)
{
	if (!h->huffman || s->id <= HPACK_N_STATIC)
		return put_text(h, out, s->field->name);
	const struct hpack_sent_name *n = &hpack_sent_names[s->id - HPACK_N_STATIC - 1];
	memcpy(out, n->text, sizeof(n->text));
	return out + n->len;
}

static uint8_t *put_literal(
	const struct hpack *h, uint8_t *out, const struct search *s, enum form form)
{
	uint32_t prefix_max = form == ADDED ? 0x3f : 0xf;
	uint32_t index = s->id && s->id <= HPACK_N_STATIC ? s->id : s->name_index;
	out = put_number(out, form, prefix_max, index);
	if (!index)
		out = put_name(h, out, s);
	return put_text(h, out, s->field->value);
}

static uint8_t *put_secret(const struct hpack *h, uint8_t *out, struct search *s)
{
	if (h->sent)
		find(h->sent, s);
	return put_literal(h, out, s, NEVER_ADDED);
}

static uint8_t *put_new(struct hpack *h, struct hpack_mem *m, uint8_t *out, const struct search *s)
{
	struct hpack_encoder *e = encoder(h, m);
	return put_literal(h, out, s, e && add(h, m, e, s) ? ADDED : NOT_ADDED);
}

static uint8_t *put_field(struct hpack *h, struct hpack_mem *m, uint8_t *out, const struct field *f)
{
	struct search s = {.field = f, .id = f->name_id};
	if (!s.id)
		s.id = hpack_name_of(f->name);
	DCHECK(s.id == hpack_name_of(f->name));
	s.bucket = (s.id ? s.id : (uint32_t)(mix(0, f->name) >> 32)) % N_BUCKETS;
	if (is_secret(f, s.id))
		return put_secret(h, out, &s);
	uint32_t index = f->name_id ? 0 : find_static(s.id, f->value); // put_again() has looked
	if (!index && h->sent)
		index = find(h->sent, &s);
	return index ? put_number(out, INDEXED, 0x7f, index) : put_new(h, m, out, &s);
}

// Names without a number can't be told apart in put_again().
static inline bool may_be_again(const struct field *f)
{
	return f->name_id && !f->never_index;
}

// Where the encoding of a block is: the next field, and the place for it.
struct place {
	const struct field *f;
	uint8_t *out;
};

// The field at hand, and those behind it that put_again() can't tell apart. A function of its own,
// so that there all registers are for what most fields are.
static __attribute__((noinline)) struct place put_others(
	struct hpack *h, struct hpack_mem *m, struct place at, const struct field *end)
{
	do
		at.out = put_field(h, m, at.out, at.f++);
	while (at.f < end && !may_be_again(at.f));
	return at;
}

// Fields that are wholly in a table: in ours, if each is the last of its name to have been added,
// as most are, or else in the static one. Secrets are in neither. Ends before any other.
static inline struct place put_again(
	const struct hpack_encoder *e, struct place at, const struct field *end)
{
	const struct hpack_table *t = e->table ? e->table : &no_table;
	for (; at.f < end && may_be_again(at.f); at.f++) {
		const struct field *f = at.f;
		uint16_t number = e->heads[f->name_id % N_BUCKETS];
		uint16_t age = (uint16_t)(t->newest - number);
		uint32_t index = 0;
		if (age < t->n) {
			const struct hpack_entry *entry = &t->entries[number & t->mask];
			if (entry->id == f->name_id && entry->value_len == f->value.len &&
				same(hpack_entry_value(t, entry).p, f->value.p, f->value.len))
				index = HPACK_N_STATIC + 1u + age;
		}
		if (!index)
			index = find_static(f->name_id, f->value);
		if (!index)
			break;
		at.out = put_number(at.out, INDEXED, 0x7f, index);
	}
	return at;
}

// RFC 7541 4.2: the lowest limit since the last block, then the one that holds.
static uint8_t *put_limits(struct hpack *h, struct hpack_mem *m, uint8_t *out)
{
	if (h->sent_least < h->sent_limit)
		out = put_number(out, RESIZED, 0x1f, h->sent_least);
	out = put_number(out, RESIZED, 0x1f, h->sent_limit);
	if (h->sent)
		hpack_table_evict(h->sent->table, h->sent_least);
	if (h->sent && hpack_table_n(h->sent->table) == 0)
		free_encoder(h, m);
	h->sent_least = h->sent_limit;
	h->sent_changed = false;
	return out;
}

size_t hpack_bound(const struct field *fields, size_t n)
{
	// Two changes of the limit, then for each field an index and two lengths, which are below
	// 2^32, and text that is only coded where that makes it shorter. Behind it all a last name
	// or text may be written with more than it has.
	size_t bound = 12 + SLACK;
	for (size_t i = 0; i < n; i++)
		bound += 18 + fields[i].name.len + fields[i].value.len;
	return bound;
}

size_t hpack_encode(
	struct hpack *h, struct hpack_mem *m, const struct field *fields, size_t n, uint8_t *out)
{
	struct place at = {fields, h->sent_changed ? put_limits(h, m, out) : out};
	for (const struct field *end = fields + n; at.f < end;) {
		at = put_again(h->sent ? h->sent : &empty, at, end);
		if (at.f < end)
			at = put_others(h, m, at, end);
	}
	return (size_t)(at.out - out);
}
