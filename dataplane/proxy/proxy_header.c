// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/proxy_header.h"

#include "lb/base/check.h"
#include "lb/base/min.h"
#include "lb/base/str.h"

#include <stdio.h>
#include <string.h>

#define V1_BEGIN STR("PROXY ")
#define V2_BEGIN STR("\r\n\r\n\0\r\nQUIT\n")
#define V2_FIXED 16 // signature, version and command, family, length
#define V2_LOCAL 0x20 // version 2 in the upper half
#define V2_PROXY 0x21
#define V2_IP4 0x11 // TCP
#define V2_IP6 0x21

// Of version 2: how many bytes of addresses a family has, and whether we use them.
static const struct family {
	uint8_t byte;
	uint8_t len;
	bool is_ip;
} families[] = {
	{0x00, 0, false}, // UNSPEC
	{V2_IP4, 12, true}, // TCP over IPv4
	{V2_IP6, 36, true}, // TCP over IPv6
	{0x31, 216, false}, // a Unix socket's stream
};

static enum proxy_header_state fail(struct proxy_header *h, enum proxy_header_state why)
{
	h->state = (uint8_t)why;
	return why;
}

static enum proxy_header_state done(struct proxy_header *h)
{
	h->state = PROXY_HEADER_DONE;
	return PROXY_HEADER_DONE;
}

// Cuts the next word off a line; words are separated by one blank.
static struct str take_word(struct str *line)
{
	struct str word = str_until(*line, ' ');
	size_t used = word.len + (word.len < line->len);
	line->p += used;
	line->len -= used;
	return word;
}

static bool read_port(struct str s, uint16_t *ret)
{
	uint64_t port;
	if ((s.len > 1 && s.p[0] == '0') || !str_number(s, UINT16_MAX, &port))
		return false;
	*ret = (uint16_t)port;
	return true;
}

// As the text form of this family: an IPv4 address has no colon, and any IPv6 address has.
static bool read_address(struct str s, bool is_v6, struct ip_addr *ret)
{
	return ip_parse_str(s, ret) && (memchr(s.p, ':', s.len) != NULL) == is_v6;
}

// PP-02: a whole line without its CR LF, behind "PROXY ".
static enum proxy_header_state read_v1(struct proxy_header *h, struct str line)
{
	struct str family = take_word(&line);
	bool is_v6 = str_eq(family, STR("TCP6"));
	if (str_eq(family, STR("UNKNOWN")))
		return done(h);
	if (!is_v6 && !str_eq(family, STR("TCP4")))
		return fail(h, PROXY_HEADER_MALFORMED);
	struct str source = take_word(&line), target = take_word(&line), port = take_word(&line);
	if (!read_address(source, is_v6, &h->source.ip) ||
		!read_address(target, is_v6, &h->target.ip) || !read_port(port, &h->source.port) ||
		!read_port(line, &h->target.port))
		return fail(h, PROXY_HEADER_MALFORMED);
	h->has_source = true;
	return done(h);
}

static enum proxy_header_state feed_v1(
	struct proxy_header *h, const uint8_t *p, size_t len, size_t *used)
{
	while (*used < len) {
		uint8_t b = p[(*used)++];
		bool after_cr = h->bytes[h->n - 1] == '\r';
		// A CR ends the line, or it is none.
		if ((b == '\n') != after_cr)
			return fail(h, PROXY_HEADER_MALFORMED);
		if (after_cr)
			return read_v1(h, (struct str){(const char *)h->bytes + V1_BEGIN.len,
						  h->n - 1 - V1_BEGIN.len});
		if (h->n == PROXY_HEADER_V1_MAX - 1)
			return fail(h, PROXY_HEADER_TOO_LONG);
		h->bytes[h->n++] = b;
	}
	return PROXY_HEADER_MORE;
}

static uint16_t load16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static const struct family *family_of(uint8_t byte)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (families[i].byte == byte)
			return &families[i];
	return NULL;
}

