// SPDX-License-Identifier: Apache-2.0
// Warnings for the log about accepted parts of a resource that its sender may have meant
// differently. Equal warnings are one, with a count.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RES_WARNINGS_MAX 64 // different ones of one resource; more are only counted

struct res_warning {
	const char *text; // the same at all places
	const char *where; // the first place: "virtual host \"v\": route 3"; "" = the resource
	uint32_t n; // number of places
};

struct res_warnings { // lives in the arena of the resource
	const struct res_warning *list;
	uint32_t n;
	bool told; // set when logged, so that several users of the resource do not repeat them
};
