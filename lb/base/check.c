// SPDX-License-Identifier: Apache-2.0
#include "lb/base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "level=fatal msg=\"check failed\" at=%s:%d what=\"%s\"\n", file, line,
		what);
	abort();
}
