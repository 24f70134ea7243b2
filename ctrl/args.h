// SPDX-License-Identifier: Apache-2.0
// shuntd's command line.
// Thread: ctrl, before there are others.
#pragma once

#include <stdbool.h>

struct args {
	const char *config;
	const char *resources; // NULL = none
	bool check, device, json, takeover;
};

// Texts are borrowed from argv. A command line with an error, and one that asks for help, end the
// process.
void args_parse(int argc, char **argv, struct args *ret);
