// SPDX-License-Identifier: Apache-2.0
// What a listener asks for in the way of an access log (OPS-40).
// Thread: any. Plain data.
#pragma once

#include "ctrl/access_log/place.h"
#include "lb/base/time.h"

#include <stdbool.h>
#include <stdint.h>

enum access_form {
	ACCESS_TEXT,
	ACCESS_JSON_TYPED,
	ACCESS_JSON_STRINGS,
	ACCESS_ENTRY, // for a collector
};

struct lb_access_test;

// When entries are sent to a collector, where nothing else is said (Envoy's).
#define ACCESS_BATCH_BYTES 16384
#define ACCESS_BATCH_NS NS_PER_SECOND

#define ACCESS_FORMAT_MAX 4096 // bytes
#define ACCESS_WANTS_MAX 62 // of one listener, and of all that are not the same

struct access_want { // all borrowed
	const char *name; // for display
	struct access_place place; // what it is below is for shunt.yaml to say
	enum access_form form;
	const char *format; // ctrl/access_log/format.h and entry.h have what each form's is
	const struct lb_access_test *test; // NULL = all requests
};

// Of one that can't be, by its index. passes: there was no room for it, but may be later.
typedef void access_refused_fn(void *ctx, uint32_t index, const char *reason, bool passes);
