// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define FORMAT 1
#define HEAD 8
#define FIELD_HEAD 4

enum field {
	FIELD_GENERATION = 1,
	FIELD_BEHIND,
	FIELD_TEXT,
	FIELD_LISTENERS,
	FIELD_WORKERS,
	FIELD_CABLE,
	FIELD_MEMBER,
	FIELD_RESOURCES,
	FIELD_SOURCES
};

static const uint8_t magic[4] = {'S', 'H', 'T', 'O'};

static void put16(uint8_t *at, uint32_t n)
{
	at[0] = (uint8_t)(n >> 8);
	at[1] = (uint8_t)n;
}

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static size_t put_field(uint8_t *at, enum field id, const void *bytes, size_t len)
{
	put16(at, id);
	put16(at + 2, (uint32_t)len);
	memcpy(at + FIELD_HEAD, bytes, len);
	return FIELD_HEAD + len;
}

static size_t put_number(uint8_t *at, enum field id, uint32_t n)
{
	uint8_t bytes[4];
	put16(bytes, n >> 16);
	put16(bytes + 2, n & UINT16_MAX);
	return put_field(at, id, bytes, sizeof(bytes));
}

// Its address, flags, its name.
#define CABLE_HEAD 7
#define CABLE_MAX (CABLE_HEAD + LB_CABLE_NAME - 1)
#define CABLE_IS_BOND 1
// Of a bond's member the number of its cable in the message, from 0, and its name.
#define MEMBER_HEAD 1
#define MEMBER_MAX (MEMBER_HEAD + LB_CABLE_NAME - 1)

static bool is_printable(uint8_t byte)
{
	return byte >= ' ' && byte <= '~';
}

// The kernel takes more in a name than is taken from another process (read_text()), to which such
// an interface is an unknown one. Returns the length.
static size_t put_name(uint8_t *at, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < len; i++)
		at[i] = is_printable((uint8_t)name[i]) ? (uint8_t)name[i] : '?';
	return len;
}

void takeover_wire_fit(const char *text, char ret[TAKEOVER_TEXT])
{
	size_t len = 0;
	for (; len < TAKEOVER_TEXT - 1 && text[len]; len++)
		ret[len] = is_printable((uint8_t)text[len]) ? text[len] : '?';
	ret[len] = 0;
}

static size_t put_cable(uint8_t *at, const struct lb_cable *c)
{
	uint8_t bytes[CABLE_MAX];
	memcpy(bytes, c->mac, sizeof(c->mac));
	bytes[6] = c->is_bond ? CABLE_IS_BOND : 0;
	return put_field(
		at, FIELD_CABLE, bytes, CABLE_HEAD + put_name(bytes + CABLE_HEAD, c->name));
}

static size_t put_members(uint8_t *at, const struct lb_cables *cables)
{
	uint8_t bytes[MEMBER_MAX];
	size_t len = 0;
	for (uint32_t i = 0; i < cables->n; i++)
		for (uint32_t k = 0; k < cables->list[i].n_members; k++) {
			bytes[0] = (uint8_t)i;
			size_t n = put_name(bytes + MEMBER_HEAD, cables->list[i].members[k]);
			len += put_field(at + len, FIELD_MEMBER, bytes, MEMBER_HEAD + n);
		}
	return len;
}

size_t takeover_wire_write(const struct takeover_message *m, uint8_t ret[TAKEOVER_MAX_MESSAGE])
{
	_Static_assert(
		HEAD + 7 * FIELD_HEAD + 24 + TAKEOVER_TEXT +
				LB_MAX_CABLES * (FIELD_HEAD + CABLE_MAX) +
				LB_MAX_CABLES * LB_CABLE_MEMBERS * (FIELD_HEAD + MEMBER_MAX) <=
			TAKEOVER_MAX_MESSAGE,
		"room");
	memcpy(ret, magic, sizeof(magic));
	put16(ret + 4, FORMAT);
	put16(ret + 6, m->kind);
	size_t len = HEAD;
	if (m->generation)
		len += put_number(ret + len, FIELD_GENERATION, m->generation);
	if (m->n_behind)
		len += put_number(ret + len, FIELD_BEHIND, m->n_behind);
	if (m->passes_listeners)
		len += put_number(ret + len, FIELD_LISTENERS, m->passes_listeners);
	if (m->n_workers)
		len += put_number(ret + len, FIELD_WORKERS, m->n_workers);
	if (m->takes_resources)
		len += put_number(ret + len, FIELD_RESOURCES, m->takes_resources);
	if (m->n_sources)
		len += put_number(ret + len, FIELD_SOURCES, m->n_sources);
	for (uint32_t i = 0; i < m->cables.n; i++)
		len += put_cable(ret + len, &m->cables.list[i]);
	len += put_members(ret + len, &m->cables);
	char text[TAKEOVER_TEXT];
	takeover_wire_fit(m->text, text);
	if (text[0])
		len += put_field(ret + len, FIELD_TEXT, text, strlen(text));
	return len;
}

