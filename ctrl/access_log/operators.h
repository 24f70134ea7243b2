// SPDX-License-Identifier: Apache-2.0
// The operators of text formats, as Envoy names and writes them (docs/access-log.md has the table),
// and the JSON form.
// Thread: any. Pure.
#pragma once

#include "ctrl/access_log/line.h"
#include "lb/base/err.h"
#include "lb/base/ip.h"
#include "lb/pick/access.h"

// What a line tells of.
struct access_view {
	const struct lb_access_record *record;
	const char *frontend;
	struct ip_port local; // of the frontend
	uint32_t worker;
	uint64_t began_wall_ns; // since 1970
};

// What an operator was given between its parentheses.
struct access_arg {
	char *text; // owned; NULL = nothing
	unsigned char first, second; // what the operator made of it
};

struct access_operator {
	const char *name;
	// Reads arg->text. 0, or -EINVAL with reterr. NULL = it takes none.
	int (*read)(struct access_arg *, struct lb_err *reterr);
	void (*write)(struct access_line *, const struct access_view *, const struct access_arg *);
	bool is_number; // what it writes is one, or -
};

extern const struct access_operator access_operators[];
extern const size_t access_n_operators;

// A line without its newline.
void access_json_write(struct access_line *, const struct access_view *);
// The form of START_TIME without one of its own.
#define ACCESS_TIME_FORM "%Y-%m-%dT%H:%M:%S.%3fZ"
// strftime()'s conversions in UTC, %s, and %f or %1f to %9f for parts of a second.
void access_time_write(struct access_line *, const char *form, uint64_t wall_ns);
