// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/regex_check.h"

int res_regex_check(const char *pattern, struct lb_err *err)
{
	return lb_err_set(err, "not supported yet");
}

int res_rewrite_check(const char *pattern, const char *substitution, struct lb_err *err)
{
	return lb_err_set(err, "not supported yet");
}
