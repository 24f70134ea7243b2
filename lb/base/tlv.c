// SPDX-License-Identifier: Apache-2.0
#include "lb/base/tlv.h"

#include "lb/base/check.h"

#include <string.h>

bool tlv_types_eq(const struct tlv_types *a, const struct tlv_types *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

// Cuts the first entry off. It has no bytes if there is no whole one.
static struct str take(struct str *rest)
{
	const uint8_t *p = (const uint8_t *)rest->p;
	size_t len = rest->len < TLV_FIXED ? 0 : TLV_FIXED + ((size_t)p[1] << 8 | p[2]);
	if (len > rest->len)
		len = 0;
	const struct str ret = {rest->p, len};
	rest->p = len ? rest->p + len : rest->p;
	rest->len -= len;
	return ret;
}

static uint8_t type_of(struct str entry)
{
	return (uint8_t)entry.p[0];
}

bool tlv_are_whole(struct str s)
{
	while (take(&s).len)
		;
	return !s.len;
}

struct tlv_types tlv_types_of(struct str s)
{
	struct tlv_types ret = {0};
	for (struct str e; (e = take(&s)).len;)
		tlv_types_add(&ret, type_of(e));
	DCHECK(!s.len);
	return ret;
}

size_t tlv_copy(
	uint8_t *to, struct str s, const struct tlv_types *wanted, const struct tlv_types *but)
{
	size_t n = 0;
	for (struct str e; (e = take(&s)).len;) {
		if (!tlv_types_have(wanted, type_of(e)) || tlv_types_have(but, type_of(e)))
			continue;
		memmove(to + n, e.p, e.len);
		n += e.len;
	}
	DCHECK(!s.len);
	return n;
}