// The first 16 bytes are there. PP-03..PP-05.
static enum proxy_header_state read_v2(struct proxy_header *h)
{
	uint8_t command = h->bytes[12];
	uint16_t len = load16(h->bytes + 14);
	const struct family *f = family_of(h->bytes[13]);
	if (command != V2_LOCAL && command != V2_PROXY)
		return fail(h, PROXY_HEADER_MALFORMED);
	if (command == V2_LOCAL) // its family counts for nothing
		f = &families[0];
	if (!f || len < f->len)
		return fail(h, PROXY_HEADER_MALFORMED);
	if (len > PROXY_HEADER_V2_MAX - V2_FIXED ||
		(f->is_ip && len > f->len + PROXY_HEADER_TLVS_MAX))
		return fail(h, PROXY_HEADER_TOO_LONG);
	h->has_source = f->is_ip;
	h->skip = len;
	return PROXY_HEADER_MORE;
}

static struct ip_addr load_v4(const uint8_t *p)
{
	return ip_from_v4((uint32_t)load16(p) << 16 | load16(p + 2));
}

static void read_addresses(struct proxy_header *h)
{
	const uint8_t *at = h->bytes + V2_FIXED;
	bool is_v4 = h->bytes[13] == V2_IP4;
	size_t len = is_v4 ? 4 : sizeof(h->source.ip.b);
	if (is_v4) {
		h->source.ip = load_v4(at);
		h->target.ip = load_v4(at + len);
	} else {
		memcpy(h->source.ip.b, at, len);
		memcpy(h->target.ip.b, at + len, len);
	}
	h->source.port = load16(at + 2 * len);
	h->target.port = load16(at + 2 * len + 2);
}

// Keeps bytes up to `most` of them in all.
static bool keep(struct proxy_header *h, size_t most, const uint8_t *p, size_t len, size_t *used)
{
	size_t n = min_size(most - h->n, len - *used);
	memcpy(h->bytes + h->n, p + *used, n);
	h->n = (uint8_t)(h->n + n);
	*used += n;
	return h->n == most;
}

// Of what comes behind the addresses.
static void keep_tlvs(struct proxy_header *h, const uint8_t *p, size_t len)
{
	if (!h->tlvs || !h->has_source || !len)
		return;
	DCHECK(h->n_tlvs + len <= PROXY_HEADER_TLVS_MAX); // read_v2()
	memcpy(h->tlvs + h->n_tlvs, p, len);
	h->n_tlvs = (uint16_t)(h->n_tlvs + len);
}

static enum proxy_header_state end_v2(struct proxy_header *h)
{
	if (!tlv_are_whole((struct str){(const char *)h->tlvs, h->n_tlvs}))
		return fail(h, PROXY_HEADER_BAD_TLVS);
	return done(h);
}

static enum proxy_header_state feed_v2(
	struct proxy_header *h, const uint8_t *p, size_t len, size_t *used)
{
	if (h->n < V2_FIXED) {
		if (!keep(h, V2_FIXED, p, len, used))
			return PROXY_HEADER_MORE;
		read_v2(h);
		if (h->state != PROXY_HEADER_MORE)
			return h->state;
	}
	if (h->has_source) {
		size_t addresses = family_of(h->bytes[13])->len, before = h->n;
		bool has_all = keep(h, V2_FIXED + addresses, p, len, used);
		h->skip = (uint16_t)(h->skip - (h->n - before));
		if (!has_all)
			return PROXY_HEADER_MORE;
		read_addresses(h);
	}
	size_t n = min_size(h->skip, len - *used);
	keep_tlvs(h, p + *used, n);
	h->skip = (uint16_t)(h->skip - n);
	*used += n;
	return h->skip ? PROXY_HEADER_MORE : end_v2(h);
}

// How far the kept bytes and this one are the beginning of a header.
static bool begins(const struct proxy_header *h, struct str begin, bool taken, uint8_t next)
{
	return taken && h->n < begin.len && memcmp(h->bytes, begin.p, h->n) == 0 &&
	       (uint8_t)begin.p[h->n] == next;
}

