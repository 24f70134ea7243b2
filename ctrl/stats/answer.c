// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/answer.h"

#include "ctrl/base/printout.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/stats/render.h"

#include <event2/buffer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *answer_error(const char *fmt, const char *what)
{
	char *raw = NULL;
	struct printout p;
	FILE *f = printout_begin(&p);
	if (!f)
		return NULL;
	fputs(STATS_ERROR, f);
	if (asprintf(&raw, fmt, what) >= 0) {
		render_print(f, raw);
		free(raw);
	}
	fputc('\n', f);
	return printout_end(&p);
}

char *answer_json(json_t *tree)
{
	json_t *whole = json_pack("{si sO}", "schema_version", STATS_SCHEMA_VERSION, "data", tree);
	char *text = whole ? render_json(whole) : NULL;
	json_decref(whole);
	return text;
}

char *answer_tree(json_t *tree, bool json, bool human)
{
	return json ? answer_json(tree) : render_text(tree, human);
}

char *answer_either(json_t *tree, bool json, const char *why)
{
	char *text = tree ? answer_tree(tree, json, false) : answer_error("%s", why);
	json_decref(tree);
	return text;
}

void answer_append(struct evbuffer *out, char *text)
{
	if (text)
		evbuffer_add(out, text, strlen(text));
	free(text);
}
