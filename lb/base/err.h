// SPDX-License-Identifier: Apache-2.0
// The text of one error, for operators and NACKs. Says which resource, which field, and why.
// Thread: any; an lb_err belongs to its caller.
#pragma once

#include <stddef.h>

struct lb_err {
	char text[384]; // "" = none; always terminated; ends in "..." if it was too long
};

// Writes the text (printf form) and returns -EINVAL, so that a validator can `return
// lb_err_set(…)`. A NULL err is fine.
int lb_err_set(struct lb_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Prepends "<prefix>: " to the text, so that a parent can name the field in which a child found the
// error. Returns -EINVAL.
int lb_err_within(struct lb_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
