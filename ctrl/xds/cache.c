// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/cache.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void tell(const struct xds_cache *c, void (*fn)(void *ctx, const char *line),
	const char *fmt, va_list args)
{
	char *line;
	if (!fn || vasprintf(&line, fmt, args) < 0)
		return;
	fn(c->conf->log_ctx, line);
	free(line);
}

void xds_cache_log(const struct xds_cache *c, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	tell(c, c->conf->log, fmt, args);
	va_end(args);
}

void xds_cache_note(const struct xds_cache *c, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	tell(c, c->conf->note, fmt, args);
	va_end(args);
}