// What is printed must not hold control characters, whoever sent it.
static int read_text(const uint8_t *bytes, size_t len, char *ret, size_t size)
{
	if (len >= size)
		return -EPROTO;
	for (size_t i = 0; i < len; i++)
		if (!is_printable(bytes[i]))
			return -EPROTO;
	memcpy(ret, bytes, len);
	ret[len] = 0;
	return 0;
}

static int read_number(const uint8_t *bytes, size_t len, uint32_t *ret)
{
	if (len != 4)
		return -EPROTO;
	*ret = get16(bytes) << 16 | get16(bytes + 2);
	return 0;
}

// Of a later version's names that are longer the beginning is enough not to be found here.
static int read_name(const uint8_t *bytes, size_t len, char ret[LB_CABLE_NAME])
{
	char name[UINT8_MAX];
	if (len == 0 || read_text(bytes, len, name, sizeof(name)) != 0)
		return -EPROTO;
	len = len < LB_CABLE_NAME ? len : LB_CABLE_NAME - 1;
	memcpy(ret, name, len);
	memset(ret + len, 0, LB_CABLE_NAME - len);
	return 0;
}

// A later version may have more of them than there is room for, and more flags.
static int read_cable(const uint8_t *bytes, size_t len, struct lb_cables *ret)
{
	struct lb_cable c = {0};
	if (len < CABLE_HEAD || read_name(bytes + CABLE_HEAD, len - CABLE_HEAD, c.name) != 0)
		return -EPROTO;
	memcpy(c.mac, bytes, sizeof(c.mac));
	c.is_bond = bytes[6] & CABLE_IS_BOND;
	if (ret->n < LB_MAX_CABLES)
		ret->list[ret->n++] = c;
	return 0;
}

static int read_member(const uint8_t *bytes, size_t len, struct lb_cables *ret)
{
	char name[LB_CABLE_NAME];
	if (len < MEMBER_HEAD || read_name(bytes + MEMBER_HEAD, len - MEMBER_HEAD, name) != 0)
		return -EPROTO;
	if (bytes[0] >= ret->n || ret->list[bytes[0]].n_members == LB_CABLE_MEMBERS)
		return 0;
	struct lb_cable *c = &ret->list[bytes[0]];
	memcpy(c->members[c->n_members++], name, sizeof(name));
	return 0;
}

static int read_field(uint32_t id, const uint8_t *bytes, size_t len, struct takeover_message *ret)
{
	switch (id) {
	case FIELD_GENERATION:
		return read_number(bytes, len, &ret->generation);
	case FIELD_BEHIND:
		return read_number(bytes, len, &ret->n_behind);
	case FIELD_LISTENERS:
		return read_number(bytes, len, &ret->passes_listeners);
	case FIELD_WORKERS:
		return read_number(bytes, len, &ret->n_workers);
	case FIELD_RESOURCES:
		return read_number(bytes, len, &ret->takes_resources);
	case FIELD_SOURCES:
		return read_number(bytes, len, &ret->n_sources);
	case FIELD_TEXT:
		return read_text(bytes, len, ret->text, sizeof(ret->text));
	case FIELD_CABLE:
		return read_cable(bytes, len, &ret->cables);
	case FIELD_MEMBER:
		return read_member(bytes, len, &ret->cables);
	default:
		return 0;
	}
}

int takeover_wire_read(const uint8_t *bytes, size_t len, struct takeover_message *ret)
{
	*ret = (struct takeover_message){0};
	if (len < HEAD || len > TAKEOVER_MAX_MESSAGE || memcmp(bytes, magic, sizeof(magic)) != 0 ||
		get16(bytes + 4) != FORMAT)
		return -EPROTO;
	uint32_t kind = get16(bytes + 6);
	if (kind < TAKEOVER_HELLO)
		return -EPROTO;
	ret->kind = kind < TAKEOVER_UNKNOWN ? (enum takeover_kind)kind : TAKEOVER_UNKNOWN;
	for (size_t at = HEAD; at < len;) {
		if (len - at < FIELD_HEAD || len - at - FIELD_HEAD < get16(bytes + at + 2))
			return -EPROTO;
		size_t n = get16(bytes + at + 2);
		if (read_field(get16(bytes + at), bytes + at + FIELD_HEAD, n, ret) != 0)
			return -EPROTO;
		at += FIELD_HEAD + n;
	}
	return 0;
}
