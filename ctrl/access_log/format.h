// SPDX-License-Identifier: Apache-2.0
// The form of the access log's lines: JSON, or a text with operators.
// Thread: made and freed by ctrl, constant in between.
#pragma once

#include "ctrl/access_log/operators.h"

struct access_format;

// text: NULL = JSON. Returns 0, -ENOMEM, or -EINVAL with an operator that is not known, or its
// argument, named in reterr.
[[nodiscard]] int access_format_new(
	const char *text, struct access_format **ret, struct lb_err *reterr);
void access_format_free(struct access_format *); // NULL is fine
// A line with its newline.
void access_format_write(
	const struct access_format *, const struct access_view *, struct access_line *);
