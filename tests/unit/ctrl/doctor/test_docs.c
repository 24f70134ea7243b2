// SPDX-License-Identifier: Apache-2.0
// docs/doctor.md: each check has one row there, in the order of the code, with what it looks at and
// the worst that it says, and no row speaks of anything else.
#include "ctrl/doctor/host.h"
#include "ctrl/doctor/live.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

#define MAX_ROW 512

// The next row of a check; false = there is none.
static bool next_row(FILE *in, char row[MAX_ROW])
{
	while (fgets(row, MAX_ROW, in))
		if (strncmp(row, "| `", 3) == 0)
			return true;
	return false;
}

static void expect_row(FILE *in, const char *id, enum doctor_severity worst, const char *looks_at)
{
	char row[MAX_ROW], expected[MAX_ROW];
	snprintf(expected, sizeof(expected), "| `%s` | %s | %s |\n", id,
		doctor_severity_name(worst), looks_at);
	if (!next_row(in, row))
		fail_msg("docs/doctor.md lacks: %s", expected);
	assert_string_equal(row, expected);
}

// OPS-130
static void each_check_has_its_row(void **state)
{
	char row[MAX_ROW];
	FILE *in = fopen(DOCS, "re");
	assert_non_null(in);
	for (const struct doctor_check *c = doctor_checks; c->id; c++)
		expect_row(in, c->id, c->worst, c->looks_at);
	for (const struct doctor_live_check *c = doctor_live_checks; c->id; c++)
		expect_row(in, c->id, c->worst, c->looks_at);
	if (next_row(in, row))
		fail_msg("docs/doctor.md has what no check does: %s", row);
	fclose(in);
}

static void no_two_checks_have_one_id(void **state)
{
	for (const struct doctor_check *c = doctor_checks; c->id; c++) {
		for (const struct doctor_check *d = doctor_checks; d != c; d++)
			assert_string_not_equal(c->id, d->id);
		for (const struct doctor_live_check *d = doctor_live_checks; d->id; d++)
			assert_string_not_equal(c->id, d->id);
	}
}

RUN_SUITE("ctrl/doctor/docs", cmocka_unit_test(each_check_has_its_row),
	cmocka_unit_test(no_two_checks_have_one_id))
