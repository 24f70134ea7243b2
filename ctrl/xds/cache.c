// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/cache.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void xds_cache_log(const struct xds_cache *c, const char *fmt, ...)
{
	if (!c->conf->log)
		return;
	char *line;
	va_list args;
	va_start(args, fmt);
	int n = vasprintf(&line, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	c->conf->log(c->conf->log_ctx, line);
	free(line);
}
