// SPDX-License-Identifier: Apache-2.0
#include "lb/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// Who reads it is to see that there was more.
static void mark_cut(struct lb_err *err, bool is_cut)
{
	static const char end[] = "...";
	if (is_cut)
		memcpy(err->text + sizeof(err->text) - sizeof(end), end, sizeof(end));
}

int lb_err_set(struct lb_err *err, const char *fmt, ...)
{
	if (!err)
		return -EINVAL;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	mark_cut(err, n >= (int)sizeof(err->text));
	return -EINVAL;
}

int lb_err_within(struct lb_err *err, const char *fmt, ...)
{
	if (!err)
		return -EINVAL;
	struct lb_err inner = *err;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && n < (int)sizeof(err->text))
		n += snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", inner.text);
	mark_cut(err, n >= (int)sizeof(err->text));
	return -EINVAL;
}
