// SPDX-License-Identifier: Apache-2.0
// Clusters whose requests fail at once, endpoints that those which serve do without, and clusters
// whose backends answer that they fail. There may be many: a step looks at a cluster, or at some
// endpoints of one. Between steps they may come and go, so that the walk goes on behind a name.
#include "ctrl/assemble/assemble.h"
#include "ctrl/doctor/counts.h"
#include "ctrl/doctor/live.h"
#include "lb/base/ip.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/cause.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 32 // endpoints in a step
#define MANY_BAD 20 // answers that blame the server: fewer may be an accident

// One that is merely not connected is tried, or not needed.
static bool is_wrong(const struct assembler_endpoint_info *e)
{
	return e->is_failing || e->is_ejected || e->record.health.health == LB_MEMBER_UNHEALTHY;
}

static void note_name(struct doctor_tally *t, const struct assembler_endpoint_info *e)
{
	size_t len = strlen(t->names);
	if (t->n_wrong > DOCTOR_N_NAMES)
		return;
	snprintf(t->names + len, sizeof(t->names) - len, "%s", len ? ", " : "");
	len = strlen(t->names);
	ip_port_print(&e->addresses[0], t->names + len);
}

static void count_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	struct doctor_tally *t = ctx;
	bool is_unhealthy = e->record.health.health == LB_MEMBER_UNHEALTHY;
	t->n++;
	t->n_reachable += e->state == LB_READY;
	if (!is_wrong(e))
		return;
	t->n_wrong++;
	if (e->state == LB_TRANSIENT_FAILURE || (!e->is_ejected && !is_unhealthy))
		t->n_unreachable++;
	else if (e->is_ejected)
		t->n_ejected++;
	else
		t->n_unhealthy++;
	note_name(t, e);
	if (!t->error[0])
		snprintf(t->error, sizeof(t->error), "%s", e->last_error);
}

// The name is of the xDS server's choice: what a shell would read otherwise is not put into a
// command.
static const char *name_for_command(const char *name)
{
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-_./:", *p))
			return NULL;
	return name[0] == '-' ? NULL : name;
}

static void point_at(const struct doctor_live *l, const char *cluster)
{
	const char *name = name_for_command(cluster);
	doctor_fix(l->report, "shuntctl show endpoints%s%s", name ? " cluster=" : "",
		name ? name : "");
}

// What a request would hear, without the name that stands before it already.
static const char *reason_of(const struct assembler_cluster_info *c)
{
	static const char prefix[] = "cluster ";
	const char *p = c->detail;
	size_t begin = strlen(prefix), len = strlen(c->name);
	if (strncmp(p, prefix, begin) == 0 && strncmp(p + begin, c->name, len) == 0 &&
		strncmp(p + begin + len, ": ", 2) == 0)
		return p + begin + len + 2;
	return p;
}

static void tell_failing(const struct doctor_live *l, const struct assembler_cluster_info *c)
{
	const struct doctor_tally *t = &l->walk.tally;
	if (!t->n) {
		doctor_find(l->report, DOCTOR_ERROR,
			"cluster %s fails: requests to it fail at once; it has no endpoints; %s",
			c->name, reason_of(c));
		doctor_fix(l->report, "its resources on the xDS server: shuntctl show xds");
		return;
	}
	doctor_find(l->report, DOCTOR_ERROR,
		"cluster %s fails: requests to it fail at once; %u of %u endpoints reachable; "
		"last: %s",
		c->name, t->n_reachable, t->n, t->error[0] ? t->error : reason_of(c));
	point_at(l, c->name);
}

static void tell_endpoints(const struct doctor_live *l, const struct assembler_cluster_info *c)
{
	const struct doctor_tally *t = &l->walk.tally;
	if (!t->n_wrong)
		return;
	doctor_find(l->report, DOCTOR_WARNING,
		"cluster %s: %u of %u endpoints get no requests: %u cannot be connected to, %u "
		"ejected, %u unhealthy (%s%s)%s%s; the others carry all there is",
		c->name, t->n_wrong, t->n, t->n_unreachable, t->n_ejected, t->n_unhealthy, t->names,
		t->n_wrong > DOCTOR_N_NAMES ? ", ..." : "", t->error[0] ? "; first: " : "",
		t->error);
	point_at(l, c->name);
}

