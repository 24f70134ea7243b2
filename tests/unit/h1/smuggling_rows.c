// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/h1/smuggling_rows.h"

#include "lb/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (1 << 17)

struct smuggling_rows {
	FILE *file;
	struct smuggling_row row;
	char line[8192];
};

struct smuggling_rows *smuggling_rows_open(const char *path)
{
	struct smuggling_rows *r = calloc(1, sizeof(*r));
	CHECK(r);
	r->file = fopen(path, "r");
	r->row.bytes = malloc(MAX_BYTES);
	CHECK(r->file && r->row.bytes);
	return r;
}

void smuggling_rows_close(struct smuggling_rows *r)
{
	fclose(r->file);
	free(r->row.bytes);
	free(r);
}

// Reads one byte that may be escaped. Returns what follows.
static const char *take_byte(const char *p, char *ret)
{
	static const char from[] = "rnt0\\,", to[] = "\r\n\t\0\\,";
	if (*p != '\\') {
		*ret = *p;
		return p + 1;
	}
	if (p[1] == 'x') {
		const char hex[] = {p[2], p[3], '\0'};
		*ret = (char)strtol(hex, NULL, 16);
		return p + 4;
	}
	const char *known = strchr(from, p[1]);
	CHECK(p[1] && known);
	*ret = to[known - from];
	return p + 2;
}

// "\{TEXT,N}"
static const char *take_repeated(const char *p, struct smuggling_row *row)
{
	char text[64];
	size_t len = 0;
	for (p += 2; *p != ','; len++) {
		CHECK(*p && len < sizeof(text));
		p = take_byte(p, &text[len]);
	}
	char *end;
	size_t n = strtoul(p + 1, &end, 10);
	CHECK(*end == '}' && row->len + n * len <= MAX_BYTES);
	for (; n; n--, row->len += len)
		memcpy(row->bytes + row->len, text, len);
	return end + 1;
}

static void take_bytes(const char *p, struct smuggling_row *row)
{
	row->len = 0;
	while (*p && *p != '\n') {
		CHECK(row->len < MAX_BYTES);
		if (p[0] == '\\' && p[1] == '{')
			p = take_repeated(p, row);
		else
			p = take_byte(p, &row->bytes[row->len++]);
	}
}

const struct smuggling_row *smuggling_rows_next(struct smuggling_rows *r)
{
	struct smuggling_row *row = &r->row;
	do {
		if (!fgets(r->line, sizeof(r->line), r->file))
			return NULL;
	} while (r->line[0] == '#' || r->line[0] == '\n');
	char *bytes = strstr(r->line, " | ");
	CHECK(bytes);
	*bytes = '\0';
	CHECK(sscanf(r->line, "%7s %15s %79[^\n]", row->rule, row->verdict, row->name) == 3);
	take_bytes(bytes + 3, row);
	return row;
}
