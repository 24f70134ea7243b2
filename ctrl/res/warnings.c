// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/warnings.h"

#include "ctrl/res/common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct res_warning *find(const struct res_reader *rd, const char *text)
{
	for (uint32_t i = 0; i < rd->n_warnings; i++)
		if (strcmp(rd->warnings[i].text, text) == 0)
			return &rd->warnings[i];
	return NULL;
}

static void add(struct res_reader *rd, const char *text, const char *where)
{
	struct res_warning *w = &rd->warnings[rd->n_warnings];
	*w = (struct res_warning){
		lb_arena_strdup(rd->arena, text), lb_arena_strdup(rd->arena, where), 1};
	if (w->text && w->where)
		rd->n_warnings++;
	else
		rd->no_memory = true;
}

static const char *place(const struct res_reader *rd, char *buffer, size_t size)
{
	if (rd->vhost && rd->in_route)
		snprintf(buffer, size, "virtual host \"%.128s\": route %zu", rd->vhost, rd->route);
	else if (rd->vhost)
		snprintf(buffer, size, "virtual host \"%.128s\"", rd->vhost);
	else
		buffer[0] = 0;
	return buffer;
}

void res_warn(struct res_reader *rd, const char *fmt, ...)
{
	if (!rd->warnings)
		rd->warnings =
			lb_arena_alloc(rd->arena, RES_WARNINGS_MAX + 1, sizeof(*rd->warnings));
	if (!rd->warnings) {
		rd->no_memory = true;
		return;
	}
	char text[384], where[192];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	struct res_warning *same = find(rd, text);
	if (same)
		same->n++;
	else if (rd->n_warnings == RES_WARNINGS_MAX)
		rd->n_unsaid++;
	else
		add(rd, text, place(rd, where, sizeof(where)));
}

int res_warnings_finish(struct res_reader *rd, struct res_warnings *ret)
{
	if (rd->n_unsaid) {
		char text[64];
		snprintf(text, sizeof(text), "%u more warnings are left out", rd->n_unsaid);
		add(rd, text, "");
		rd->n_unsaid = 0;
	}
	*ret = (struct res_warnings){.list = rd->warnings, .n = rd->n_warnings};
	return rd->no_memory ? -ENOMEM : 0;
}
