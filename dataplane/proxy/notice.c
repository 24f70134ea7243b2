// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/notice.h"

#include "dataplane/proxy/orca.h"
#include "dataplane/proxy/state.h"
#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "lb/pick/link.h"
#include "lb/pick/metrics.h"
#include "lb/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_NS (100 * NS_PER_MS)

int proxy_notices_init(struct proxy_notices *n)
{
	*n = (struct proxy_notices){0};
	// calloc leaves those of members that nobody tells of as untouched zero pages.
	n->by_member = cacheline_alloc(LB_MAX_MEMBERS, sizeof(*n->by_member));
	return n->by_member ? 0 : -ENOMEM;
}

void proxy_notices_fini(struct proxy *p)
{
	twheel_cancel(p->wheel, &p->notices.period);
	cacheline_free(p->notices.by_member);
}

static void append(
	struct proxy_notices *n, struct proxy_notice_list *l, uint32_t member, size_t next_offset)
{
	uint32_t *last = &l->head;
	if (l->tail)
		last = (uint32_t *)((uint8_t *)&n->by_member[l->tail - 1] + next_offset);
	*last = l->tail = member + 1;
}

void proxy_notice_connect_request(struct proxy *p, uint32_t member)
{
	struct proxy_notices *n = &p->notices;
	struct proxy_notice *m = &n->by_member[member];
	if (m->connect_requested == p->snapshot->version || m->connect_listed)
		return;
	m->connect_requested = p->snapshot->version;
	m->connect_listed = true;
	m->next_connect = 0;
	append(n, &n->connects, member, offsetof(struct proxy_notice, next_connect));
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

// How much of one report is looked at and told: a backend may fill a header block with names.
#define LOOKED_AT_MAX 256
#define TOLD_MAX 16

struct metrics {
	struct proxy *proxy;
	const struct proxy_notice_to *to;
	uint32_t n_seen, n_told;
};

// What endpoints become may not wait for this (lb/pick/link.h).
static bool tell_if_room(struct proxy *p, const struct lb_event *e)
{
	struct spsc *events = &p->link->events;
	return 2 * (uint64_t)spsc_room(events) > events->mask + UINT64_C(1) &&
	       spsc_write(events, e);
}

#define NEIGHBOR_NS NS_PER_SECOND
#define NEIGHBOR_MAX 100 // in this time

void proxy_notice_neighbor(struct proxy *p, const struct ip_addr *ip)
{
	struct proxy_notices *n = &p->notices;
	if (p->now_ns - n->neighbors_since_ns >= NEIGHBOR_NS) {
		n->neighbors_since_ns = p->now_ns;
		n->n_neighbors = 0;
	}
	struct lb_event e = {.kind = LB_EVENT_NEIGHBOR, .neighbor = *ip};
	if (n->n_neighbors++ < NEIGHBOR_MAX)
		(void)tell_if_room(p, &e);
}

static void lose_metric(struct metrics *m)
{
	proxy_count(m->proxy, PROXY_metrics_lost);
}

// A64, A85: each value of each request counts, so none can stand for another.
static void tell_metric(struct metrics *m, uint32_t index, struct str name, double value)
{
	struct lb_event e = {.kind = LB_EVENT_METRIC, .load = m->to->load};
	e.metric.value = value;
	e.metric.list = m->to->metrics->list;
	e.metric.index = index;
	if (m->n_told++ >= TOLD_MAX || name.len >= sizeof(e.metric.name) ||
		memchr(name.p, '\0', name.len)) {
		lose_metric(m);
		return;
	}
	memcpy(e.metric.name, name.p, name.len);
	if (!tell_if_room(m->proxy, &e))
		lose_metric(m);
}

static void on_named(void *ctx, struct str name, double value)
{
	struct metrics *m = ctx;
	if (m->n_seen++ >= LOOKED_AT_MAX) {
		if (m->n_seen == LOOKED_AT_MAX + 1)
			lose_metric(m);
		return;
	}
	uint32_t index = lb_metrics_find(m->to->metrics, name);
	if (index != LB_METRIC_NONE)
		tell_metric(m, index, STR(""), value);
	else if (m->to->metrics->all_named)
		tell_metric(m, LB_METRIC_NONE, name, value);
}

static void tell_own(struct metrics *m, enum lb_metric which, double value)
{
	if (value > 0 && lb_metrics_has(m->to->metrics, which))
		tell_metric(m, which, STR(""), value);
}

void proxy_notice_report(struct proxy *p, const struct proxy_notice_to *to,
	const struct field *fields, size_t n_fields)
{
	struct metrics m = {.proxy = p, .to = to};
	const struct proxy_orca_listener listener = {on_named, &m};
	struct proxy_orca o;
	switch (proxy_orca_read(fields, n_fields, (char *)p->scratch.bytes, p->scratch.size, &o,
		to->metrics ? &listener : NULL)) {
	case PROXY_ORCA_NONE:
		return;
	case PROXY_ORCA_BAD:
		proxy_count(p, PROXY_reports_bad);
		return;
	case PROXY_ORCA_READ:
		break;
	}
	if (to->is_wanted)
		keep_report(p, to->member, &o.report);
	if (!to->metrics)
		return;
	m.n_told = 0; // these are few
	tell_own(&m, LB_METRIC_CPU, o.report.cpu_utilization);
	tell_own(&m, LB_METRIC_MEM, o.mem_utilization);
	tell_own(&m, LB_METRIC_APPLICATION, o.report.application_utilization);
}

static bool tell_connect_requests(struct proxy *p)
{
	struct proxy_notices *n = &p->notices;
	while (n->connects.head) {
		struct proxy_notice *m = &n->by_member[n->connects.head - 1];
		const struct lb_event e = {
			.kind = LB_EVENT_CONNECT_REQUEST, .member = n->connects.head - 1};
		if (!spsc_write(&p->link->events, &e))
			return false;
		m->connect_listed = false;
		n->connects.head = m->next_connect;
		if (!n->connects.head)
			n->connects.tail = 0;
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
	return tell_connect_requests(p) && tell_reports(p);
}
