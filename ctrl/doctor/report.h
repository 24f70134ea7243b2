// SPDX-License-Identifier: Apache-2.0
// What an examination found (docs/doctor.md): each finding has a severity, the id of the check,
// what is so and what it means, and a fix. Also how it is told, as JSON and as lines.
// Thread: any; a report belongs to its owner.
#pragma once

#include <jansson.h>

#include <stdbool.h>

enum doctor_severity { DOCTOR_NOTE, DOCTOR_WARNING, DOCTOR_ERROR };
const char *doctor_severity_name(enum doctor_severity);

#define DOCTOR_MAX_OF_CHECK 10 // findings of one check; those beyond are counted

struct doctor_report {
	json_t *findings; // owned
	const char *check; // that looks now; doctor_report_begin() says which
	unsigned n_of_check;
	json_t *last; // the last finding; NULL = it was left out
	unsigned n_errors, n_warnings, n_notes;
	unsigned n_left_out; // of these
};

[[nodiscard]] bool doctor_report_init(struct doctor_report *); // false = out of memory
void doctor_report_fini(struct doctor_report *);

// What is found from now on is of this check, a static text.
void doctor_report_begin(struct doctor_report *, const char *check);
// A finding: "what is so; what it means". What is no UTF-8, or would move a terminal's cursor, is
// replaced.
void doctor_find(struct doctor_report *, enum doctor_severity, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
// The command, or the line of a file, that mends the last finding.
void doctor_fix(struct doctor_report *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Takes over the findings of another examination, as doctor_report_json() told them. False = the
// tree is something else.
[[nodiscard]] bool doctor_report_add(struct doctor_report *, const json_t *tree);

// 0 = all is well, but for notes; 1 = there are warnings; 2 = errors.
int doctor_report_status(const struct doctor_report *);
// {"status":…,"errors":…,"warnings":…,"notes":…,"findings":[…]}, the worst first. NULL = out of
// memory.
json_t *doctor_report_json(const struct doctor_report *);
// The same as lines, from malloc: a line a finding, and a last one that counts them.
char *doctor_report_text(const json_t *tree);
