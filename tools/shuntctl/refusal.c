// SPDX-License-Identifier: Apache-2.0
#include "tools/shuntctl/refusal.h"

#include "ctrl/base/stats_proto.h"

#include <jansson.h>

#include <string.h>

void refusal_print_json(FILE *out, const char *line)
{
	size_t head = strlen(STATS_ERROR);
	const char *why = strncmp(line, STATS_ERROR, head) == 0 ? line + head : line;
	json_t *whole = json_pack("{si ss%}", "schema_version", STATS_SCHEMA_VERSION, "error", why,
		strcspn(why, "\n"));
	if (whole && json_dumpf(whole, out, JSON_COMPACT) == 0)
		fputc('\n', out);
	else
		fputs(line, stderr);
	json_decref(whole);
}
