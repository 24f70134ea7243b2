// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/orca.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct record {
	uint64_t since_ns; // the first report of the series that blackout counts from
	uint64_t last_ns;
	float qps, eps, utilization;
	bool is_known; // there is a report
	bool in_series; // since_ns says something
	bool is_coming; // the next restart is none
};

struct lb_orca_table {
	struct record *records; // owned; [n]
	uint32_t n;
};

struct lb_orca_table *lb_orca_table_new(void)
{
	return calloc(1, sizeof(struct lb_orca_table));
}

void lb_orca_table_free(struct lb_orca_table *t)
{
	if (!t)
		return;
	free(t->records);
	free(t);
}

static bool grow(struct lb_orca_table *t, uint32_t member)
{
	if (member < t->n)
		return true;
	uint32_t n = t->n ? t->n : 64;
	while (n <= member)
		n *= 2;
	struct record *records = realloc(t->records, n * sizeof(records[0]));
	if (!records)
		return false;
	memset(records + t->n, 0, (n - t->n) * sizeof(records[0]));
	t->records = records;
	t->n = n;
	return true;
}

static bool is_positive(double x)
{
	return isfinite(x) && x > 0;
}

bool lb_orca_report(struct lb_orca_table *t, uint32_t member, const struct lb_orca_report *report,
	uint64_t now_ns)
{
	double utilization = is_positive(report->application_utilization)
	                             ? report->application_utilization
	                             : report->cpu_utilization;
	if (!is_positive(report->qps) || !is_positive(utilization) || !grow(t, member))
		return false;
	struct record *r = &t->records[member];
	r->qps = (float)report->qps;
	r->eps = is_positive(report->eps) ? (float)report->eps : 0;
	r->utilization = (float)utilization;
	r->last_ns = now_ns;
	if (!r->in_series)
		r->since_ns = now_ns;
	r->is_known = r->in_series = true;
	return true;
}

// A58-01.
static double weight_of(const struct record *r, double error_penalty)
{
	double qps = r->qps;
	double weight = qps / ((double)r->utilization + r->eps / qps * error_penalty);
	return is_positive(weight) ? weight : 0;
}

enum lb_orca_standing lb_orca_look(const struct lb_orca_table *t, uint32_t member,
	const struct lb_orca_conf *conf, uint64_t now_ns, double *ret_weight)
{
	const struct record *r = member < t->n ? &t->records[member] : NULL;
	*ret_weight = 0;
	if (!r || !r->is_known)
		return LB_ORCA_NONE;
	if (now_ns - r->last_ns >= conf->expiration_ns)
		return LB_ORCA_EXPIRED;
	if (conf->blackout_ns && (!r->in_series || now_ns - r->since_ns < conf->blackout_ns))
		return LB_ORCA_BLACKOUT;
	*ret_weight = weight_of(r, conf->error_penalty);
	return *ret_weight > 0 ? LB_ORCA_WEIGHT : LB_ORCA_NONE;
}

double lb_orca_weight(
	struct lb_orca_table *t, uint32_t member, const struct lb_orca_conf *conf, uint64_t now_ns)
{
	double weight;
	if (lb_orca_look(t, member, conf, now_ns, &weight) == LB_ORCA_EXPIRED)
		t->records[member].in_series = false; // A58-03: the next one starts blackout anew
	return weight;
}

void lb_orca_restart(struct lb_orca_table *t, uint32_t member)
{
	if (member >= t->n)
		return;
	struct record *r = &t->records[member];
	r->in_series &= r->is_coming;
	r->is_coming = false;
}

void lb_orca_bequeath(const struct lb_orca_table *t, uint32_t member, uint64_t now_ns,
	struct lb_orca_bequest *ret)
{
	*ret = (struct lb_orca_bequest){0};
	if (member >= t->n || !t->records[member].is_known)
		return;
	const struct record *r = &t->records[member];
	*ret = (struct lb_orca_bequest){.qps = r->qps,
		.eps = r->eps,
		.utilization = r->utilization,
		.last_ago_ns = now_ns - r->last_ns,
		.in_series = r->in_series,
		.since_ago_ns = r->in_series ? now_ns - r->since_ns : 0};
}

static uint64_t before(uint64_t now_ns, uint64_t ago_ns)
{
	return ago_ns < now_ns ? now_ns - ago_ns : 0;
}

bool lb_orca_inherit(struct lb_orca_table *t, uint32_t member, const struct lb_orca_bequest *from,
	bool is_coming, uint64_t now_ns)
{
	const struct lb_orca_report report = {
		.qps = from->qps, .eps = from->eps, .cpu_utilization = from->utilization};
	if ((member < t->n && t->records[member].is_known) ||
		!lb_orca_report(t, member, &report, before(now_ns, from->last_ago_ns)))
		return false;
	struct record *r = &t->records[member];
	r->in_series = from->in_series;
	r->since_ns = before(now_ns, from->since_ago_ns);
	r->is_coming = is_coming;
	return true;
}

void lb_orca_forget(struct lb_orca_table *t, uint32_t member)
{
	if (member < t->n)
		t->records[member] = (struct record){0};
}
