// SPDX-License-Identifier: Apache-2.0
// Tables of resources and what becomes of them: one row a rule.
// Thread: the test's.
#pragma once

#include <stddef.h>

struct xds_bootstrap;
struct xds_type;

extern const struct xds_bootstrap res_rows_bootstrap; // with the certificate provider "p"

struct res_row {
	const char *rule; // spec id and what the row is about
	const char *json; // with ' for "
	// NULL = accepted. "=…" = refused with exactly this text, else a part of it.
	const char *refused;
	// Of an accepted one: its only warning; NULL = there is none.
	const char *warning;
	// Of an accepted route configuration: why its only ignored route is; NULL = none is.
	const char *ignored;
};

void res_rows_run(const struct xds_type *, const struct res_row *, size_t n);
#define RUN_ROWS(type, rows) res_rows_run(type, rows, sizeof(rows) / sizeof((rows)[0]))
