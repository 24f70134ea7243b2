// SPDX-License-Identifier: Apache-2.0
#include "tests/packets/notation.h"

#include "dataplane/tcp/wire.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	char letter;
	uint8_t flag;
} letters[] = {
	{'F', TCP_FIN},
	{'S', TCP_SYN},
	{'R', TCP_RST},
	{'P', TCP_PSH},
	{'E', 0x40}, // ECE
	{'W', 0x80}, // CWR
	{'.', TCP_ACK},
};

static const char *const ecn_words[] = {"", "[noecn]", "[ect0]", "[ce]"}; // enum notation_ecn

static void skip_blanks(const char **at)
{
	while (isblank((unsigned char)**at))
		(*at)++;
}

static bool take(const char **at, const char *word)
{
	size_t len = strlen(word);
	skip_blanks(at);
	if (strncmp(*at, word, len))
		return false;
	*at += len;
	return true;
}

static bool take_number(const char **at, uint32_t *ret)
{
	char *end;
	skip_blanks(at);
	if (!isdigit((unsigned char)**at))
		return false;
	*ret = (uint32_t)strtoul(*at, &end, 10);
	*at = end;
	return true;
}

static enum notation_ecn take_ecn(const char **at)
{
	enum notation_ecn ecn = NOTATION_CE;
	while (ecn && !take(at, ecn_words[ecn]))
		ecn--;
	skip_blanks(at);
	return ecn;
}

static uint8_t flag_of(char letter)
{
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (letters[i].letter == letter)
			return letters[i].flag;
	return 0;
}

static bool take_flags(const char **at, uint8_t *ret)
{
	for (uint8_t flag; (flag = flag_of(**at)); (*at)++)
		*ret |= flag;
	return *ret && isblank((unsigned char)**at);
}

static bool take_range(const char **at, uint32_t *ret_start, uint32_t *ret_end)
{
	return take_number(at, ret_start) && take(at, ":") && take_number(at, ret_end);
}

static bool take_sack(const char **at, struct tcp_opts *o)
{
	while (o->n_sack < TCP_MAX_SACK_BLOCKS) {
		struct tcp_sack_block *b = &o->sack[o->n_sack];
		if (!take_range(at, &b->start, &b->end))
			break;
		o->n_sack++;
	}
	return o->n_sack > 0;
}

static bool take_option(const char **at, struct notation *n)
{
	struct tcp_opts *o = &n->opts;
	uint32_t x = 0;
	if (take(at, "nop") || take(at, "eol"))
		return true;
	if (take(at, "sackOK"))
		return o->sack_ok = true;
	if (take(at, "sack"))
		return take_sack(at, o);
	if (take(at, "mss")) {
		o->has_mss = take_number(at, &x);
		o->mss = (uint16_t)x;
		return o->has_mss;
	}
	if (take(at, "wscale")) {
		o->has_wscale = take_number(at, &x);
		o->wscale = (uint8_t)x;
		return o->has_wscale;
	}
	o->has_ts = take(at, "TS val");
	n->any_ts_val = o->has_ts && take(at, "*");
	return o->has_ts && (n->any_ts_val || take_number(at, &o->ts_val)) && take(at, "ecr") &&
	       take_number(at, &o->ts_ecr);
}

static bool take_options(const char **at, struct notation *n)
{
	n->has_opts = true;
	if (take(at, ">"))
		return true;
	do {
		if (!take_option(at, n))
			return false;
	} while (take(at, ","));
	return take(at, ">");
}

