// SPDX-License-Identifier: Apache-2.0
#include "ctrl/page/html.h"

#include "proto/wire.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" // U+FFFD

static uint32_t code_of(const uint8_t *p, size_t n)
{
	uint32_t code = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		code = code << 6 | (p[i] & 0x3f);
	return code;
}

// Unicode's Bidi_Control, and what is no character at all.
static bool is_unfit(uint32_t code)
{
	return code < ' ' || (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e ||
	       code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

static void put(FILE *out, const uint8_t *p, size_t n)
{
	static const struct {
		char from;
		const char *to;
	} escapes[] = {
		{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
	if (!n || is_unfit(code_of(p, n))) {
		fputs(REPLACEMENT, out);
		return;
	}
	for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++)
		if (*p == (uint8_t)escapes[i].from) {
			fputs(escapes[i].to, out);
			return;
		}
	fwrite(p, 1, n, out);
}

void html_text(FILE *out, const char *text)
{
	const uint8_t *p = (const uint8_t *)text;
	for (size_t left = strlen(text), n, len; left; p += len, left -= len) {
		n = proto_utf8_len(p, left);
		len = n ? n : 1;
		put(out, p, n);
	}
}

void html_query_value(FILE *out, const char *text)
{
	for (const uint8_t *p = (const uint8_t *)text; *p; p++) {
		if (isalnum(*p) || strchr("-._~", *p))
			fputc(*p, out);
		else
			fprintf(out, "%%%02X", *p);
	}
}

void html_duration(FILE *out, double s)
{
	if (s < 0)
		fputs("0 s", out);
	else if (s < 120)
		fprintf(out, "%.0f s", s);
	else if (s < 120 * 60)
		fprintf(out, "%" PRIu64 " min", (uint64_t)(s / 60));
	else if (s < 48 * 3600)
		fprintf(out, "%" PRIu64 " h", (uint64_t)(s / 3600));
	else
		fprintf(out, "%" PRIu64 " d", (uint64_t)(s / 86400));
}

static const char *const tones[] = {
	[HTML_PLAIN] = "plain", [HTML_GOOD] = "good", [HTML_WARN] = "warn", [HTML_BAD] = "bad"};

void html_badge(FILE *out, enum html_tone tone, const char *text)
{
	static const char *const signs[] = {[HTML_PLAIN] = "",
		[HTML_GOOD] = "\u2713",
		[HTML_WARN] = "\u25b2",
		[HTML_BAD] = "\u2716"};
	fprintf(out, "<span class=\"badge %s\">", tones[tone]);
	if (signs[tone][0])
		fprintf(out, "<span aria-hidden=\"true\">%s</span> ", signs[tone]);
	html_text(out, text);
	fputs("</span>", out);
}

void html_table_begin(struct html_table *t, FILE *out, const char *caption,
	const struct html_column *columns, uint32_t n)
{
	*t = (struct html_table){out, columns, n, 0};
	// Blocks, which tables become on narrow screens, would lose their roles.
	fprintf(out,
		"<table role=\"table\"><caption>%s</caption><thead role=\"rowgroup\">"
		"<tr role=\"row\">",
		caption);
	for (uint32_t i = 0; i < n; i++)
		fprintf(out, "<th role=\"columnheader\" scope=\"col\"%s>%s</th>",
			columns[i].is_number ? " class=\"n\"" : "", columns[i].title);
	fputs("</tr></thead><tbody role=\"rowgroup\">", out);
}

void html_table_end(struct html_table *t)
{
	fputs("</tbody></table>", t->out);
}

void html_row_begin(struct html_table *t, enum html_tone tone)
{
	t->at = 0;
	fprintf(t->out, "<tr role=\"row\" class=\"%s\">", tones[tone]);
}

void html_row_end(struct html_table *t)
{
	fputs("</tr>", t->out);
}

void html_cell_begin(struct html_table *t)
{
	const struct html_column *c = &t->columns[t->at++];
	fprintf(t->out, "<td role=\"cell\" data-title=\"%s\"%s>", c->title,
		c->is_number ? " class=\"n\"" : "");
}

void html_cell_end(struct html_table *t)
{
	fputs("</td>", t->out);
}

void html_cell_text(struct html_table *t, const char *text)
{
	html_cell_begin(t);
	html_text(t->out, text);
	html_cell_end(t);
}

void html_cell_count(struct html_table *t, uint64_t n)
{
	html_cell_begin(t);
	fprintf(t->out, "%" PRIu64, n);
	html_cell_end(t);
}

void html_cell_rate(struct html_table *t, double per_s)
{
	html_cell_begin(t);
	if (per_s < 0)
		fputs("\u2013", t->out);
	else
		fprintf(t->out, per_s > 0 && per_s < 9.95 ? "%.1f" : "%.0f", per_s);
	html_cell_end(t);
}

void html_cell_ago(struct html_table *t, double seconds)
{
	html_cell_begin(t);
	if (seconds < 0) {
		fputs("\u2013", t->out);
	} else {
		html_duration(t->out, seconds);
		fputs(" ago", t->out);
	}
	html_cell_end(t);
}
