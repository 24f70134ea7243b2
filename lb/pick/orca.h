// SPDX-License-Identifier: Apache-2.0
// Weights from backends' load reports (gRFC A58; A58-01, A58-03): the last report of each member,
// and when its reports began. It does not decide who gets the reports.
// Thread: ctrl. Time is passed in.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_orca_table; // by lb_member_id

struct lb_orca_report {
	double qps, eps; // requests and failures per second
	double application_utilization, cpu_utilization;
};

struct lb_orca_conf { // configuration of a policy
	double error_penalty; // >= 0
	uint64_t blackout_ns, expiration_ns;
};

struct lb_orca_table *lb_orca_table_new(void); // NULL = out of memory
void lb_orca_table_free(struct lb_orca_table *); // NULL is fine
// Stores a report. Returns false if the report contains nothing usable, or if out of memory.
bool lb_orca_report(
	struct lb_orca_table *, uint32_t member, const struct lb_orca_report *, uint64_t now_ns);
// The weight to use now; 0 = none: never reported, blackout period, or expired.
double lb_orca_weight(
	struct lb_orca_table *, uint32_t member, const struct lb_orca_conf *, uint64_t now_ns);
// The same for display; changes nothing.
enum lb_orca_standing {
	LB_ORCA_NONE, // never reported, or reported nothing that gives a weight
	LB_ORCA_BLACKOUT,
	LB_ORCA_EXPIRED,
	LB_ORCA_WEIGHT,
};
enum lb_orca_standing lb_orca_look(const struct lb_orca_table *, uint32_t member,
	const struct lb_orca_conf *, uint64_t now_ns, double *ret_weight); // 0 unless WEIGHT
// The member is READY again: the blackout period restarts with its next report.
void lb_orca_restart(struct lb_orca_table *, uint32_t member);
// What is known of a member, as another process can go on with it: times are ages.
struct lb_orca_bequest { // zero = nothing
	float qps, eps, utilization; // as of the last report; qps > 0: there is one
	uint64_t last_ago_ns;
	bool in_series; // since_ago_ns says when the reports that blackout counts from began
	uint64_t since_ago_ns;
};
void lb_orca_bequeath(const struct lb_orca_table *, uint32_t member, uint64_t now_ns,
	struct lb_orca_bequest *ret);
// Of a member without a report. is_coming: it is about to become READY here for the first time, as
// it was at the other process, which is no restart. False = unusable, or out of memory.
bool lb_orca_inherit(struct lb_orca_table *, uint32_t member, const struct lb_orca_bequest *,
	bool is_coming, uint64_t now_ns);
void lb_orca_forget(struct lb_orca_table *, uint32_t member); // call before its id is reused
