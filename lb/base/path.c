// SPDX-License-Identifier: Apache-2.0
#include "lb/base/path.h"

#include <stdarg.h>
#include <stdio.h>

const char *path_under(const char *root, char ret[PATH_MAX], const char *fmt, ...)
{
	va_list args;
	size_t n = (size_t)snprintf(ret, PATH_MAX, "%s", root);
	va_start(args, fmt);
	if (n < PATH_MAX)
		vsnprintf(ret + n, PATH_MAX - n, fmt, args);
	va_end(args);
	return ret;
}
