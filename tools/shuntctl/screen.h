// SPDX-License-Identifier: Apache-2.0
// What `shuntctl top` has on the screen.
// Thread: main.
#pragma once

#include "tools/shuntctl/rates.h"

enum screen_sort {
	SCREEN_BY_REQUESTS,
	SCREEN_BY_ERRORS,
	SCREEN_BY_ACTIVE,
	SCREEN_BY_P99,
	SCREEN_BY_NAME,
	SCREEN_N_SORTS,
};
// The sort that a key chooses, or SCREEN_N_SORTS.
enum screen_sort screen_sort_of(int key);

struct screen {
	const char *version, *state; // of the daemon
	double uptime_s;
	const struct rates *rates;
	enum screen_sort sort;
	const char *trouble; // why there is no answer; "" = there is one
};

void screen_draw(const struct screen *); // sorts the rates' clusters
