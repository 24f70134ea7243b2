// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/workers.h"

#include "lb/base/log.h"
#include "lb/base/time.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct pending {
	struct pending *next;
	struct lb_command command;
};

struct worker_end {
	struct lb_link *link;
	struct pending *first, **last; // commands that found the ring full
	uint64_t seen_busy_ns, seen_idle_ns;
	double busy_share;
	bool stalled;
};

struct workers {
	void (*on_event)(void *ctx, uint32_t worker, const struct lb_event *);
	void *ctx;
	uint64_t maxima_since_ns;
	uint32_t n;
	struct worker_end ends[];
};

struct workers *workers_new(struct lb_link *const *links, uint32_t n,
	void (*on_event)(void *ctx, uint32_t worker, const struct lb_event *), void *ctx)
{
	struct workers *w = calloc(1, sizeof(*w) + n * sizeof(w->ends[0]));
	if (!w)
		return NULL;
	w->on_event = on_event;
	w->ctx = ctx;
	w->n = n;
	for (uint32_t i = 0; i < n; i++) {
		w->ends[i].link = links[i];
		w->ends[i].last = &w->ends[i].first;
	}
	return w;
}

void workers_free(struct workers *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; i < w->n; i++) {
		while (w->ends[i].first) {
			struct pending *p = w->ends[i].first;
			w->ends[i].first = p->next;
			free(p);
		}
	}
	free(w);
}

uint32_t workers_count(const struct workers *w)
{
	return w->n;
}

struct lb_link *workers_link(const struct workers *w, uint32_t worker)
{
	return w->ends[worker].link;
}

bool workers_send(struct workers *w, uint32_t worker, const struct lb_command *command)
{
	struct worker_end *e = &w->ends[worker];
	if (!e->first && spsc_write(&e->link->commands, command))
		return true;
	struct pending *p = malloc(sizeof(*p));
	if (!p) {
		log_error("a command to a worker was lost", "worker=%u kind=%d reason=memory",
			worker, command->kind);
		return false;
	}
	*p = (struct pending){.command = *command};
	*e->last = p;
	e->last = &p->next;
	return true;
}

void workers_send_all(struct workers *w, const struct lb_command *command)
{
	for (uint32_t i = 0; i < w->n; i++)
		workers_send(w, i, command);
}

void workers_clear_maxima(struct workers *w, uint64_t now_ns)
{
	workers_send_all(w, &(struct lb_command){.kind = LB_COMMAND_CLEAR_MAXIMA});
	w->maxima_since_ns = now_ns;
}

uint64_t workers_maxima_since(const struct workers *w)
{
	return w->maxima_since_ns;
}

static void send_pending(struct worker_end *e)
{
	while (e->first && spsc_write(&e->link->commands, &e->first->command)) {
		struct pending *p = e->first;
		e->first = p->next;
		if (!e->first)
			e->last = &e->first;
		free(p);
	}
}

void workers_poll(struct workers *w)
{
	struct lb_event event;
	for (uint32_t i = 0; i < w->n; i++) {
		// One that writes as fast as this reads is no reason not to return.
		for (uint32_t left = LB_LINK_EVENTS;
			left > 0 && spsc_read(&w->ends[i].link->events, &event); left--)
			w->on_event(w->ctx, i, &event);
		send_pending(&w->ends[i]);
	}
}

static void watch_beat(struct worker_end *e, uint32_t worker, uint64_t now_ns)
{
	uint64_t beat = counter_read(&e->link->counters.beat_ns);
	bool stalled = beat != 0 && workers_stalls(beat, now_ns);
	if (stalled && !e->stalled)
		log_error("worker stalled", "worker=%u core=%d for_ms=%" PRIu64, worker,
			e->link->core, (now_ns - beat) / NS_PER_MS);
	if (!stalled && e->stalled)
		log_warn("worker resumed", "worker=%u core=%d", worker, e->link->core);
	e->stalled = stalled;
}

void workers_watch(struct workers *w, uint64_t now_ns)
{
	for (uint32_t i = 0; i < w->n; i++) {
		struct worker_end *e = &w->ends[i];
		uint64_t busy = counter_read(&e->link->counters.busy_ns);
		uint64_t idle = counter_read(&e->link->counters.idle_ns);
		uint64_t busy_part = busy - e->seen_busy_ns;
		uint64_t whole = busy_part + (idle - e->seen_idle_ns);
		e->busy_share = whole ? (double)busy_part / (double)whole : 0;
		e->seen_busy_ns = busy;
		e->seen_idle_ns = idle;
		watch_beat(e, i, now_ns);
	}
}

bool workers_stalled(const struct workers *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->ends[i].stalled)
			return true;
	return false;
}

