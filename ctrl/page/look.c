// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics/scrape.h"
#include "ctrl/page/look_inside.h"
#include "ctrl/stats/show.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Findings are of lately. A page without JavaScript looks each 10 s.
#define LATELY_NS (15 * NS_PER_SECOND)

// The steps, one after the other.

static int write_step(struct look *l)
{
	static void (*const parts[])(struct look *) = {look_write_top, look_write_findings,
		look_write_frontends, look_write_clusters, look_write_endpoints,
		look_write_failures, look_write_failed_answers, look_write_events,
		look_write_servers, look_write_resources, look_write_workers, look_write_pools,
		look_write_certificates, look_write_end};
	if (!l->out && !(l->out = open_memstream(&l->text, &l->len)))
		return -ENOMEM;
	parts[l->at++](l);
	if (l->at < sizeof(parts) / sizeof(parts[0]))
		return 1;
	bool is_whole = !ferror(l->out);
	is_whole = fclose(l->out) == 0 && is_whole;
	l->out = NULL;
	return is_whole && !l->failed ? 0 : -ENOMEM;
}

static int examine_step(struct look *l)
{
	if (!doctor_live_step(&l->live))
		l->step = write_step;
	return 1;
}

static int xds_step(struct look *l)
{
	l->xds = xds_note_new(l->from->xds);
	if (!l->xds)
		return -ENOMEM;
	look_note_resources(l);
	doctor_live_sample(&l->live, &l->live.now);
	l->live.before = l->before ? l->before->sample : l->live.now;
	l->past->sample = l->live.now;
	if (l->before && l->past->at_ns - l->before->at_ns <= LATELY_NS) {
		l->before->counts[LOAD_CLUSTER].at = 0;
		l->live.before_clusters = &l->before->counts[LOAD_CLUSTER];
	}
	l->step = l->from->xds ? examine_step : write_step;
	return 1;
}

static int load_step(struct look *l)
{
	int more = load_walk_step(l->walk);
	if (more)
		return l->failed ? -ENOMEM : more;
	l->step = xds_step;
	return 1;
}

int look_step(struct look *l)
{
	int more = l->step(l);
	return l->failed ? -ENOMEM : more;
}

static bool start(struct look *l, const char *cluster)
{
	struct load_reader reader = look_load_reader;
	reader.ctx = l;
	if (cluster && !(l->cluster = strdup(cluster)))
		return false;
	l->past = calloc(1, sizeof(*l->past));
	l->walk = load_walk_new(l->show, &reader, cluster);
	bool has_report = doctor_report_init(&l->report);
	l->live = show_doctor_live(l->show, &l->report);
	return look_note_init(l) && l->past && l->walk && has_report;
}

struct look *look_new(const struct show *show, const char *cluster, struct look_past *before)
{
	struct look *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->show = show;
	l->from = show_scrape_conf(show);
	l->before = before;
	l->step = load_step;
	l->requests_s = l->failed_s = -1;
	if (start(l, cluster)) {
		l->past->at_ns = twheel_now(l->from->wheel);
		for (int i = 0; before && i < LOAD_N_KINDS; i++)
			before->counts[i].at = 0;
		return l;
	}
	look_free(l);
	return NULL;
}

void look_past_free(struct look_past *p)
{
	for (int i = 0; p && i < LOAD_N_KINDS; i++)
		counts_fini(&p->counts[i]);
	free(p);
}

void look_free(struct look *l)
{
	if (!l)
		return;
	if (l->out)
		fclose(l->out);
	free(l->text);
	free(l->title);
	look_note_fini(l);
	doctor_live_fini(&l->live);
	doctor_report_fini(&l->report);
	xds_note_free(l->xds);
	load_walk_free(l->walk);
	look_past_free(l->past);
	free(l->cluster);
	free(l);
}

char *look_take_text(struct look *l, size_t *ret_len)
{
	char *text = l->text;
	*ret_len = l->len;
	l->text = NULL;
	return text;
}

char *look_take_title(struct look *l)
{
	char *title = l->title;
	l->title = NULL;
	return title;
}

struct look_past *look_take_past(struct look *l)
{
	struct look_past *past = l->past;
	l->past = NULL;
	return past;
}
