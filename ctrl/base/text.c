// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/text.h"

#include "lb/base/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CUT "..."

struct xds_text xds_text_of(char *p, size_t room)
{
	CHECK(room >= sizeof(CUT));
	*p = '\0';
	return (struct xds_text){.p = p, .room = room};
}

void xds_text_add(struct xds_text *t, const char *s)
{
	size_t left = t->room - 1 - t->len, len = strlen(s);
	if (len > left) {
		memcpy(t->p + t->len, s, left);
		memcpy(t->p + t->room - sizeof(CUT), CUT, sizeof(CUT));
		t->len = t->room - 1;
		return;
	}
	memcpy(t->p + t->len, s, len + 1);
	t->len += len;
}

static bool is_bare(const char *word)
{
	static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._:/@-";
	return *word && word[strspn(word, bare)] == '\0';
}

void xds_text_add_word(struct xds_text *t, const char *word)
{
	if (is_bare(word)) {
		xds_text_add(t, word);
		return;
	}
	xds_text_add(t, "\"");
	for (const char *c = word; *c && t->len < t->room - 1; c++) {
		char out[8];
		bool plain = *c >= ' ' && *c <= '~';
		bool escaped = *c == '"' || *c == '\\';
		snprintf(out, sizeof(out), plain ? "%s%c" : "%s\\x%02x", escaped ? "\\" : "",
			plain ? *c : (unsigned char)*c);
		xds_text_add(t, out);
	}
	xds_text_add(t, "\"");
}
