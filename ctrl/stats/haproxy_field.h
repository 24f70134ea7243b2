// SPDX-License-Identifier: Apache-2.0
// Fields as HAProxy's `show info` and `show stat` tell them: a list that never changes its order,
// of which a row has some, in three forms (its management guide, 9.1 to 9.3).
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum haproxy_form {
	HAPROXY_PLAIN, // a line of CSV, or "Name: value" lines of the process
	HAPROXY_TYPED, // a line for each value, with what it is
	HAPROXY_JSON, // an object for each value, in an array
};

struct haproxy_field {
	const char *name;
	// Origin (Metric, Status, Key, Config, Product), nature (Gauge, Limit, Max, Rate, Counter,
	// Duration, Age, Name, Output, average) and scope (Process, Service), a letter each.
	const char *tags;
	const char *type; // "u32", "u64", "str"
};

struct haproxy_value { // all zero = none
	const char *text; // borrowed; NULL = the number
	const char *tags; // in place of the field's; NULL = these
	bool is_set;
	uint64_t number;
};

static inline void haproxy_set(struct haproxy_value *v, uint64_t number)
{
	*v = (struct haproxy_value){.is_set = true, .number = number};
}
static inline void haproxy_set_text(struct haproxy_value *v, const char *text)
{
	*v = (struct haproxy_value){.is_set = true, .text = text};
}

struct haproxy_row {
	const struct haproxy_field *fields; // borrowed
	const struct haproxy_value *values; // as many; borrowed
	uint32_t n;
	// Whose they are: "Frontend", "Backend", "Server"; NULL = the process's.
	const char *object;
	uint32_t iid, sid;
};

// Control characters in texts are escaped, so that each line stays one.
void haproxy_row_print(FILE *, const struct haproxy_row *, enum haproxy_form);
