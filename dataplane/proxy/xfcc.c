// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/xfcc.h"

#include "tlshs/result.h"

#include <stdbool.h>
#include <string.h>

static const char hex[] = "0123456789abcdef";

struct out {
	char *at, *end;
	bool full;
};

static void put(struct out *o, struct str s)
{
	if (s.len > (size_t)(o->end - o->at)) {
		o->full = true;
		return;
	}
	memcpy(o->at, s.p, s.len);
	o->at += s.len;
}

static void put_char(struct out *o, char c)
{
	put(o, (struct str){&c, 1});
}

// Bytes that no field may have, or not at its ends, become %XX (HX-07).
static void put_byte(struct out *o, uint8_t b)
{
	if (b > 0x20 && b < 0x7f)
		put_char(o, (char)b);
	else
		put(o, (struct str){(const char[]){'%', hex[b >> 4], hex[b & 15]}, 3});
}

static bool is_special(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (strchr(",;=\"\\", s.p[i]))
			return true;
	return false;
}

// A name is the certificate's, so that it must not be able to end its own value.
static void put_name(struct out *o, struct str s)
{
	bool quoted = is_special(s);
	if (quoted)
		put_char(o, '"');
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '"' || s.p[i] == '\\')
			put_char(o, '\\');
		put_byte(o, (uint8_t)s.p[i]);
	}
	if (quoted)
		put_char(o, '"');
}

// Its own escapes are those of RFC 4514: a quote within it has a backslash already.
static void put_subject(struct out *o, struct str s)
{
	put(o, STR(";Subject=\""));
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == ' ')
			put_char(o, ' ');
		else
			put_byte(o, (uint8_t)s.p[i]);
	}
	put_char(o, '"');
}

// Returns how many there are.
static uint32_t put_names(
	struct out *o, const struct tlshs_peer *p, enum tlshs_san_kind kind, struct str key)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->n_sans; i++) {
		if (p->sans[i].kind != kind)
			continue;
		n++;
		put(o, key);
		put_name(o, tlshs_peer_san(p, i));
	}
	return n;
}

size_t proxy_xfcc_write(const struct lb_forwarding *f, const struct tlshs_peer *p,
	const char *own_uris, char *ret, size_t size)
{
	struct out o = {ret, ret + size, false};
	for (const char *uri = own_uris; *uri; uri += strlen(uri) + 1) {
		put(&o, STR("By="));
		put_name(&o, str_from(uri));
		put_char(&o, ';');
	}
	put(&o, STR("Hash="));
	for (size_t i = 0; i < sizeof(p->sha256); i++) {
		put_char(&o, hex[p->sha256[i] >> 4]);
		put_char(&o, hex[p->sha256[i] & 15]);
	}
	if (f->cert_subject)
		put_subject(&o, tlshs_peer_subject(p));
	if (f->cert_uri && !put_names(&o, p, TLSHS_SAN_URI, STR(";URI=")))
		put(&o, STR(";URI="));
	if (f->cert_dns)
		put_names(&o, p, TLSHS_SAN_DNS, STR(";DNS="));
	return o.full ? 0 : (size_t)(o.at - ret);
}
