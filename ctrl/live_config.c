// SPDX-License-Identifier: Apache-2.0
#include "ctrl/live_config.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config_terms.h"

static void apply(void *ctx)
{
	struct live_config *l = ctx;
	struct lb_terms terms = config_terms(l->reloader.config);
	assembler_set_terms(l->assembler, &terms);
}

void live_config_init(
	struct live_config *l, struct config *config, const char *path, struct assembler *assembler)
{
	*l = (struct live_config){.reloader = {config, path, apply, l}, .assembler = assembler};
}
