// SPDX-License-Identifier: Apache-2.0
// A dynamic table of HPACK (RFC 7541 2.3.2, 4): a FIFO of entries in one block of memory that grows
// and shrinks with its content. Text is only appended to a block; an evicted entry stays readable
// until the next block replaces this one.
// Thread: one owner.
#pragma once

#include "dataplane/h2/hpack.h"

#define HPACK_ENTRY_OVERHEAD 32 // RFC 7541 4.1

struct hpack_entry {
	uint16_t at; // of the name, from the beginning of the table; the value follows it
	uint16_t name_len, value_len;
	uint16_t prev; // encoder: distance to the entry before it in its name's bucket; 0 = none
	uint8_t id, mark;
};

struct hpack_table {
	uint16_t mask; // number & mask = an entry's place
	uint16_t newest; // number of the newest entry; it wraps
	uint16_t n; // entries
	uint16_t size; // RFC 7541 4.1
	uint16_t text_end; // where the next text goes, from the beginning of this struct
	uint16_t end; // likewise, of the block
	struct hpack_entry entries[];
};

static inline uint32_t hpack_table_n(const struct hpack_table *t)
{
	return t ? t->n : 0;
}

// age 0 = the newest entry.
static inline struct hpack_entry *hpack_table_entry(struct hpack_table *t, uint32_t age)
{
	return &t->entries[(t->newest - age) & t->mask];
}

static inline struct str hpack_entry_name(const struct hpack_table *t, const struct hpack_entry *e)
{
	return (struct str){(const char *)t + e->at, e->name_len};
}

static inline struct str hpack_entry_value(const struct hpack_table *t, const struct hpack_entry *e)
{
	return (struct str){(const char *)t + e->at + e->name_len, e->value_len};
}

// Evicts entries until the size is at most limit. NULL is an empty table.
void hpack_table_evict(struct hpack_table *, size_t size);

enum hpack_added { HPACK_ADDED, HPACK_TOO_LARGE, HPACK_NOT_ADDED };
// Adds f after evicting what no longer fits the limit; an entry larger than the limit leaves the
// table empty (RFC 7541 4.4). f may lie in the table. to_come: bytes of text likely to be added
// next; a new block of memory reserves room for them. sink, if not NULL, is told of a new block.
// NOT_ADDED = out of memory; older entries may have been evicted.
enum hpack_added hpack_table_add(struct hpack_table **, struct hpack_mem *, size_t limit,
	const struct hpack_field *f, size_t to_come, const struct hpack_sink *);
