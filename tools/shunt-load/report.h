// SPDX-License-Identifier: Apache-2.0
// The results of a run, as text and as JSON.
// Thread: main.
#pragma once

#include "tools/shunt-load/client.h"
#include "tools/shunt-load/echo.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// The polling thread's time while answers were measured.
struct usage {
	uint64_t ns; // total
	uint64_t busy_ns[2]; // in turns with work: client, echo
	uint64_t cpu_ns; // CPU time of the thread; less than ns = others used the core
};

struct report {
	const struct client_result *client; // NULL = no client
	const struct echo_result *echo; // NULL = no echo backend
	struct usage usage;
	double rate; // asked for; 0 = closed loop
	uint64_t rx_missed, tx_dropped; // frames, lost by our own devices
};

void report_print(const struct report *, FILE *);
void report_print_json(const struct report *, FILE *);
// True if no request was lost, doubled or altered, by client and echo backend.
bool report_is_good(const struct report *);