// True = there is another cluster.
static bool go_on(struct doctor_live *l)
{
	struct doctor_walk *w = &l->walk;
	const char *next = assembler_cluster_after(l->assembler, w->cluster ? w->cluster : "");
	char *name = next ? strdup(next) : NULL;
	if (next && !name)
		doctor_find(l->report, DOCTOR_WARNING,
			"out of memory; what is wrong with further clusters is not told");
	doctor_walk_fini(w);
	w->cluster = name;
	return name;
}

static bool is_failing(const struct assembler_cluster_info *c)
{
	return c->state == LB_TRANSIENT_FAILURE;
}

// One that is in no configuration any more is no fault.
static bool step(struct doctor_live *l, bool wants_failing,
	void (*tell)(const struct doctor_live *, const struct assembler_cluster_info *))
{
	struct doctor_walk *w = &l->walk;
	struct assembler_cluster_info c;
	if (w->cluster && assembler_find_without_endpoints(l->assembler, w->cluster, &c) &&
		!c.leaving && is_failing(&c) == wants_failing) {
		if (assembler_some_endpoints(l->assembler, w->cluster, w->tally.n, AT_ONCE,
			    count_endpoint, &w->tally) == AT_ONCE)
			return true;
		tell(l, &c);
	}
	return go_on(l);
}

bool live_step_clusters(struct doctor_live *l)
{
	return step(l, true, tell_failing);
}

bool live_step_endpoints(struct doctor_live *l)
{
	return step(l, false, tell_endpoints);
}

static bool count_cluster(const struct doctor_live *l, struct counts_row *ret)
{
	struct assembler_cluster_info c;
	if (!l->walk.cluster ||
		!assembler_find_without_endpoints(l->assembler, l->walk.cluster, &c) || c.leaving)
		return false;
	*ret = (struct counts_row){.name = l->walk.cluster,
		.at_ns = twheel_now(l->wheel),
		.requests = c.totals.started,
		.ok = c.totals.ended[LB_CAUSE_OK],
		.failed = lb_cause_failures(c.totals.ended),
		.bad = c.totals.bad};
	return true;
}

bool doctor_live_note_step(struct doctor_live *l, struct counts *to)
{
	struct counts_row row;
	if (!l->walk.cluster)
		doctor_report_begin(l->report, "answers"); // go_on() may have to say something
	if (!count_cluster(l, &row) || counts_add(to, &row) == 0)
		return go_on(l);
	doctor_find(l->report, DOCTOR_WARNING,
		"out of memory; what clusters are answered is not told of all");
	doctor_walk_fini(&l->walk);
	return false;
}

static void tell_answers(const struct doctor_live *l, const struct counts_row *now)
{
	const struct counts_row *was = counts_find(l->before_clusters, now);
	uint64_t n = was ? now->ok - was->ok : 0, n_bad = was ? now->bad - was->bad : 0;
	if (n_bad > n) // these are counted a turn later, so that some may be of before
		n_bad = n;
	if (n_bad < MANY_BAD || n_bad * 2 < n)
		return;
	const char *name = name_for_command(now->name);
	doctor_find(l->report, DOCTOR_WARNING,
		"cluster %s: %" PRIu64 " of %" PRIu64 " answers of its backends within %.1f s "
		"blame the server (5xx, or such a status of gRPC); clients hear them as they are",
		now->name, n_bad, n, (double)(now->at_ns - was->at_ns) / (double)NS_PER_SECOND);
	doctor_fix(l->report, "shuntctl show failures cause=answered%s%s", name ? " cluster=" : "",
		name ? name : "");
}

bool live_step_answers(struct doctor_live *l)
{
	struct counts_row now;
	if (!l->before_clusters)
		return false;
	if (count_cluster(l, &now))
		tell_answers(l, &now);
	return go_on(l);
}

void doctor_walk_fini(struct doctor_walk *w)
{
	free(w->cluster);
	*w = (struct doctor_walk){.cluster = NULL};
}
