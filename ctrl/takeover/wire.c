// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/wire.h"

#include <errno.h>
#include <string.h>

#define FORMAT 1
#define HEAD 8
#define FIELD_HEAD 4

enum field { FIELD_GENERATION = 1, FIELD_BEHIND, FIELD_TEXT, FIELD_LISTENERS, FIELD_WORKERS };

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

size_t takeover_wire_write(const struct takeover_message *m, uint8_t ret[TAKEOVER_MAX_MESSAGE])
{
	_Static_assert(HEAD + 5 * FIELD_HEAD + 16 + TAKEOVER_TEXT <= TAKEOVER_MAX_MESSAGE, "room");
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
	if (m->text[0])
		len += put_field(ret + len, FIELD_TEXT, m->text, strlen(m->text));
	return len;
}

// What is printed must not hold control characters, whoever sent it.
static int read_text(const uint8_t *bytes, size_t len, char ret[TAKEOVER_TEXT])
{
	if (len >= TAKEOVER_TEXT)
		return -EPROTO;
	for (size_t i = 0; i < len; i++)
		if (bytes[i] < ' ' || bytes[i] > '~')
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
	case FIELD_TEXT:
		return read_text(bytes, len, ret->text);
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
