// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/line.h"

#include <inttypes.h>
#include <stdio.h>

void access_line_put(struct access_line *l, struct str s)
{
	size_t room = l->size - l->len, n = s.len < room ? s.len : room;
	if (n)
		memcpy(l->p + l->len, s.p, n);
	l->len += n;
}

void access_line_number(struct access_line *l, uint64_t n)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%" PRIu64, n);
	access_line_put(l, (struct str){text, (size_t)len});
}

static bool is_control(uint8_t c)
{
	return c < 0x20 || c == 0x7f;
}

void access_line_plain(struct access_line *l, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char text[8] = {s.p[i]};
		int len = 1;
		if (is_control((uint8_t)s.p[i]))
			len = snprintf(text, sizeof(text), "\\x%02x", (uint8_t)s.p[i]);
		access_line_put(l, (struct str){text, (size_t)len});
	}
}

// Length of the character at p (RFC 3629 4); 0 = it is none.
static size_t utf8_len(const uint8_t *p, size_t left)
{
	size_t n = p[0] < 0x80   ? 1
	           : p[0] < 0xc2 ? 0
	           : p[0] < 0xe0 ? 2
	           : p[0] < 0xf0 ? 3
	           : p[0] < 0xf5 ? 4
	                         : 0;
	if (n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	bool bad = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	           (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f);
	return n > 1 && bad ? 0 : n;
}

void access_line_escaped(struct access_line *l, struct str s)
{
	const uint8_t *p = (const uint8_t *)s.p;
	for (size_t i = 0; i < s.len;) {
		size_t n = utf8_len(p + i, s.len - i);
		char text[8];
		if (n == 1 && (is_control(p[i]) || p[i] == '"' || p[i] == '\\')) {
			int len = snprintf(text, sizeof(text), "\\u%04x", p[i]);
			access_line_put(l, (struct str){text, (size_t)len});
		} else if (n) {
			access_line_put(l, (struct str){s.p + i, n});
		} else {
			access_line_put(l, STR("\xef\xbf\xbd"));
		}
		i += n ? n : 1;
	}
}

void access_line_json(struct access_line *l, struct str s)
{
	access_line_put(l, STR("\""));
	access_line_escaped(l, s);
	access_line_put(l, STR("\""));
}
