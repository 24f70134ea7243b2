// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/reload.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_diff.h"
#include "lb/base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool reload_applies(const char *field)
{
	return strcmp(field, "drain_s") == 0 || strcmp(field, "lame_duck_s") == 0 ||
	       strcmp(field, "log") == 0 || strcmp(field, "log.level") == 0;
}

static void note(void *ctx, const char *field)
{
	struct reload_report *r = ctx;
	if (reload_applies(field))
		return;
	size_t len = strlen(r->needs_restart), room = sizeof(r->needs_restart) - len;
	if (strlen(field) + 3 > room) {
		r->n_more++;
		return;
	}
	snprintf(r->needs_restart + len, room, "%s%s", len ? ", " : "", field);
}

static void apply(struct config *running, const struct config *new)
{
	enum log_level was = running->log_level;
	if (new->log_level > was) // else the line would be lost with the old level, or the new one
		log_set_level(new->log_level);
	log_info("reloaded", "log_level=%s drain_s=%u lame_duck_s=%u",
		log_level_name(new->log_level), new->drain_s, new->lame_duck_s);
	log_set_level(new->log_level);
	running->log_level = new->log_level;
	running->drain_s = new->drain_s;
	running->lame_duck_s = new->lame_duck_s;
}

// A FIFO would have the control thread wait for a writer.
static struct config *load(const char *path, struct lb_err *reterr)
{
	struct stat s;
	if (stat(path, &s) != 0 || S_ISREG(s.st_mode) || S_ISDIR(s.st_mode))
		return config_load(path, reterr); // which says what is wrong
	lb_err_set(reterr, "%s: is not a regular file", path);
	return NULL;
}

void reload(struct config *running, const char *path, struct reload_report *ret)
{
	*ret = (struct reload_report){.applied = false};
	struct config *new = load(path, &ret->err);
	if (!new) {
		if (!ret->err.text[0])
			lb_err_set(&ret->err, "out of memory");
		log_error("reload refused", "error=%s", log_quote(ret->err.text));
		return;
	}
	ret->applied = new->log_level != running->log_level || new->drain_s != running->drain_s ||
	               new->lame_duck_s != running->lame_duck_s;
	config_diff(running, new, note, ret);
	if (ret->needs_restart[0])
		log_warn("reload", "needs_restart=%s and_more=%u", log_quote(ret->needs_restart),
			ret->n_more);
	if (ret->applied)
		apply(running, new);
	else if (!ret->needs_restart[0])
		log_info("reload", "text=\"nothing to do\"");
	config_free(new);
}
