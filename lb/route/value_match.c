// SPDX-License-Identifier: Apache-2.0
#include "lb/route/value_match.h"

// borders[i]: how much of the text's start its first i + 1 bytes end with, without being all of
// them (Knuth, Morris, Pratt): a search never goes back in the value.
static bool add_borders(struct lb_value_match *m, struct lb_arena *arena)
{
	struct str text = m->text;
	uint32_t *borders = lb_arena_alloc(arena, text.len, sizeof(*borders));
	if (!borders)
		return false;
	uint32_t k = 0;
	for (size_t i = 1; i < text.len; i++) {
		while (k && text.p[k] != text.p[i])
			k = borders[k - 1];
		k += text.p[k] == text.p[i];
		borders[i] = k;
	}
	m->borders = borders;
	return true;
}

static bool add_text(struct lb_value_match *m, struct lb_arena *arena, struct str text)
{
	if (text.len > UINT32_MAX || !lb_arena_copy(arena, text, &m->text))
		return false;
	if (!m->ignore_case)
		return true;
	char *folded = lb_arena_alloc(arena, text.len, 1);
	if (!folded)
		return false;
	for (size_t i = 0; i < text.len; i++)
		folded[i] = str_fold(text.p[i]);
	m->text.p = folded;
	return m->kind != LB_HEADER_CONTAINS || add_borders(m, arena);
}

bool lb_value_match_init(
	struct lb_value_match *m, struct lb_arena *arena, const struct lb_header_match_conf *conf)
{
	*m = (struct lb_value_match){.kind = conf->kind,
		.ignore_case = conf->ignore_case,
		.start = conf->start,
		.end = conf->end};
	switch (conf->kind) {
	case LB_HEADER_EXACT:
	case LB_HEADER_PREFIX:
	case LB_HEADER_SUFFIX:
	case LB_HEADER_CONTAINS:
		return add_text(m, arena, conf->text);
	case LB_HEADER_REGEX:
	case LB_HEADER_RANGE:
	case LB_HEADER_PRESENT:
		break;
	}
	return true;
}

// The whole value as a base-10 int64 with an optional sign (A28-H04).
static bool parse_int64(struct str s, int64_t *ret)
{
	bool negative = s.len && s.p[0] == '-';
	size_t i = s.len && (s.p[0] == '-' || s.p[0] == '+');
	if (i == s.len)
		return false;
	int64_t x = 0;
	for (; i < s.len; i++) {
		int digit = s.p[i] - '0';
		if (digit < 0 || digit > 9 || __builtin_mul_overflow(x, 10, &x) ||
			__builtin_add_overflow(x, negative ? -digit : digit, &x))
			return false;
	}
	*ret = x;
	return true;
}

static bool contains_fold(const struct lb_value_match *m, struct str value)
{
	size_t k = 0; // so much of the text ends here
	if (m->text.len == 0)
		return true;
	for (size_t i = 0; i < value.len; i++) {
		char c = str_fold(value.p[i]);
		while (k && m->text.p[k] != c)
			k = m->borders[k - 1];
		k += m->text.p[k] == c;
		if (k == m->text.len)
			return true;
	}
	return false;
}

static bool contains(const struct lb_value_match *m, struct str value)
{
	if (m->ignore_case)
		return contains_fold(m, value);
	return m->text.len == 0 ||
	       (value.len && memmem(value.p, value.len, m->text.p, m->text.len));
}

bool lb_value_match(const struct lb_value_match *m, struct str value)
{
	struct str text = m->text, part = {value.p, text.len};
	int64_t x;
	switch (m->kind) {
	case LB_HEADER_RANGE:
		return parse_int64(value, &x) && x >= m->start && x < m->end;
	case LB_HEADER_CONTAINS:
		return contains(m, value);
	case LB_HEADER_EXACT:
		if (value.len != text.len)
			return false;
		break;
	case LB_HEADER_PREFIX:
		break;
	case LB_HEADER_SUFFIX:
		if (value.p && value.len >= text.len)
			part.p = value.p + value.len - text.len;
		break;
	default:
		return false;
	}
	if (value.len < text.len)
		return false;
	return m->ignore_case ? str_eq_fold(part, text) : str_eq(part, text);
}
