// SPDX-License-Identifier: Apache-2.0
#include "lb/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int lb_err_set(struct lb_err *err, const char *fmt, ...)
{
	if (!err)
		return -EINVAL;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
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
	if (n >= 0 && (size_t)n < sizeof(err->text))
		snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", inner.text);
	return -EINVAL;
}
