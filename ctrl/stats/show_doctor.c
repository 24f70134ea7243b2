// SPDX-License-Identifier: Apache-2.0
// `doctor`: what is wrong with this daemon and its host (docs/doctor.md). Counters are looked at
// twice, a second apart, those of clusters in slices, while a process of its own examines the host;
// then the daemon is examined, in slices, too, and the answer comes.
#include "ctrl/doctor/counts.h"
#include "ctrl/doctor/live.h"
#include "ctrl/stats/answer.h"
#include "ctrl/stats/host_look.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <event2/buffer.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct doctoring {
	struct stats_follow follow;
	const struct show *show;
	struct doctor_report report;
	struct doctor_live live;
	struct counts clusters; // at the first look
	uint64_t noted_ns; // when that was over; 0 = it is under way
	bool host_looks; // the process is at work
	bool is_sampled; // the second time
	bool json;
};

static void tell_unexamined(struct doctoring *d, const char *why)
{
	doctor_report_begin(&d->report, "host");
	doctor_find(&d->report, DOCTOR_WARNING,
		"the host could not be examined: %s; what is wrong with it is not told", why);
	doctor_fix(&d->report, "shuntd --check --device -c %s", d->show->conf.config_path);
}

static void look_at_host(struct doctoring *d)
{
	json_t *tree = NULL;
	struct lb_err err = {.text = ""};
	int rc = host_look_poll(d->show->host, twheel_now(d->show->conf.wheel), &tree, &err);
	if (rc == -EAGAIN)
		return;
	d->host_looks = false;
	if (rc || !doctor_report_add(&d->report, tree))
		tell_unexamined(d, rc ? err.text : "it says nothing of use");
	json_decref(tree);
}

static char *print(const struct doctoring *d)
{
	json_t *tree = doctor_report_json(&d->report);
	char *text = !tree ? NULL : d->json ? answer_json(tree) : doctor_report_text(tree);
	json_decref(tree);
	return text ? text : answer_error("%s", "out of memory");
}

// A slice of the first look.
static void note(struct doctoring *d)
{
	struct slice slice = d->show->conf.slice;
	slice_begin(&slice);
	do
		if (!doctor_live_note_step(&d->live, &d->clusters))
			d->noted_ns = twheel_now(d->show->conf.wheel);
	while (!d->noted_ns && !slice_over(&slice));
	d->follow.is_soon = !d->noted_ns;
}

static bool is_time(const struct doctoring *d)
{
	return d->noted_ns && twheel_now(d->show->conf.wheel) >= d->noted_ns + NS_PER_SECOND;
}

// A slice. False = all is done.
static bool examine(struct doctoring *d)
{
	struct slice slice = d->show->conf.slice;
	slice_begin(&slice);
	do
		if (!doctor_live_step(&d->live))
			return false;
	while (!slice_over(&slice));
	return true;
}

static bool more(struct stats_follow *f, struct evbuffer *out)
{
	struct doctoring *d = CONTAINER_OF(f, struct doctoring, follow);
	if (d->host_looks)
		look_at_host(d);
	if (!d->noted_ns)
		note(d);
	if (d->host_looks || !is_time(d))
		return true;
	if (!d->is_sampled)
		doctor_live_sample(&d->live, &d->live.now);
	d->is_sampled = d->follow.is_soon = true;
	if (examine(d))
		return true;
	answer_append(out, print(d));
	return false;
}

static void doctoring_free(struct stats_follow *f)
{
	struct doctoring *d = CONTAINER_OF(f, struct doctoring, follow);
	if (d->host_looks)
		host_look_end(d->show->host);
	doctor_live_fini(&d->live);
	doctor_report_fini(&d->report);
	counts_fini(&d->clusters);
	free(d);
}

struct doctor_live show_doctor_live(const struct show *s, struct doctor_report *report)
{
	const struct show_conf *c = &s->conf;
	return (struct doctor_live){
		.config = c->config,
		.workers = c->workers,
		.assembler = c->assembler,
		.xds = c->xds,
		.keeper = c->keeper,
		.certs = c->certs,
		.access_log = c->access_log,
		.ports = c->ports,
		.sockets = &s->sockets,
		.wheel = c->wheel,
		.now_s = c->wall_ns ? (int64_t)(c->wall_ns() / NS_PER_SECOND) : 0,
		.waiting = c->waiting,
		.refused = c->refused,
		.ctx = c->ctx,
		.report = report,
	};
}

json_t *show_doctor(const struct show *s, struct show_args *args)
{
	int rc = s->host ? host_look_begin(s->host, twheel_now(s->conf.wheel)) : 0;
	if (rc == -EBUSY) {
		lb_err_set(&args->err, "another examination is under way, try again");
		return NULL;
	}
	struct doctoring *d = calloc(1, sizeof(*d));
	if (!d || !doctor_report_init(&d->report)) {
		if (s->host && rc == 0)
			host_look_end(s->host);
		free(d);
		return NULL;
	}
	d->follow = (struct stats_follow){more, doctoring_free, false};
	d->show = s;
	d->json = args->json;
	d->host_looks = s->host && rc == 0;
	d->live = show_doctor_live(s, &d->report);
	d->live.before_clusters = &d->clusters;
	doctor_live_sample(&d->live, &d->live.before);
	note(d);
	if (rc)
		tell_unexamined(d, strerror(-rc));
	args->follow = &d->follow;
	return NULL;
}
