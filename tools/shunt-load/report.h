// SPDX-License-Identifier: Apache-2.0
// What a run comes to, for people and for programs.
// Thread: main.
#pragma once

#include "tools/shunt-load/client.h"
#include "tools/shunt-load/echo.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Where the polling thread's time went, while answers were measured.
struct usage {
	uint64_t ns; // in all
	uint64_t busy_ns[2]; // in turns that did something: client, echo
	uint64_t cpu_ns; // that the kernel gave the thread; less than ns = others used the core
};

struct report {
	const struct client_result *client; // NULL = there was none
	const struct echo_result *echo; // NULL = there was none
	struct usage usage;
	double rate; // asked for; 0 = closed loop
	uint64_t rx_missed, tx_dropped; // frames, by our own devices
};

void report_print(const struct report *, FILE *);
void report_print_json(const struct report *, FILE *);
// Nothing was lost, doubled or altered: of what was asked, and of what came.
bool report_is_good(const struct report *);
