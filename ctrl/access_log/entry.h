// SPDX-License-Identifier: Apache-2.0
// A request as an entry for an access log service: envoy.data.accesslog.v3's HTTPAccessLogEntry,
// of which docs/access-log.md says what is in it (OPS-216).
// Thread: a form is made and freed by ctrl, constant in between.
#pragma once

#include "ctrl/access_log/headers.h"
#include "ctrl/access_log/line.h"
#include "ctrl/access_log/operators.h"

#include <stddef.h>
#include <stdint.h>

struct access_entry_form; // which headers an entry has

// text: headers, each in a line of its own, its name in lower case behind the word for its kind:
// "request traceparent\n". 0, -ENOMEM, or -EINVAL with reterr.
[[nodiscard]] int access_entry_form_new(
	const char *text, struct access_entry_form **ret, struct lb_err *reterr);
void access_entry_form_free(struct access_entry_form *); // NULL is fine
// As a field of HTTPAccessLogEntries, with its tag and length: several one after the other are such
// a message. Nothing if there is no memory.
void access_entry_write(
	const struct access_entry_form *, const struct access_view *, struct access_line *);
// How many entries these bytes are.
uint64_t access_entry_count(const char *bytes, size_t len);
