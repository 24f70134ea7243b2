// SPDX-License-Identifier: Apache-2.0
// `set log level`: until a reload, whose file counts again.
#include "ctrl/conf/config.h"
#include "ctrl/stats/show_inside.h"
#include "lb/base/log.h"

#include <string.h>

json_t *show_set_log_level(const struct show *s, struct show_args *args)
{
	const char *word = args->n == 1 ? args->words[0] : "";
	for (enum log_level l = LOG_LEVEL_ERROR; l <= LOG_LEVEL_DEBUG; l++) {
		if (strcmp(word, log_level_name(l)) != 0)
			continue;
		const char *was = log_level_name(s->conf.config->log_level);
		s->conf.config->log_level = l;
		log_set_level(l);
		return json_pack("{ss ss}", "level", word, "was", was);
	}
	lb_err_set(&args->err, "error, warn, info or debug must follow");
	return NULL;
}
