// SPDX-License-Identifier: Apache-2.0
// When certificates end, as an operator has to know it.
// Thread: any.
#pragma once

#include <stdint.h>

struct cert_list;
struct doctor_report;

// Finds an error if the first of the list to end has ended by now_s (Unix time), a warning if it
// soon will. where: what has it, in front of its name.
void doctor_judge_end(
	struct doctor_report *, const char *where, const struct cert_list *, int64_t now_s);
