// SPDX-License-Identifier: Apache-2.0
#include "lb/base/base64.h"

#include <stdint.h>

size_t base64_encode(const void *data, size_t len, char *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = data;
	char *at = out;
	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)p[i] << 16;
		if (n > 1)
			v |= (uint32_t)p[i + 1] << 8;
		if (n > 2)
			v |= p[i + 2];
		*at++ = digits[v >> 18];
		*at++ = digits[v >> 12 & 63];
		*at++ = n > 1 ? digits[v >> 6 & 63] : '=';
		*at++ = n > 2 ? digits[v & 63] : '=';
	}
	return (size_t)(at - out);
}

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(struct str text, void *out, size_t *ret_len)
{
	uint8_t *at = out;
	if (text.len % 4)
		return false;
	for (size_t i = 0; i < text.len; i += 4) {
		const char *q = text.p + i;
		size_t n_pads = 0;
		if (i + 4 == text.len && q[3] == '=')
			n_pads = q[2] == '=' ? 2 : 1;
		uint32_t v = 0;
		for (size_t j = 0; j < 4 - n_pads; j++) {
			int d = digit(q[j]);
			if (d < 0)
				return false;
			v |= (uint32_t)d << (18 - 6 * j);
		}
		if (v & ((UINT32_C(1) << (8 * n_pads)) - 1)) // RFC 4648 3.5
			return false;
		for (size_t j = 0; j < 3 - n_pads; j++)
			*at++ = (uint8_t)(v >> (16 - 8 * j));
	}
	*ret_len = (size_t)(at - (uint8_t *)out);
	return true;
}
