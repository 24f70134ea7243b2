// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/work.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"

void proxy_work_init(struct proxy_work *w)
{
	list_init(&w->line);
}

// What a frame took beyond an allowance is made up for, what was left of one is not kept.
static void add_quantum(struct proxy_source *s)
{
	s->allowance = (s->allowance < 0 ? s->allowance : 0) + PROXY_WORK_QUANTUM;
}

int64_t proxy_work_grant(const struct proxy_work *w, struct proxy_source *s)
{
	if (list_linked(&s->line))
		return 0;
	if (s->turn != w->turn) {
		s->turn = w->turn;
		add_quantum(s);
	}
	return s->allowance;
}

bool proxy_work_put_off(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	struct proxy_source *s = c->source;
	if (p->work.allowance > 0)
		return false;
	if (list_linked(&c->waits))
		return true;
	proxy_count(p, PROXY_inputs_put_off);
	list_append(&s->waiting, &c->waits);
	if (!list_linked(&s->line))
		list_append(&p->work.line, &s->line);
	return true;
}

void proxy_work_forget(struct proxy_client *c)
{
	list_remove(&c->waits);
	if (list_empty(&c->source->waiting))
		list_remove(&c->source->line);
}

// A connection whose input goes beyond the quantum goes behind the source's others.
static void serve(struct proxy_work *w, struct proxy_source *s)
{
	add_quantum(s);
	w->allowance = s->allowance;
	s->allowance = 0; // it has no other in this turn
	s->turn = w->turn;
	while (w->allowance > 0 && !list_empty(&s->waiting)) {
		struct proxy_client *c = CONTAINER_OF(s->waiting.next, struct proxy_client, waits);
		list_remove(&c->waits);
		proxy_conn_resume(&c->conn);
	}
	s->allowance += w->allowance;
}

void proxy_work_serve_line(struct proxy *p)
{
	struct proxy_work *w = &p->work;
	int64_t left = PROXY_WORK_LINE;
	while (left > 0 && !list_empty(&w->line)) {
		struct proxy_source *s = CONTAINER_OF(w->line.next, struct proxy_source, line);
		list_remove(&s->line);
		serve(w, s);
		left -= PROXY_WORK_QUANTUM - (s->allowance > 0 ? s->allowance : 0);
		if (!list_empty(&s->waiting) && !list_linked(&s->line))
			list_append(&w->line, &s->line);
	}
	if (!list_empty(&w->line))
		twheel_arm(p->wheel, &p->again, twheel_now(p->wheel));
}
