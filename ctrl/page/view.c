// SPDX-License-Identifier: Apache-2.0
#include "ctrl/page/view.h"

#include "ctrl/page/look.h"
#include "lb/base/container_of.h"
#include "lb/base/twheel.h"

#include <event2/event.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct view {
	struct view_conf conf;
	char *cluster; // owned; NULL = all
	struct look *look; // owned; NULL = none is under way
	struct look_past *past; // owned; NULL = none
	char *text, *title; // owned
	size_t len;
	uint64_t at_ns; // of the text
	uint64_t spent_ns; // by the look, of the thread's time
	bool is_followed;
	struct event *again; // owned: fires when the next slice is due
	struct twheel_timer timer; // the next look, or the end
};

static uint64_t pause_ns(const struct view *v)
{
	uint64_t fair_ns = v->spent_ns * (VIEW_SHARE - 1);
	return fair_ns < VIEW_ROUND_NS        ? VIEW_ROUND_NS
	       : fair_ns > VIEW_MOST_ROUND_NS ? VIEW_MOST_ROUND_NS
	                                      : fair_ns;
}

static void wait_on(struct view *v)
{
	uint64_t now_ns = twheel_now(v->conf.wheel);
	if (!v->look)
		twheel_arm(v->conf.wheel, &v->timer,
			now_ns + (v->is_followed ? pause_ns(v) : VIEW_KEPT_NS));
}

static void take_result(struct view *v)
{
	free(v->text);
	free(v->title);
	look_past_free(v->past);
	v->text = look_take_text(v->look, &v->len);
	v->title = look_take_title(v->look);
	v->past = look_take_past(v->look);
	v->at_ns = twheel_now(v->conf.wheel);
}

// As look_step().
static int look_on(struct view *v)
{
	struct slice slice = v->conf.slice;
	uint64_t begun_ns = slice.clock_ns ? slice.clock_ns() : 0;
	int more = -ENOMEM;
	if (!v->look)
		return more;
	slice_begin(&slice);
	do
		more = look_step(v->look);
	while (more > 0 && !slice_over(&slice));
	v->spent_ns += slice.clock_ns ? slice.clock_ns() - begun_ns : 0;
	return more;
}

static void go_on(evutil_socket_t fd, short what, void *arg)
{
	struct view *v = arg;
	static const struct timeval now;
	int more = look_on(v);
	if (more > 0) {
		event_add(v->again, &now);
		return;
	}
	if (!more)
		take_result(v);
	look_free(v->look);
	v->look = NULL;
	wait_on(v);
	v->conf.looked(v->conf.ctx, v, !more);
}

static void on_timer(struct twheel_timer *timer)
{
	struct view *v = CONTAINER_OF(timer, struct view, timer);
	if (v->is_followed)
		view_look(v);
	else
		v->conf.left(v->conf.ctx, v);
}

struct view *view_new(const struct view_conf *conf, const char *cluster)
{
	struct view *v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->conf = *conf;
	v->timer.fire = on_timer;
	v->again = event_new(conf->base, -1, 0, go_on, v);
	v->cluster = cluster ? strdup(cluster) : NULL;
	if (v->again && (v->cluster || !cluster)) {
		wait_on(v);
		return v;
	}
	view_free(v);
	return NULL;
}

void view_free(struct view *v)
{
	if (!v)
		return;
	twheel_cancel(v->conf.wheel, &v->timer);
	if (v->again)
		event_free(v->again);
	look_free(v->look);
	look_past_free(v->past);
	free(v->text);
	free(v->title);
	free(v->cluster);
	free(v);
}

bool view_is_of(const struct view *v, const char *cluster)
{
	return cluster && v->cluster ? strcmp(cluster, v->cluster) == 0 : cluster == v->cluster;
}

void view_look(struct view *v)
{
	if (v->look)
		return;
	twheel_cancel(v->conf.wheel, &v->timer);
	v->spent_ns = 0;
	v->look = look_new(v->conf.show, v->cluster, v->past);
	event_active(v->again, EV_TIMEOUT, 0);
}

void view_follow(struct view *v, bool is_followed)
{
	if (v->is_followed == is_followed)
		return;
	v->is_followed = is_followed;
	wait_on(v);
}

const char *view_text(const struct view *v, size_t *ret_len)
{
	*ret_len = v->len;
	return v->text;
}

const char *view_title(const struct view *v)
{
	return v->title;
}

uint64_t view_age_ns(const struct view *v)
{
	return v->text ? twheel_now(v->conf.wheel) - v->at_ns : UINT64_MAX;
}
