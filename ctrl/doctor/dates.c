// SPDX-License-Identifier: Apache-2.0
#include "ctrl/doctor/dates.h"

#include "ctrl/certs/pem.h"
#include "ctrl/doctor/report.h"

#include <stdbool.h>

#define DAY_S (24 * 3600)
#define SOON_S (7 * DAY_S)

void doctor_judge_end(
	struct doctor_report *r, const char *where, const struct cert_list *list, int64_t now_s)
{
	const struct cert_info *c = cert_list_first_to_end(list);
	int64_t left_s = c ? c->not_after_s - now_s : 0;
	if (!c || left_s > SOON_S)
		return;
	bool is_over = left_s <= 0;
	doctor_find(r, is_over ? DOCTOR_ERROR : DOCTOR_WARNING,
		"%s: %s %s %.1f days%s; peers refuse it%s", where, c->subject,
		is_over ? "expired" : "expires in", (double)(is_over ? -left_s : left_s) / DAY_S,
		is_over ? " ago" : "", is_over ? "" : " then");
	doctor_fix(r, "a new certificate in its file: it is read by itself");
}
