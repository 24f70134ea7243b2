// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/answer.h"

#include "ctrl/base/stats_proto.h"
#include "ctrl/stats/render.h"

#include <stdio.h>
#include <stdlib.h>

char *answer_error(const char *fmt, const char *what)
{
	char *text = NULL, *raw = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	fputs(STATS_ERROR, f);
	if (asprintf(&raw, fmt, what) >= 0) {
		render_print(f, raw);
		free(raw);
	}
	fputc('\n', f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
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
