// SPDX-License-Identifier: Apache-2.0
// Pointer + length view of bytes with another owner. Not terminated; may contain NULs.
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

// By bytes, as qsort() wants it: what is shorter comes before what goes on.
static inline int str_order(struct str a, struct str b)
{
	size_t len = a.len < b.len ? a.len : b.len;
	int order = len ? memcmp(a.p, b.p, len) : 0;
	return order ? order : (a.len > b.len) - (a.len < b.len);
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

// The bytes before the first c, or all if there is none.
static inline struct str str_until(struct str s, char c)
{
	const char *at = s.len ? (const char *)memchr(s.p, c, s.len) : NULL;
	return (struct str){s.p, at ? (size_t)(at - s.p) : s.len};
}

// Without leading and trailing blanks and tabs.
static inline struct str str_trim(struct str s)
{
	while (s.len && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s.p++;
		s.len--;
	}
	while (s.len && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
		s.len--;
	return s;
}

// Reads a number of digits only, at most `most`. Returns false with *ret untouched for anything
// else.
static inline bool str_number(struct str s, uint64_t most, uint64_t *ret)
{
	uint64_t n = 0;
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
			__builtin_add_overflow(n, (uint64_t)(s.p[i] - '0'), &n))
			return false;
	}
	if (s.len == 0 || n > most)
		return false;
	*ret = n;
	return true;
}
