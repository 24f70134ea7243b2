// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/notice.h"

#include "dataplane/proxy/orca.h"
#include "dataplane/proxy/state.h"
#include "lb/base/check.h"
#include "lb/link.h"
#include "lb/snapshot.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define PERIOD_NS UINT64_C(100000000)

int proxy_notices_init(struct proxy_notices *n)
{
	*n = (struct proxy_notices){0};
	// calloc leaves those of members that nobody tells of as untouched zero pages.
	n->by_member = calloc(LB_MAX_MEMBERS, sizeof(*n->by_member));
	return n->by_member ? 0 : -ENOMEM;
}

void proxy_notices_fini(struct proxy *p)
{
	twheel_cancel(p->wheel, &p->notices.period);
	free(p->notices.by_member);
}

static void append(
	struct proxy_notices *n, struct proxy_notice_list *l, uint32_t member, size_t next_offset)
{
	uint32_t *last = &l->head;
	if (l->tail)
		last = (uint32_t *)((uint8_t *)&n->by_member[l->tail - 1] + next_offset);
	*last = l->tail = member + 1;
}

void proxy_notice_wish(struct proxy *p, uint32_t member)
{
	struct proxy_notices *n = &p->notices;
	struct proxy_notice *m = &n->by_member[member];
	if (m->wished == p->snapshot->version || m->wish_listed)
		return;
	m->wished = p->snapshot->version;
	m->wish_listed = true;
	m->next_wish = 0;
	append(n, &n->wishes, member, offsetof(struct proxy_notice, next_wish));
}

static void period_over(struct twheel_timer *t)
{
	// The end of this turn looks at what has come.
}

static void keep_report(struct proxy *p, uint32_t member, const struct lb_orca_report *report)
{
	struct proxy_notices *n = &p->notices;
	struct proxy_notice *m = &n->by_member[member];
	m->report = *report;
	if (m->report_listed)
		return;
	m->report_listed = true;
	m->next_report = 0;
	append(n, &n->reports, member, offsetof(struct proxy_notice, next_report));
}

// A64, A85: each value of each request counts, so none can stand for another.
static void tell_metric(
	struct proxy *p, uint32_t load, const char *prefix, struct str name, double value)
{
	struct lb_event e = {.kind = LB_EVENT_METRIC, .load = load};
	e.metric.value = value;
	int len = snprintf(e.metric.name, sizeof(e.metric.name), "%s%.*s", prefix,
		name.len < INT_MAX ? (int)name.len : INT_MAX, name.p);
	// A name that is cut, or ends early, would be another one's.
	bool fits = len >= 0 && (size_t)len < sizeof(e.metric.name) &&
	            strlen(e.metric.name) == strlen(prefix) + name.len;
	if (!fits || !spsc_write(&p->link->events, &e))
		proxy_count(p, PROXY_METRICS_LOST);
}

struct metrics {
	struct proxy *proxy;
	uint32_t load;
};

static void on_named(void *ctx, struct str name, double value)
{
	const struct metrics *m = ctx;
	tell_metric(m->proxy, m->load, "named_metrics.", name, value);
}

static void tell_own(const struct metrics *m, struct str name, double value)
{
	if (value > 0)
		tell_metric(m->proxy, m->load, "", name, value);
}

void proxy_notice_report(struct proxy *p, uint32_t member, uint32_t load, bool is_wanted,
	const struct field *fields, size_t n_fields)
{
	struct metrics to = {p, load};
	const struct proxy_orca_listener listener = {on_named, &to};
	struct proxy_orca o;
	switch (proxy_orca_read(fields, n_fields, (char *)p->scratch, p->scratch_size, &o,
		load ? &listener : NULL)) {
	case PROXY_ORCA_NONE:
		return;
	case PROXY_ORCA_BAD:
		proxy_count(p, PROXY_REPORTS_BAD);
		return;
	case PROXY_ORCA_READ:
		break;
	}
	if (is_wanted)
		keep_report(p, member, &o.report);
	if (!load)
		return;
	tell_own(&to, STR("cpu_utilization"), o.report.cpu_utilization);
	tell_own(&to, STR("mem_utilization"), o.mem_utilization);
	tell_own(&to, STR("application_utilization"), o.report.application_utilization);
}

static bool tell_wishes(struct proxy *p)
{
	struct proxy_notices *n = &p->notices;
	while (n->wishes.head) {
		struct proxy_notice *m = &n->by_member[n->wishes.head - 1];
		const struct lb_event e = {.kind = LB_EVENT_WISH, .member = n->wishes.head - 1};
		if (!spsc_write(&p->link->events, &e))
			return false;
		m->wish_listed = false;
		n->wishes.head = m->next_wish;
		if (!n->wishes.head)
			n->wishes.tail = 0;
	}
	return true;
}

static bool tell_reports(struct proxy *p)
{
	struct proxy_notices *n = &p->notices;
	if (n->reports.head && !n->due.head && !twheel_armed(&n->period)) {
		n->due = n->reports;
		n->reports = (struct proxy_notice_list){0};
		n->period.fire = period_over;
		twheel_arm(p->wheel, &n->period, twheel_now(p->wheel) + PERIOD_NS);
	}
	while (n->due.head) {
		struct proxy_notice *m = &n->by_member[n->due.head - 1];
		const struct lb_event e = {
			.kind = LB_EVENT_ORCA, .member = n->due.head - 1, .orca = m->report};
		if (!spsc_write(&p->link->events, &e))
			return false;
		m->report_listed = false;
		n->due.head = m->next_report;
		if (!n->due.head)
			n->due.tail = 0;
	}
	return true;
}

bool proxy_notice_tell(struct proxy *p)
{
	return tell_wishes(p) && tell_reports(p);
}