enum proxy_header_state proxy_header_feed(
	struct proxy_header *h, const uint8_t *p, size_t len, size_t *ret_used)
{
	*ret_used = 0;
	while (h->state == PROXY_HEADER_MORE && *ret_used < len) {
		bool is_v1 = h->n >= V1_BEGIN.len && h->bytes[0] == 'P';
		if (is_v1)
			return feed_v1(h, p, len, ret_used);
		if (h->n >= V2_BEGIN.len)
			return feed_v2(h, p, len, ret_used);
		uint8_t next = p[*ret_used];
		if (!begins(h, V1_BEGIN, h->v1, next) && !begins(h, V2_BEGIN, h->v2, next))
			return fail(h, PROXY_HEADER_MISSING);
		h->bytes[h->n++] = next;
		++*ret_used;
	}
	return h->state;
}

// Writing. Both addresses are of one family: IPv4 beside one that is not is in its IPv6 form.

static bool are_v4(const struct proxy_header_text *t)
{
	return ip_is_v4(&t->source->ip) && ip_is_v4(&t->target->ip);
}

// RFC 4291 2.5.5.2, where ip_print() would write an IPv4 address.
static void print(const struct ip_addr *ip, bool is_v4, char *text)
{
	if (!is_v4 && ip_is_v4(ip)) {
		memcpy(text, "::ffff:", 7);
		text += 7;
	}
	ip_print(ip, text);
}

static size_t write_v1(const struct proxy_header_text *t, uint8_t *to)
{
	char source[IP_PORT_TEXT_MAX], target[IP_PORT_TEXT_MAX];
	bool is_v4 = are_v4(t);
	print(&t->source->ip, is_v4, source);
	print(&t->target->ip, is_v4, target);
	int n = snprintf((char *)to, PROXY_HEADER_V2_MAX, "PROXY TCP%c %s %s %u %u\r\n",
		is_v4 ? '4' : '6', source, target, t->source->port, t->target->port);
	return (size_t)n;
}

static uint8_t *store16(uint8_t *to, size_t n)
{
	to[0] = (uint8_t)(n >> 8);
	to[1] = (uint8_t)n;
	return to + 2;
}

static uint8_t *store_ip(uint8_t *to, const struct ip_addr *ip, bool is_v4)
{
	size_t len = is_v4 ? 4 : sizeof(ip->b);
	memcpy(to, ip->b + sizeof(ip->b) - len, len);
	return to + len;
}

static uint8_t *store_tlvs(uint8_t *to, const struct proxy_header_text *t)
{
	const struct tlv_types ours = tlv_types_of(t->tlvs);
	if (t->tlvs.len)
		memcpy(to, t->tlvs.p, t->tlvs.len);
	to += t->tlvs.len;
	return to + tlv_copy(to, t->clients_tlvs, &t->passed, &ours);
}

static size_t write_v2(const struct proxy_header_text *t, uint8_t *to)
{
	uint8_t *at = to + V2_FIXED;
	memcpy(to, V2_BEGIN.p, V2_BEGIN.len);
	to[12] = t->source ? V2_PROXY : V2_LOCAL;
	to[13] = 0;
	if (t->source) {
		bool is_v4 = are_v4(t);
		to[13] = is_v4 ? V2_IP4 : V2_IP6;
		at = store_ip(at, &t->source->ip, is_v4);
		at = store_ip(at, &t->target->ip, is_v4);
		at = store16(at, t->source->port);
		at = store16(at, t->target->port);
		at = store_tlvs(at, t);
	}
	store16(to + 14, (size_t)(at - to) - V2_FIXED);
	return (size_t)(at - to);
}

size_t proxy_header_write(const struct proxy_header_text *t, uint8_t *to)
{
	CHECK(t->tlvs.len <= PROXY_HEADER_TLVS_MAX && t->clients_tlvs.len <= PROXY_HEADER_TLVS_MAX);
	return t->version == 1 ? write_v1(t, to) : write_v2(t, to);
}
