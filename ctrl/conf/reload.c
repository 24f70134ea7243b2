// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/reload.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_diff.h"
#include "lb/base/log.h"

#include <stdio.h>
#include <string.h>

struct differences {
	char text[400]; // of what needs a restart
	size_t len;
	unsigned n_more; // for which there was no room
};

bool reload_applies(const char *field)
{
	return strcmp(field, "drain_s") == 0 || strcmp(field, "lame_duck_s") == 0 ||
	       strcmp(field, "log") == 0 || strcmp(field, "log.level") == 0;
}

static void note(void *ctx, const char *field)
{
	struct differences *d = ctx;
	if (reload_applies(field))
		return;
	size_t room = sizeof(d->text) - d->len;
	if (strlen(field) + 3 > room) {
		d->n_more++;
		return;
	}
	d->len += (size_t)snprintf(d->text + d->len, room, "%s%s", d->len ? ", " : "", field);
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

void reload(struct config *running, const char *path)
{
	struct lb_err err = {.text = ""};
	struct differences d = {.len = 0};
	struct config *new = config_load(path, &err);
	if (!new) {
		log_error("reload refused", "error=%s",
			log_quote(err.text[0] ? err.text : "out of memory"));
		return;
	}
	bool applies = new->log_level != running->log_level || new->drain_s != running->drain_s ||
	               new->lame_duck_s != running->lame_duck_s;
	config_diff(running, new, note, &d);
	if (d.len)
		log_warn("reload", "needs_restart=%s and_more=%u", log_quote(d.text), d.n_more);
	if (applies)
		apply(running, new);
	else if (!d.len)
		log_info("reload", "text=\"nothing to do\"");
	config_free(new);
}
