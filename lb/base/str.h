// SPDX-License-Identifier: Apache-2.0
// Pointer + length view of bytes that somebody else owns. Not terminated; may hold NULs.
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct str {
	const char *p; // borrowed; may be NULL when len is 0
	size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})

static inline struct str str_from(const char *c_string)
{
	return (struct str){c_string, c_string ? strlen(c_string) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static inline bool str_starts(struct str s, struct str prefix)
{
	return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.p, prefix.p, prefix.len) == 0);
}

static inline bool str_ends(struct str s, struct str suffix)
{
	return s.len >= suffix.len &&
	       (suffix.len == 0 || memcmp(s.p + s.len - suffix.len, suffix.p, suffix.len) == 0);
}

static inline char str_fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

// Equality with ASCII case folded (host names, header names in configs).
static inline bool str_eq_fold(struct str a, struct str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (str_fold(a.p[i]) != str_fold(b.p[i]))
			return false;
	return true;
}
