// SPDX-License-Identifier: Apache-2.0
// A walk over the grammar of RE2 (its doc/syntax.txt) as far as it is common to both engines. It
// errs on the side of RE2: a construct that is not known here, be it harmless, makes the pattern
// RE2's.
#include "lb/regex/regex_syntax.h"

#include "lb/regex/regex_class.h"

#define DEPTH_MAX 64 // of groups; Hyperscan's parser recurses

struct flags {
	bool fold; // (?i)
	bool dot_all; // (?s)
};

struct walk {
	const char *p, *end;
	char *text; // NULL = not wanted
	size_t n_text;
	char *prefix;
	size_t n_prefix; // of the outermost alternatives read so far
	size_t n_branch; // of this one
	size_t n_bytes;
	bool first_branch; // outermost alternative
	bool in_prefix; // of this branch all so far was literal, came once and fits the prefix
	bool at_start; // of an alternative: nothing that could be repeated
	bool folds, minds_case; // letters were read that do, and some that do not
	unsigned depth;
	struct flags flags, outer[DEPTH_MAX]; // those of the groups around
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

// Output.

static void put(struct walk *w, const char *text, size_t len)
{
	if (w->text)
		memcpy(w->text + w->n_text, text, len);
	w->n_text += len;
}

static void put_byte(struct walk *w, unsigned c)
{
	static const char digits[] = "0123456789abcdef";
	const char text[LB_REGEX_SYNTAX_BYTE] = {'\\', 'x', digits[c >> 4], digits[c & 15]};
	put(w, text, sizeof(text));
}

// No subject has NUL or a byte above ASCII here, so they are put where the ranges get fewest.
static void put_chars(struct walk *w, const struct lb_regex_chars *s)
{
	put(w, "[", 1);
	for (unsigned c = 0; c < 128; c++) {
		if (!lb_regex_chars_has(s, c))
			continue;
		unsigned low = c;
		while (c < 127 && lb_regex_chars_has(s, c + 1))
			c++;
		put_byte(w, low == 1 ? 0 : low);
		put(w, "-", 1);
		put_byte(w, c == 127 ? 255 : c);
	}
	put(w, "]", 1);
}

// Reading. Each returns false where RE2 has to take over.

// A number, which RE2 reads without a leading zero.
static bool skip_number(const char **p, const char *end)
{
	const char *begin = *p;
	while (*p < end && is_digit(**p))
		++*p;
	return *p > begin && (*begin != '0' || *p == begin + 1);
}

// The end of {n}, {n,} or {n,m}; NULL = none of them, so that the brace is a literal one.
static const char *count_end(const struct walk *w)
{
	const char *p = w->p + 1;
	if (!skip_number(&p, w->end))
		return NULL;
	if (p < w->end && *p == ',') {
		p++;
		if (p < w->end && is_digit(*p) && !skip_number(&p, w->end))
			return NULL;
	}
	return p < w->end && *p == '}' ? p + 1 : NULL;
}

static const char *quantifier_end(const struct walk *w)
{
	if (w->p >= w->end)
		return NULL;
	switch (*w->p) {
	case '*':
	case '+':
	case '?':
		return w->p + 1;
	case '{':
		return count_end(w);
	default:
		return NULL;
	}
}

// After an atom: how often it comes. Greedy or lazy are the same texts.
static bool walk_quantifier(struct walk *w)
{
	const char *end = quantifier_end(w);
	w->at_start = false;
	if (!end)
		return true;
	put(w, w->p, (size_t)(end - w->p));
	w->p = end;
	if (w->p < w->end && *w->p == '?')
		w->p++;
	return !quantifier_end(w);
}

// One byte that is there for sure and once, at the outermost level.
static void add_to_prefix(struct walk *w, char c)
{
	if (!w->first_branch && (w->n_branch >= w->n_prefix || w->prefix[w->n_branch] != c)) {
		w->in_prefix = false;
		return;
	}
	w->prefix[w->n_branch++] = c;
}

// RE2 forgets to fold a letter that it merges with a class that has it in one case: (?i:Z)|[a-z] is
// not Z to it. So what minds case and what folds are not for both engines in one pattern.
static bool one_case(struct walk *w, const struct lb_regex_chars *s)
{
	struct lb_regex_chars folded = lb_regex_chars_fold(*s), letters = {{0}};
	lb_regex_chars_add(&letters, 'A', 'Z');
	if (w->flags.fold)
		w->folds = w->folds || lb_regex_chars_meet(folded, letters);
	else
		w->minds_case = w->minds_case || folded.bits[1] != s->bits[1];
	return !w->folds || !w->minds_case;
}

// An atom of characters, and its quantifier.
static bool walk_chars(struct walk *w, const struct lb_regex_chars *s)
{
	unsigned n = lb_regex_chars_count(*s); // 0 = nothing of ASCII
	if (n == 0 || !one_case(w, s))
		return false;
	unsigned c = lb_regex_chars_first(*s);
	if (n > 1) {
		w->in_prefix = false;
		put_chars(w, s);
		return walk_quantifier(w);
	}
	bool at_start = w->in_prefix;
	put_byte(w, c);
	bool once = !quantifier_end(w);
	if (at_start && (once || *w->p == '+'))
		add_to_prefix(w, (char)c);
	if (at_start && once && w->first_branch)
		w->n_bytes++;
	w->in_prefix = w->in_prefix && once;
	return walk_quantifier(w);
}

static bool walk_char(struct walk *w, char c)
{
	struct lb_regex_chars s = {0};
	lb_regex_chars_add(&s, (uint8_t)c, (uint8_t)c);
	if (w->flags.fold)
		s = lb_regex_chars_fold(s);
	w->p++;
	return (uint8_t)c < 128 && c && walk_chars(w, &s);
}

static bool open_group(struct walk *w)
{
	if (w->depth == DEPTH_MAX)
		return false;
	w->in_prefix = false;
	w->at_start = true;
	w->outer[w->depth++] = w->flags;
	put(w, "(?:", 3);
	return true;
}

// (?is-i) and (?i:, from the bracket on. ^ and $ have no flag here, greediness says nothing.
// Folding stays within ASCII: U+017F and U+212A are in no pattern that is common.
static bool walk_flags(struct walk *w)
{
	struct flags flags = w->flags;
	bool on = true;
	for (w->p += 2; w->p < w->end; w->p++) {
		switch (*w->p) {
		case 'i':
			flags.fold = on;
			break;
		case 's':
			flags.dot_all = on;
			break;
		case '-':
			on = false;
			break;
		case ':':
			w->p++;
			if (!open_group(w))
				return false;
			w->flags = flags;
			return true;
		case ')':
			w->p++;
			w->flags = flags;
			return !quantifier_end(w);
		default:
			return false;
		}
	}
	return false;
}

static bool walk_group(struct walk *w)
{
	struct str rest = {w->p, (size_t)(w->end - w->p)};
	if (!str_starts(rest, STR("(?"))) {
		w->p++;
		return open_group(w);
	}
	if (!str_starts(rest, STR("(?P<")))
		return walk_flags(w);
	const char *end = memchr(rest.p, '>', rest.len);
	w->p = end ? end + 1 : w->end;
	return end && open_group(w);
}

static bool walk_escape(struct walk *w)
{
	struct lb_regex_chars s;
	bool literal;
	if (!lb_regex_class_read_escape(&w->p, w->end, &s, &literal))
		return false;
	if (w->flags.fold)
		s = lb_regex_chars_fold(s);
	return walk_chars(w, &s);
}

static void end_branch(struct walk *w)
{
	if (w->depth)
		return;
	w->n_prefix = w->n_branch;
	w->n_branch = 0;
	w->first_branch = false;
	w->in_prefix = true;
}

// What follows an anchor of the end.
static bool ends_branch(const struct walk *w)
{
	return w->depth == 0 && (w->p >= w->end || *w->p == '|');
}

static bool walk_one(struct walk *w)
{
	struct lb_regex_chars s = {0};
	switch (*w->p) {
	case '\\':
		return walk_escape(w);
	case '[':
		return lb_regex_class_read(&w->p, w->end, w->flags.fold, &s) && walk_chars(w, &s);
	case '.':
		w->p++;
		if (!w->flags.dot_all)
			lb_regex_chars_add(&s, '\n', '\n');
		s = lb_regex_chars_others(s);
		return walk_chars(w, &s);
	case '(':
		return walk_group(w);
	case ')':
		if (w->depth == 0)
			return false;
		w->p++;
		put(w, ")", 1);
		w->flags = w->outer[--w->depth];
		return walk_quantifier(w);
	case '|':
		w->p++;
		put(w, "|", 1);
		w->at_start = true;
		end_branch(w);
		return true;
	case '^':
		w->p++;
		return w->depth == 0 && w->at_start && !quantifier_end(w);
	case '$':
		w->p++;
		return ends_branch(w);
	default:
		return !quantifier_end(w) && walk_char(w, *w->p);
	}
}

size_t lb_regex_syntax_room(size_t pattern_len)
{
	// \W and its like, of two characters, are the longest: five ranges of nine.
	return 32 * pattern_len + 128;
}

struct lb_regex_syntax lb_regex_syntax_read(struct str pattern, char *prefix, char *text)
{
	struct walk w = {.p = pattern.p,
		.end = pattern.p + pattern.len,
		.prefix = prefix,
		.text = text,
		.first_branch = true,
		.in_prefix = true,
		.at_start = true};
	while (w.p < w.end)
		if (!walk_one(&w))
			return (struct lb_regex_syntax){0};
	if (w.depth)
		return (struct lb_regex_syntax){0};
	bool branched = !w.first_branch;
	end_branch(&w);
	return (struct lb_regex_syntax){
		.is_common = true,
		.prefix_len = w.n_prefix,
		.n_bytes = branched ? 0 : w.n_bytes,
		.text_len = w.n_text,
	};
}

bool lb_regex_syntax_is_common_text(struct str s)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
	size_t i = 0;
	uint64_t bad = 0, word;
	for (; i + 8 <= s.len; i += 8) {
		memcpy(&word, s.p + i, 8);
		bad |= word | (word - ones); // without top bits, only a zero byte borrows one
	}
	for (; i < s.len; i++)
		bad |= (uint8_t)s.p[i] < 0x80 && s.p[i] ? 0 : tops;
	return !(bad & tops);
}
