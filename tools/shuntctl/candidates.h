// SPDX-License-Identifier: Apache-2.0
// What the last word of a line may be, as the daemon says (`complete`).
// Thread: any; one at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct candidates {
	char **list; // owned
	unsigned n;
	char rest[256]; // what all of them have behind what is there, and a blank behind a sole one
};

// False = there are none, or nobody says so.
[[nodiscard]] bool candidates_ask(
	struct candidates *, const char *socket, const char *line, size_t len);
void candidates_fini(struct candidates *);