double workers_busy_share(const struct workers *w, uint32_t worker)
{
	return w->ends[worker].busy_share;
}

static const struct counter_set *group_of(const struct lb_link *link, const char *name)
{
	for (uint32_t g = 0; g < link->n_groups; g++)
		if (strcmp(link->groups[g].name, name) == 0)
			return &link->groups[g].set;
	return NULL;
}

uint64_t workers_counter(const struct workers *w, const char *group, const char *name)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		const struct counter_set *set = group_of(w->ends[i].link, group);
		for (uint32_t k = 0; set && k < set->n; k++)
			if (strcmp(set->names[k], name) == 0)
				sum += counter_read(&set->values[k]);
	}
	return sum;
}

void workers_cluster_totals(const struct workers *w, uint32_t id, struct cluster_totals *ret)
{
	*ret = (struct cluster_totals){0};
	for (uint32_t i = 0; i < w->n; i++) {
		const struct lb_cluster_counters *c = &w->ends[i].link->clusters[id];
		ret->started += counter_read(&c->started);
		ret->active += counter_read(&c->active);
		ret->queued += counter_read(&c->queued);
		for (int cause = 0; cause < LB_N_CAUSES; cause++)
			ret->ended[cause] += counter_read(&c->ended[cause]);
		if (counter_read(&c->started)) // else they are not resident
			ret->bad += counter_read(&w->ends[i].link->times[id].bad);
	}
}

uint64_t workers_bad_answers(const struct workers *w, uint32_t worker, uint32_t n_frontends)
{
	const struct lb_link *link = w->ends[worker].link;
	uint64_t n = 0;
	for (uint32_t i = 0; i < n_frontends; i++)
		if (counter_read(&link->counters.frontend_requests[i])) // likewise
			n += counter_read(&link->frontends[i].bad);
	return n;
}

static void gather_bodies(struct lb_bodies *sum, const struct lb_bodies *from)
{
	sum->in += counter_read(&from->in);
	sum->out += counter_read(&from->out);
}

void workers_cluster_times(const struct workers *w, uint32_t id, struct lb_cluster_times *ret)
{
	*ret = (struct lb_cluster_times){0};
	for (uint32_t i = 0; i < w->n; i++) {
		const struct lb_cluster_times *t = &w->ends[i].link->times[id];
		gather_bodies(&ret->bodies, &t->bodies);
		for (int answer = 0; answer < LB_N_ANSWERS; answer++)
			ret->answers[answer] += counter_read(&t->answers[answer]);
		ret->bad += counter_read(&t->bad);
		histogram_gather(&ret->request, &t->request);
		histogram_gather(&ret->added, &t->added);
		histogram_gather(&ret->attempt, &t->attempt);
	}
}

void cluster_times_since(struct lb_cluster_times *t, const struct lb_cluster_times *before)
{
	t->bodies.in -= before->bodies.in;
	t->bodies.out -= before->bodies.out;
	for (int answer = 0; answer < LB_N_ANSWERS; answer++)
		t->answers[answer] -= before->answers[answer];
	t->bad -= before->bad;
	histogram_since(&t->request, &before->request);
	histogram_since(&t->added, &before->added);
	histogram_since(&t->attempt, &before->attempt);
}

void workers_frontend_times(
	const struct workers *w, uint32_t frontend, struct lb_frontend_times *ret)
{
	*ret = (struct lb_frontend_times){0};
	for (uint32_t i = 0; i < w->n; i++) {
		const struct lb_frontend_times *t = &w->ends[i].link->frontends[frontend];
		gather_bodies(&ret->bodies, &t->bodies);
		for (int cause = 0; cause < LB_N_CAUSES; cause++)
			ret->ended[cause] += counter_read(&t->ended[cause]);
		for (int answer = 0; answer < LB_N_ANSWERS; answer++)
			ret->answers[answer] += counter_read(&t->answers[answer]);
		ret->bad += counter_read(&t->bad);
		histogram_gather(&ret->request, &t->request);
		histogram_gather(&ret->added, &t->added);
	}
}

void cluster_totals_since(struct cluster_totals *t, const struct cluster_totals *before)
{
	t->started -= before->started;
	for (int cause = 0; cause < LB_N_CAUSES; cause++)
		t->ended[cause] -= before->ended[cause];
	t->bad -= before->bad;
}

uint64_t workers_cluster_active(const struct workers *w, uint32_t id)
{
	uint64_t active = 0;
	for (uint32_t i = 0; i < w->n; i++)
		active += counter_read(&w->ends[i].link->clusters[id].active);
	return active;
}

bool workers_cluster_queued(const struct workers *w, uint32_t id)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (counter_read(&w->ends[i].link->clusters[id].queued))
			return true;
	return false;
}
