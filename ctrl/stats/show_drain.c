// SPDX-License-Identifier: Apache-2.0
// `drain` and `undrain`.
#include "ctrl/assemble/drains.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/takeover/takeover.h"

#include <string.h>

// `[frontend NAME | all]`. False = args->err says what is wrong.
static bool read_words(const struct show *s, struct show_args *args, uint32_t *ret)
{
	*ret = DRAINS_ALL;
	if (args->n == 0 || (args->n == 1 && strcmp(args->words[0], "all") == 0))
		return true;
	if (args->n != 2 || strcmp(args->words[0], "frontend") != 0) {
		lb_err_set(&args->err, "'frontend NAME' or 'all' may follow, and nothing else");
		return false;
	}
	int i = config_find_frontend(s->conf.config, args->words[1], &args->err);
	*ret = (uint32_t)i;
	return i >= 0;
}

static json_t *change(const struct show *s, struct show_args *args,
	int (*fn)(struct drains *, uint32_t, struct lb_err *), const char *what)
{
	uint32_t frontend;
	if (!read_words(s, args, &frontend))
		return NULL;
	int n = fn(s->conf.drains, frontend, &args->err);
	return n < 0 ? NULL : json_pack("{si}", what, n);
}

json_t *show_drain(const struct show *s, struct show_args *args)
{
	if (takeover_check_change(s->conf.takeover, &args->err))
		return NULL;
	return change(s, args, drains_begin, "draining");
}

json_t *show_undrain(const struct show *s, struct show_args *args)
{
	return change(s, args, drains_end, "serving");
}
