// SPDX-License-Identifier: Apache-2.0
#include "lb/regex/regex_class.h"

#include "lb/base/str.h"

#include <string.h>

struct reader {
	const char *p, *end;
	bool fold; // (?i)
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// "[:name:]" of the beginning of a text, as ranges of characters.
static const struct {
	const char *name, *ranges;
} posix_classes[] = {
	{"alnum", "09AZaz"},
	{"alpha", "AZaz"},
	{"ascii", "\0\x7f"},
	{"blank", "\t\t  "},
	{"cntrl", "\0\x1f\x7f\x7f"},
	{"digit", "09"},
	{"graph", "!~"},
	{"lower", "az"},
	{"print", " ~"},
	{"punct", "!/:@[`{~"},
	{"space", "\t\r  "},
	{"upper", "AZ"},
	{"word", "09AZaz__"},
	{"xdigit", "09AFaf"},
};

static struct lb_regex_chars of_ranges(const char *ranges)
{
	struct lb_regex_chars s = {0};
	do {
		lb_regex_chars_add(&s, (uint8_t)ranges[0], (uint8_t)ranges[1]);
		ranges += 2;
	} while (*ranges);
	return s;
}

static bool read_posix_class(struct reader *r, struct lb_regex_chars *ret)
{
	const char *p = r->p + 2;
	bool negated = p < r->end && *p == '^';
	p += negated;
	for (size_t i = 0; i < sizeof(posix_classes) / sizeof(posix_classes[0]); i++) {
		struct str name = str_from(posix_classes[i].name);
		if ((size_t)(r->end - p) < name.len + 2 || memcmp(p, name.p, name.len) != 0 ||
			p[name.len] != ':' || p[name.len + 1] != ']')
			continue;
		*ret = of_ranges(posix_classes[i].ranges);
		if (r->fold)
			*ret = lb_regex_chars_fold(
				*ret); // before it is negated: RE2 folds each class by itself
		if (negated)
			*ret = lb_regex_chars_others(*ret);
		r->p = p + name.len + 2;
		return true;
	}
	return false;
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	c = str_fold(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// What follows \x.
static bool read_hex(struct reader *r, struct lb_regex_chars *ret)
{
	unsigned value = 0, n = 0;
	bool braced = r->p < r->end && *r->p == '{';
	r->p += braced;
	for (; r->p < r->end && hex_value(*r->p) >= 0 && n < (braced ? 8 : 2); n++)
		value = value << 4 | (unsigned)hex_value(*r->p++);
	if (braced && (r->p >= r->end || *r->p++ != '}'))
		return false;
	lb_regex_chars_add(ret, value, value);
	return n > 0 && value < 128 && (braced || n == 2);
}

// A backslash and what follows it; *ret_literal says that it stands for one character.
static bool read_escape(struct reader *r, struct lb_regex_chars *ret, bool *ret_literal)
{
	static const char controls[] = "a\af\fn\nr\rt\tv\v";
	if (r->end - r->p < 2)
		return false;
	char c = r->p[1];
	r->p += 2;
	*ret = (struct lb_regex_chars){0};
	*ret_literal = false;
	switch (c) {
	case 'd':
	case 'D':
		*ret = of_ranges("09");
		break;
	case 'w':
	case 'W':
		*ret = of_ranges("09AZaz__");
		break;
	case 's':
	case 'S':
		*ret = of_ranges("\t\n\f\r  "); // without \v, which Hyperscan's has (RX-09)
		break;
	case 'x':
		*ret_literal = true;
		return read_hex(r, ret);
	default:
		*ret_literal = true;
		for (size_t i = 0; controls[i]; i += 2)
			if (c == controls[i]) {
				lb_regex_chars_add(
					ret, (uint8_t)controls[i + 1], (uint8_t)controls[i + 1]);
				return true;
			}
		lb_regex_chars_add(ret, (uint8_t)c, (uint8_t)c);
		return c > ' ' && c <= '~' && !is_letter(c) && !is_digit(c);
	}
	if (c <= 'Z')
		*ret = lb_regex_chars_others(*ret);
	return true;
}

// One character of a class, or an escape for several.
static bool read_member(struct reader *r, struct lb_regex_chars *ret, bool *ret_literal)
{
	if (r->p >= r->end)
		return false;
	uint8_t c = (uint8_t)*r->p;
	if (c == '\\')
		return read_escape(r, ret, ret_literal);
	*ret_literal = true;
	*ret = (struct lb_regex_chars){0};
	lb_regex_chars_add(ret, c, c);
	r->p++;
	return c < 128;
}

// [...] from its bracket on. A dash is itself where it cannot make a range.
static bool read_class(struct reader *r, struct lb_regex_chars *ret)
{
	*ret = (struct lb_regex_chars){0};
	bool negated = r->end - r->p > 1 && r->p[1] == '^';
	r->p += 1 + negated;
	for (bool first = true; r->p < r->end && (first || *r->p != ']'); first = false) {
		struct lb_regex_chars low, high;
		bool literal;
		if (*r->p == '[' && r->end - r->p > 1 && r->p[1] == ':') {
			if (!read_posix_class(r, &low))
				return false;
			lb_regex_chars_add_all(ret, low);
			continue;
		}
		if (!read_member(r, &low, &literal))
			return false;
		if (literal && r->end - r->p > 1 && *r->p == '-' && r->p[1] != ']') {
			r->p++;
			if (!read_member(r, &high, &literal) || !literal)
				return false;
			lb_regex_chars_add(
				&low, lb_regex_chars_first(low), lb_regex_chars_first(high));
		}
		lb_regex_chars_add_all(ret, low);
	}
	if (r->p >= r->end)
		return false;
	r->p++;
	if (r->fold)
		*ret = lb_regex_chars_fold(*ret);
	if (negated)
		*ret = lb_regex_chars_others(*ret);
	return true;
}

bool lb_regex_class_read(const char **p, const char *end, bool fold, struct lb_regex_chars *ret)
{
	struct reader r = {*p, end, fold};
	bool ok = read_class(&r, ret);
	*p = r.p;
	return ok;
}

bool lb_regex_class_read_escape(
	const char **p, const char *end, struct lb_regex_chars *ret, bool *ret_literal)
{
	struct reader r = {*p, end, false};
	bool ok = read_escape(&r, ret, ret_literal);
	*p = r.p;
	return ok;
}
