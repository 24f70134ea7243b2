// SPDX-License-Identifier: Apache-2.0
// A link takes as many characters as it can and is never asked to give one back. That is exact
// where the characters of a link that may take more or fewer are none of those that what follows
// can begin with: had it stopped before a character of its own, nothing could go on from there.
#include "lb/regex/regex_chain.h"

#include "lb/regex/regex_chars.h"
#include "lb/regex/regex_syntax.h"

#include <stdlib.h>

#define LINKS_MAX 32

enum link_kind {
	LINK_LITERAL,
	LINK_UNTIL, // any number of characters that are not `stop`
	LINK_CHARS,
};

struct link {
	enum link_kind kind;
	uint32_t min, max; // of CHARS and UNTIL; UINT32_MAX = no end
	uint32_t at, len; // LITERAL: where in the text
	char stop; // UNTIL
	struct lb_regex_chars chars; // of CHARS and UNTIL; of LITERAL its first character
};

struct lb_regex_chain {
	uint32_t n, n_text;
	struct link links[]; // and behind them the literals
};

struct reader {
	const char *p, *end;
	struct link links[LINKS_MAX];
	uint32_t n, n_text;
	char *text; // literals so far
};

// \xhh, which is all that the text has of characters.
static unsigned read_byte(struct reader *r)
{
	char digits[3] = {r->p[2], r->p[3], 0};
	r->p += LB_REGEX_SYNTAX_BYTE;
	return (unsigned)strtoul(digits, NULL, 16);
}

static void read_class(struct reader *r, struct lb_regex_chars *chars)
{
	for (r->p++; *r->p != ']';) {
		unsigned low = read_byte(r);
		r->p++;
		lb_regex_chars_add(chars, low, read_byte(r));
	}
	r->p++;
}

static uint32_t read_number(struct reader *r)
{
	char *end;
	uint32_t n = (uint32_t)strtoul(r->p, &end, 10);
	r->p = end;
	return n;
}

// False = there is none.
static bool read_quantifier(struct reader *r, struct link *l)
{
	l->min = l->max = 1;
	switch (r->p < r->end ? *r->p : 0) {
	case '*':
		l->min = 0;
		l->max = UINT32_MAX;
		break;
	case '+':
		l->max = UINT32_MAX;
		break;
	case '?':
		l->min = 0;
		break;
	case '{':
		r->p++;
		l->min = l->max = read_number(r);
		if (*r->p == ',') {
			r->p++;
			l->max = *r->p == '}' ? UINT32_MAX : read_number(r);
		}
		break;
	default:
		return false;
	}
	r->p++;
	return true;
}

// A class without one character, as often as one likes, is a search for that character.
static void see_until(struct link *l)
{
	struct lb_regex_chars others = lb_regex_chars_others(l->chars);
	if (l->max != UINT32_MAX || lb_regex_chars_count(others) != 1)
		return;
	l->kind = LINK_UNTIL;
	l->stop = (char)lb_regex_chars_first(others);
}

static bool read_link(struct reader *r)
{
	struct link l = {.kind = LINK_CHARS};
	unsigned byte = 128; // none
	switch (*r->p) {
	case '\\':
		byte = read_byte(r);
		lb_regex_chars_add(&l.chars, byte, byte);
		break;
	case '[':
		read_class(r, &l.chars);
		break;
	default:
		return false; // groups, alternatives
	}
	struct link *last = r->n ? &r->links[r->n - 1] : NULL;
	if (!read_quantifier(r, &l) && byte < 128) {
		r->text[r->n_text++] = (char)byte;
		if (last && last->kind == LINK_LITERAL) {
			last->len++;
			return true;
		}
		l.kind = LINK_LITERAL;
		l.at = r->n_text - 1;
		l.len = 1;
	}
	see_until(&l);
	if (r->n == LINKS_MAX)
		return false;
	r->links[r->n++] = l;
	return true;
}

// What follows link i cannot begin with a character of its.
static bool is_sure(const struct reader *r, uint32_t i)
{
	const struct link *l = &r->links[i];
	if (l->min == l->max)
		return true;
	for (uint32_t j = i + 1; j < r->n; j++) {
		const struct link *next = &r->links[j];
		if (lb_regex_chars_meet(l->chars, next->chars))
			return false;
		if (next->min)
			return true;
	}
	return true;
}

struct lb_regex_chain *lb_regex_chain_new(const char *text, size_t len)
{
	struct reader r = {.p = text, .end = text + len, .text = malloc(len + 1)};
	struct lb_regex_chain *c = NULL;
	bool ok = r.text;
	while (ok && r.p < r.end)
		ok = read_link(&r);
	for (uint32_t i = 0; ok && i < r.n; i++)
		ok = is_sure(&r, i);
	size_t size = sizeof(*c) + r.n * sizeof(r.links[0]) + r.n_text;
	if (ok)
		c = malloc(size);
	if (c) {
		*c = (struct lb_regex_chain){.n = r.n, .n_text = r.n_text};
		memcpy(c->links, r.links, r.n * sizeof(r.links[0]));
		memcpy(&c->links[r.n], r.text, r.n_text);
	}
	free(r.text);
	return c;
}

void lb_regex_chain_free(struct lb_regex_chain *c)
{
	free(c);
}

size_t lb_regex_chain_size(const struct lb_regex_chain *c)
{
	return sizeof(*c) + c->n * sizeof(c->links[0]) + c->n_text;
}

// The number of characters that a link takes. ASCII: bit 6 says which word of the class.
static size_t link_take(const struct link *l, const char *p, size_t left)
{
	if (l->kind == LINK_UNTIL) {
		const char *at = memchr(p, l->stop, left);
		return at ? (size_t)(at - p) : left;
	}
	size_t n = 0, most = left < l->max ? left : l->max;
	uint64_t low = l->chars.bits[0], high = l->chars.bits[1];
	while (n < most && ((p[n] & 64 ? high : low) >> (p[n] & 63) & 1))
		n++;
	return n;
}

bool lb_regex_chain_match(const struct lb_regex_chain *c, struct str subject)
{
	const char *text = (const char *)&c->links[c->n];
	for (const struct link *l = c->links; l < &c->links[c->n]; l++) {
		size_t n = l->len;
		if (l->kind == LINK_LITERAL) {
			if (!str_starts(subject, (struct str){text + l->at, n}))
				return false;
		} else {
			n = link_take(l, subject.p, subject.len);
			if (n < l->min)
				return false;
		}
		subject.p += n;
		subject.len -= n;
	}
	return subject.len == 0;
}
