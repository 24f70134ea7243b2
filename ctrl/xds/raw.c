// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/raw.h"

#include "proto/wire.h"

#include <string.h>

static bool is_text(const struct proto_field *f)
{
	size_t at = 0, n = 1;
	while (at < f->len && (n = proto_utf8_len(f->bytes + at, f->len - at)) > 0)
		at += n;
	return n > 0;
}

// Every resource type of xDS has its name in the field with number 1. Of a field that is repeated
// the last one counts.
bool xds_raw_name(const uint8_t *bytes, size_t len, struct proto_field *ret)
{
	const uint8_t *p = bytes, *end = len ? bytes + len : bytes; // nothing may be nowhere
	struct proto_field f;
	*ret = (struct proto_field){.len = 0};
	while (proto_field_next(&p, end, &f))
		if (f.number == 1 && f.type == 2)
			*ret = f;
	return p == end;
}

// Wrong bytes are somebody else's to complain about, unless the name is needed. A name that is none
// is none found: the wrapper may have a better one.
static void decode(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	static const struct xds_type type = {.label = "resource"};
	struct proto_field name;
	if (len > 0 && xds_raw_name(bytes, len, &name) && name.len > 0 && is_text(&name))
		ret->name = strndup((const char *)name.bytes, name.len);
	ret->res = xds_res_new(&type, sizeof(*ret->res), "", bytes, len);
}

struct xds_type xds_raw_type(const char *url, const char *label, bool full_state)
{
	return (struct xds_type){
		.url = url,
		.label = label,
		.full_state = full_state,
		.is_opaque = true,
		.decode = decode,
	};
}
