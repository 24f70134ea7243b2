// SPDX-License-Identifier: Apache-2.0
// `cause=C` of commands that choose requests by how they ended.
#include "ctrl/stats/show_inside.h"
#include "lb/pick/cause.h"

#include <stdio.h>
#include <string.h>

static const char *name_of(int cause, const char *of_ok)
{
	return cause == LB_CAUSE_OK ? of_ok : lb_cause_info((enum lb_cause)cause)->name;
}

bool show_is_cause(struct show_args *args, const char *name, const char *of_ok)
{
	char all[sizeof(args->err.text)] = "";
	for (int i = LB_CAUSE_OK; i < LB_N_CAUSES; i++) {
		size_t len = strlen(all);
		if (strcmp(name, name_of(i, of_ok)) == 0)
			return true;
		snprintf(all + len, sizeof(all) - len, "%s%s", i ? ", " : "", name_of(i, of_ok));
	}
	lb_err_set(&args->err, "no cause '%.32s', there are %s", name, all);
	return false;
}
