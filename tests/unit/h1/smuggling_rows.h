// SPDX-License-Identifier: Apache-2.0
// Reads smuggling.rows. Not a test.
// Thread: the test's.
#pragma once

#include <stddef.h>

struct smuggling_row {
	char rule[8], verdict[16], name[80];
	char *bytes; // owned by the reader; valid until the next row
	size_t len;
};

struct smuggling_rows;

// CHECKs that the file is there.
struct smuggling_rows *smuggling_rows_open(const char *path);
// The next row, or NULL at the end. CHECKs its form.
const struct smuggling_row *smuggling_rows_next(struct smuggling_rows *);
void smuggling_rows_close(struct smuggling_rows *);
