// SPDX-License-Identifier: Apache-2.0
// The encoding of SSL_SESSION, by which the library lets its sessions be stored: a sequence whose
// first five fields have no number and all others one, in order. The library has functions for most
// of them, but none by which a client could set a ticket that it has read itself.
#include "tlshs/session_der.h"

#include <openssl/asn1.h>

#include <string.h>

#define LONG_HEAD 4 // a tag, and a length in three bytes, whatever it is: the library reads that
#define NUMBERED (V_ASN1_CONTEXT_SPECIFIC | V_ASN1_CONSTRUCTED)

struct element {
	unsigned at; // its place
	const uint8_t *p; // with its head
	size_t len;
};

// The head at p: returns its bytes, 0 = it is none, or does not end in time.
static size_t read_head(const uint8_t *p, size_t left, size_t *ret_body)
{
	if (left < 2)
		return 0;
	size_t n = p[1] < 0x80 ? 0 : p[1] & 0x7f, body = n ? 0 : p[1];
	if (n > 3 || left < 2 + n || p[1] == 0x80)
		return 0;
	for (size_t i = 0; i < n; i++)
		body = body << 8 | p[2 + i];
	if (body > left - 2 - n)
		return 0;
	*ret_body = body;
	return 2 + n;
}

// The next one of a sequence; n_plain: of those without a number that were before. False = the end,
// or what is none.
static bool read_element(struct str *rest, unsigned *n_plain, struct element *ret)
{
	size_t body, head = read_head((const uint8_t *)rest->p, rest->len, &body);
	if (!head)
		return false;
	ret->p = (const uint8_t *)rest->p;
	ret->len = head + body;
	bool is_numbered = (*ret->p & NUMBERED) == NUMBERED;
	ret->at = is_numbered ? TLSHS_DER_NUMBERED + (*ret->p & 0x1fu) : (*n_plain)++;
	*rest = (struct str){rest->p + ret->len, rest->len - ret->len};
	return true;
}

static uint8_t *put_head(uint8_t *to, int tag, size_t len)
{
	*to++ = (uint8_t)tag;
	*to++ = 0x82;
	*to++ = (uint8_t)(len >> 8);
	*to++ = (uint8_t)len;
	return to;
}

// No more bytes than it needs, and the first bit is its sign (X.690 8.3).
static size_t put_number(uint8_t to[9], uint64_t x)
{
	size_t len = 1;
	while (len < 9 && x >> (8 * len - 1))
		len++;
	for (size_t i = 0; i < len; i++)
		to[len - 1 - i] = i < 8 ? (uint8_t)(x >> (8 * i)) : 0;
	return len;
}

static uint8_t *put_field(uint8_t *to, const struct tlshs_der_field *f)
{
	uint8_t number[9];
	struct str value = f->bytes;
	int type = V_ASN1_OCTET_STRING;
	if (!value.p) {
		value = (struct str){(const char *)number, put_number(number, f->number)};
		type = V_ASN1_INTEGER;
	}
	if (f->at >= TLSHS_DER_NUMBERED)
		to = put_head(
			to, NUMBERED | (int)(f->at - TLSHS_DER_NUMBERED), LONG_HEAD + value.len);
	to = put_head(to, type, value.len);
	memcpy(to, value.p, value.len);
	return to + value.len;
}

size_t tlshs_der_room(struct str der, const struct tlshs_der_field *fields, size_t n)
{
	size_t room = LONG_HEAD + der.len;
	for (size_t i = 0; i < n; i++)
		room += 2 * LONG_HEAD + 9 + fields[i].bytes.len;
	return room;
}

size_t tlshs_der_set(struct str der, const struct tlshs_der_field *fields, size_t n, uint8_t *to)
{
	size_t body, head = read_head((const uint8_t *)der.p, der.len, &body), i = 0;
	unsigned n_plain = 0;
	uint8_t *end = to + LONG_HEAD;
	struct element e;
	if (!head || head + body != der.len)
		return 0;
	struct str rest = {der.p + head, body};
	while (read_element(&rest, &n_plain, &e)) {
		for (; i < n && fields[i].at < e.at; i++)
			end = put_field(end, &fields[i]);
		bool is_replaced = i < n && fields[i].at == e.at;
		if (is_replaced || e.at == TLSHS_DER_PEER)
			continue;
		memcpy(end, e.p, e.len);
		end += e.len;
	}
	for (; i < n; i++)
		end = put_field(end, &fields[i]);
	size_t len = (size_t)(end - to);
	if (rest.len || len - LONG_HEAD > UINT16_MAX)
		return 0;
	put_head(to, V_ASN1_SEQUENCE | V_ASN1_CONSTRUCTED, len - LONG_HEAD);
	return len;
}
