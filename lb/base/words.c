// SPDX-License-Identifier: Apache-2.0
#include "lb/base/words.h"

#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// One escape, behind its backslash. 0 = not one.
static char unescape(const char **at)
{
	char c = *(*at)++;
	if (c == 'n')
		return '\n';
	if (c == 'r')
		return '\r';
	if (c == 't')
		return '\t';
	if (c == '\\' || c == '"')
		return c;
	if (c != 'x')
		return 0;
	int high = hex_digit((*at)[0]);
	int low = high < 0 ? -1 : hex_digit((*at)[1]);
	if (low < 0)
		return 0;
	*at += 2;
	return (char)(high << 4 | low);
}

// The text between quotes to *to. NULL = right, and both stand behind it.
static const char *take_quoted(const char **at, char **to)
{
	while (**at != '"') {
		if (!**at)
			return "a quote is not closed";
		if (**at != '\\') {
			*(*to)++ = *(*at)++;
			continue;
		}
		++*at;
		char c = **at ? unescape(at) : 0;
		if (!c)
			return "a backslash is followed by none of \\ \" n r t xHH";
		*(*to)++ = c;
	}
	++*at;
	return NULL;
}

const char *words_split(char *text, struct words *ret)
{
	const char *at = text;
	char *to = text; // never ahead of at: no escape grows
	ret->n = 0;
	for (;;) {
		while (is_blank(*at))
			at++;
		if (!*at)
			return NULL;
		if (ret->n == WORDS_MAX)
			return "more than 256 words";
		ret->list[ret->n++] = to;
		while (*at && !is_blank(*at)) {
			if (*at != '"') {
				*to++ = *at++;
				continue;
			}
			at++;
			const char *wrong = take_quoted(&at, &to);
			if (wrong)
				return wrong;
		}
		bool more = *at; // the end of the word may overwrite the blank that at is on
		at += more;
		*to++ = 0;
		if (!more)
			return NULL;
	}
}

static bool needs_quotes(const char *word)
{
	if (!*word)
		return true;
	for (const char *c = word; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == '"' || *c == 0x7f)
			return true;
	return false;
}

// A text in a buffer; len counts on when the room is used up.
struct out {
	char *at;
	size_t room, len;
};

static void put(struct out *o, char c)
{
	if (o->len < o->room)
		o->at[o->len] = c;
	o->len++;
}

static void put_escaped(struct out *o, char c)
{
	static const char hex[] = "0123456789abcdef";
	char letter = c == '\n'               ? 'n'
	              : c == '\r'             ? 'r'
	              : c == '\t'             ? 't'
	              : c == '"' || c == '\\' ? c
	                                      : 0;
	if (letter) {
		put(o, '\\');
		put(o, letter);
	} else if ((unsigned char)c < ' ' || c == 0x7f) {
		put(o, '\\');
		put(o, 'x');
		put(o, hex[(unsigned char)c >> 4]);
		put(o, hex[c & 15]);
	} else {
		put(o, c);
	}
}

bool words_append(char *line, size_t room, const char *word)
{
	size_t before = strlen(line);
	struct out o = {line, room, before};
	bool quotes = needs_quotes(word);
	if (before)
		put(&o, ' ');
	if (quotes)
		put(&o, '"');
	for (const char *c = word; *c; c++) {
		if (quotes)
			put_escaped(&o, *c);
		else
			put(&o, *c);
	}
	if (quotes)
		put(&o, '"');
	put(&o, 0);
	if (o.len > room)
		line[before] = 0;
	return o.len <= room;
}
