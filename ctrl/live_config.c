// SPDX-License-Identifier: Apache-2.0
#include "ctrl/live_config.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config_terms.h"
#include "ctrl/reach.h"

static int prepare_csds(void *ctx, const struct config *new, struct lb_err *err)
{
	return reach_prepare_status(((struct live_config *)ctx)->reach, new, err);
}

static void apply(void *ctx, bool has_csds)
{
	struct live_config *l = ctx;
	struct lb_terms terms = config_terms(l->reloader.config);
	assembler_set_terms(l->assembler, &terms);
	if (has_csds)
		reach_change_status(l->reach);
}

void live_config_init(struct live_config *l, struct config *config, const char *path,
	struct assembler *assembler, struct reach *reach)
{
	*l = (struct live_config){
		.reloader = {config, path, prepare_csds, apply, l},
		.assembler = assembler,
		.reach = reach,
	};
}
