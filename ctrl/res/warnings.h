// SPDX-License-Identifier: Apache-2.0
// What of a resource is accepted, but perhaps not what its sender meant: for the log. Equal ones
// are one, with their number.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RES_WARNINGS_MAX 64 // different ones of one resource; more are only counted

struct res_warning {
	const char *text; // the same wherever it applies
	const char *where; // the first place: "virtual host \"v\": route 3"; "" = the resource
	uint32_t n; // places
};

struct res_warnings { // lives in the arena of the resource
	const struct res_warning *list;
	uint32_t n;
	bool told; // set by whoever logs them, so that many users of the resource don't repeat them
};
