// SPDX-License-Identifier: Apache-2.0
// A walk over the grammar that both engines share. It errs on the side of RE2: a construct that is
// not on this list, be it harmless, makes the pattern RE2's.
#include "lb/regex_syntax.h"

#define DEPTH_MAX 64 // of groups; Hyperscan's own limits are in the same region

struct walk {
	const char *p, *end;
	char *prefix;
	size_t n_prefix;
	bool in_prefix; // so far everything was literal and came once
	bool branched; // an alternative at the outermost level: no common start
	unsigned depth;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

static bool is_meta(char c)
{
	return c == '\\' || c == '^' || c == '$' || c == '.' || c == '|' || c == '?' || c == '*' ||
	       c == '+' || c == '(' || c == ')' || c == '[' || c == ']' || c == '{' || c == '}';
}

// A backslash and what follows it. *ret_literal: the character it stands for, or 0 for a class.
static bool walk_escape(struct walk *w, char *ret_literal)
{
	if (w->end - w->p < 2)
		return false;
	char c = w->p[1];
	w->p += 2;
	*ret_literal = 0;
	switch (c) {
	case 'd':
	case 'D':
	case 'w':
	case 'W':
		return true; // ASCII in both; \s is not: Hyperscan's has 0x0B (RX-09)
	case 't':
		*ret_literal = '\t';
		return true;
	default:
		*ret_literal = c;
		return is_printable(c) && !is_letter(c) && !is_digit(c);
	}
}

// One character of a class, or an escape for several. A dash is one only at either end.
static bool walk_member(struct walk *w, bool first, char *ret_literal)
{
	char c = *w->p;
	if (c == '\\')
		return walk_escape(w, ret_literal);
	if (c == '[' || c == '^' || !is_printable(c))
		return false;
	bool last = w->end - w->p > 1 && w->p[1] == ']';
	if (c == '-' && !first && !last)
		return false;
	w->p++;
	*ret_literal = c;
	return true;
}

// [...] from its bracket on. Names of classes and what could be a range in one engine and not in
// the other are left to RE2.
static bool walk_class(struct walk *w)
{
	w->p++;
	if (w->p < w->end && *w->p == '^')
		w->p++;
	for (bool first = true; w->p < w->end && (first || *w->p != ']'); first = false) {
		char low;
		if (*w->p == ']' || !walk_member(w, first, &low))
			return false;
		if (w->end - w->p < 2 || *w->p != '-' || w->p[1] == ']')
			continue;
		char high = w->p[1];
		if (!low || low == '-' || !(is_letter(high) || is_digit(high)))
			return false;
		w->p += 2;
	}
	if (w->p >= w->end)
		return false;
	w->p++;
	return true;
}

static bool walk_count(struct walk *w)
{
	const char *p = w->p + 1;
	if (p >= w->end || !is_digit(*p))
		return false; // a literal brace for RE2
	while (p < w->end && is_digit(*p))
		p++;
	if (p < w->end && *p == ',')
		p++;
	while (p < w->end && is_digit(*p))
		p++;
	if (p >= w->end || *p != '}')
		return false;
	w->p = p + 1;
	return true;
}

// After an atom: how often it comes. A literal that may not come at all is none of the prefix.
static bool walk_quantifier(struct walk *w, bool literal)
{
	bool any = w->p < w->end && (*w->p == '*' || *w->p == '+' || *w->p == '?' || *w->p == '{');
	if (!any)
		return true;
	if (w->in_prefix && literal && *w->p != '+')
		w->n_prefix--;
	w->in_prefix = false;
	if (*w->p == '{') {
		if (!walk_count(w))
			return false;
	} else {
		w->p++;
	}
	if (w->p < w->end && *w->p == '?') // lazy: the same texts
		w->p++;
	return w->p >= w->end || (*w->p != '*' && *w->p != '+' && *w->p != '?' && *w->p != '{');
}

static bool walk_literal(struct walk *w, char c)
{
	if (w->in_prefix)
		w->prefix[w->n_prefix++] = c;
	return walk_quantifier(w, true);
}

static bool walk_group(struct walk *w)
{
	w->in_prefix = false;
	w->p++;
	if (w->p < w->end && *w->p == '?') {
		if (w->end - w->p < 2 || w->p[1] != ':')
			return false; // flags and names
		w->p += 2;
	}
	return ++w->depth <= DEPTH_MAX;
}

static bool walk_one(struct walk *w)
{
	char c = *w->p, literal;
	switch (c) {
	case '\\':
		if (!walk_escape(w, &literal))
			return false;
		if (literal)
			return walk_literal(w, literal);
		w->in_prefix = false;
		return walk_quantifier(w, false);
	case '[':
		w->in_prefix = false;
		return walk_class(w) && walk_quantifier(w, false);
	case '.':
		w->in_prefix = false;
		w->p++;
		return walk_quantifier(w, false);
	case '(':
		return walk_group(w);
	case ')':
		if (w->depth-- == 0)
			return false;
		w->p++;
		return walk_quantifier(w, false);
	case '|':
		w->in_prefix = false;
		w->branched = w->branched || w->depth == 0;
		w->p++;
		return true;
	default:
		w->p++;
		return is_printable(c) && !is_meta(c) && walk_literal(w, c);
	}
}

// ^ and $ at the ends, where the whole text has to be covered anyway.
static struct str trim(struct str p)
{
	if (p.len && p.p[0] == '^') {
		p.p++;
		p.len--;
	}
	if (p.len && p.p[p.len - 1] == '$' && (p.len < 2 || p.p[p.len - 2] != '\\'))
		p.len--;
	return p;
}

struct lb_regex_syntax lb_regex_syntax_read(struct str pattern, char *out)
{
	struct lb_regex_syntax s = {.core = trim(pattern)};
	struct walk w = {
		.p = s.core.p, .end = s.core.p + s.core.len, .prefix = out, .in_prefix = true};
	while (w.p < w.end)
		if (!walk_one(&w))
			return s;
	s.is_common = w.depth == 0;
	s.prefix_len = s.is_common && !w.branched ? w.n_prefix : 0;
	return s;
}
