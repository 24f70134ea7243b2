// SPDX-License-Identifier: Apache-2.0
#include "proto/scan.h"

#define TAG_BYTES_MAX 5 // of a length, too
#define VARINT_BYTES_MAX 10

static bool take_varint(struct proto_scan *s, unsigned n_max, uint64_t *ret)
{
	uint64_t v = 0;
	const uint8_t *at = s->at;
	for (unsigned i = 0; i < n_max && at < s->end; i++) {
		uint8_t b = *at++;
		v |= (uint64_t)(b & 0x7f) << 7 * i;
		if (b < 0x80) {
			s->at = at;
			*ret = v;
			return true;
		}
	}
	return false;
}

static bool take_any(struct proto_scan *s, struct proto_item *ret)
{
	uint64_t tag, len = 0;
	if (!take_varint(s, TAG_BYTES_MAX, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
		return false;
	ret->tag = (uint32_t)tag;
	switch (tag & 7) {
	case PROTO_VARINT:
		return take_varint(s, VARINT_BYTES_MAX, &ret->value);
	case PROTO_BYTES:
		if (!take_varint(s, TAG_BYTES_MAX, &len))
			return false;
		break;
	case PROTO_FIXED64:
		len = 8;
		break;
	case PROTO_FIXED32:
		len = 4;
		break;
	default:
		return false;
	}
	if (len > (uint64_t)(s->end - s->at))
		return false;
	ret->bytes = (struct str){(const char *)s->at, (size_t)len};
	s->at += len;
	return true;
}

bool proto_scan_any(struct proto_scan *s, struct proto_item *ret)
{
	const uint8_t *from = s->at;
	if (take_any(s, ret))
		return true;
	s->at = from;
	s->is_malformed = true;
	return false;
}
