// SPDX-License-Identifier: Apache-2.0
// The form of an access log's lines: our JSON, a text with operators, JSON with operators in it, or
// entries of a service.
// Thread: made and freed by ctrl, constant in between.
#pragma once

#include "ctrl/access_log/operators.h"

struct access_format;

// Envoy's, of a log without a format.
#define ACCESS_ENVOYS_FORMAT                                                                       \
	"[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" "         \
	"%RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% "               \
	"%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" "                        \
	"\"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" "                     \
	"\"%UPSTREAM_HOST%\"\n"

// text: NULL = our JSON. Returns 0, -ENOMEM, or -EINVAL with an operator that is not known, or its
// argument, named in reterr.
[[nodiscard]] int access_format_new(
	const char *text, struct access_format **ret, struct lb_err *reterr);
// An object, whose strings are texts with operators; keys are sorted. is_typed: a string that is
// one operator becomes what the operator gives, a number or null (Envoy's json_format of
// SubstitutionFormatString), else all remain strings. Returns likewise.
[[nodiscard]] int access_format_new_json(
	const char *json, bool is_typed, struct access_format **ret, struct lb_err *reterr);
// Entries; text as ctrl/access_log/entry.h has it. Returns likewise.
[[nodiscard]] int access_format_new_entry(
	const char *text, struct access_format **ret, struct lb_err *reterr);
void access_format_free(struct access_format *); // NULL is fine
// A line with its newline, or an entry.
void access_format_write(
	const struct access_format *, const struct access_view *, struct access_line *);