const char *notation_parse(const char *text, struct notation *ret)
{
	const char *at = text;
	uint32_t end;
	*ret = (struct notation){.ecn = take_ecn(&at)};
	if (!take_flags(&at, &ret->flags))
		return "the flags are not letters of FSRPEW.";
	if (!take_range(&at, &ret->seq, &end) || !take(&at, "(") || !take_number(&at, &ret->len) ||
		!take(&at, ")"))
		return "sequence numbers are not start:end(length)";
	if (end - ret->seq != ret->len)
		return "the length is not end minus start";
	ret->has_ack = take(&at, "ack");
	if (ret->has_ack && !take_number(&at, &ret->ack))
		return "ack is not a number";
	if (ret->has_ack != !!(ret->flags & TCP_ACK))
		return "ack and the dot go together";
	ret->has_wnd = take(&at, "win");
	if (ret->has_wnd && !take_number(&at, &ret->wnd))
		return "win is not a number";
	if (take(&at, "<") && !take_options(&at, ret))
		return "an option is unknown or malformed";
	skip_blanks(&at);
	return *at ? "something follows the segment" : NULL;
}

// Appends to a text of `size` bytes, which it cuts.
static __attribute__((format(printf, 3, 4))) void add(
	char *text, size_t size, const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;
	va_start(args, format);
	vsnprintf(text + len, size - len, format, args);
	va_end(args);
}

static void print_options(const struct tcp_opts *o, char *ret, size_t size)
{
	const char *comma = "";
	add(ret, size, " <");
	if (o->has_mss) {
		add(ret, size, "mss %u", o->mss);
		comma = ",";
	}
	if (o->sack_ok) {
		add(ret, size, "%ssackOK", comma);
		comma = ",";
	}
	if (o->has_ts) {
		add(ret, size, "%sTS val %" PRIu32 " ecr %" PRIu32, comma, o->ts_val, o->ts_ecr);
		comma = ",";
	}
	if (o->has_wscale) {
		add(ret, size, "%swscale %u", comma, o->wscale);
		comma = ",";
	}
	if (o->n_sack)
		add(ret, size, "%ssack", comma);
	for (unsigned i = 0; i < o->n_sack; i++)
		add(ret, size, " %" PRIu32 ":%" PRIu32, o->sack[i].start, o->sack[i].end);
	add(ret, size, ">");
}

void notation_print(const struct notation *n, char *ret, size_t size)
{
	ret[0] = 0;
	if (n->ecn)
		add(ret, size, "%s ", ecn_words[n->ecn]);
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (n->flags & letters[i].flag)
			add(ret, size, "%c", letters[i].letter);
	add(ret, size, " %" PRIu32 ":%" PRIu32 "(%" PRIu32 ")", n->seq, n->seq + n->len, n->len);
	if (n->has_ack)
		add(ret, size, " ack %" PRIu32, n->ack);
	if (n->has_wnd)
		add(ret, size, " win %" PRIu32, n->wnd);
	if (n->has_opts)
		print_options(&n->opts, ret, size);
}

static bool options_match(const struct notation *script, const struct tcp_opts *b)
{
	const struct tcp_opts *a = &script->opts;
	bool blocks = a->n_sack == b->n_sack;
	for (unsigned i = 0; blocks && i < a->n_sack; i++)
		blocks = a->sack[i].start == b->sack[i].start && a->sack[i].end == b->sack[i].end;
	return blocks && a->has_mss == b->has_mss && a->mss == b->mss && a->sack_ok == b->sack_ok &&
	       a->has_wscale == b->has_wscale && a->wscale == b->wscale && a->has_ts == b->has_ts &&
	       (script->any_ts_val || a->ts_val == b->ts_val) && a->ts_ecr == b->ts_ecr;
}

bool notation_matches(const struct notation *script, const struct notation *segment)
{
	uint8_t ignored = script->flags & TCP_PSH ? 0 : TCP_PSH;
	return script->flags == (segment->flags & ~ignored) && script->seq == segment->seq &&
	       (!script->ecn || script->ecn == segment->ecn) && script->len == segment->len &&
	       (!script->has_ack || script->ack == segment->ack) &&
	       (!script->has_wnd || script->wnd == segment->wnd) &&
	       (!script->has_opts || options_match(script, &segment->opts));
}
