// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/printout.h"

#include <stdbool.h>
#include <stdlib.h>

FILE *printout_begin(struct printout *p)
{
	p->to = open_memstream(&p->text, &p->len);
	return p->to;
}

char *printout_end(struct printout *p)
{
	bool failed = ferror(p->to);
	if (fclose(p->to) == 0 && !failed)
		return p->text;
	free(p->text);
	return NULL;
}
