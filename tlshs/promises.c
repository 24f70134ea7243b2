// SPDX-License-Identifier: Apache-2.0
#include "tlshs/promises.h"

#include "tlshs/session.h"
#include "tlshs/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int tlshs_promises_init(struct tlshs_promises *ps)
{
	*ps = (struct tlshs_promises){.first = 1, .next = 1};
	ps->all = calloc(TLSHS_MAX_PROMISES, sizeof(*ps->all));
	return ps->all ? 0 : -ENOMEM;
}

static struct tlshs_promised *at(const struct tlshs_promises *ps, uint64_t number)
{
	return &ps->all[number % TLSHS_MAX_PROMISES];
}

static void end_one(struct tlshs_promised *p)
{
	tlshs_promise_free(p->promise);
	free(p->part);
	*p = (struct tlshs_promised){0};
}

static void end_first(struct tlshs_promises *ps)
{
	end_one(at(ps, ps->first++));
}

void tlshs_promises_fini(struct tlshs_promises *ps)
{
	while (ps->all && ps->first < ps->next)
		end_first(ps);
	free(ps->all);
	ps->all = NULL;
}

uint64_t tlshs_promises_add(struct tlshs_promises *ps, struct tlshs_promise *promise)
{
	if (!promise)
		return 0;
	if (ps->next - ps->first == TLSHS_MAX_PROMISES)
		end_first(ps);
	*at(ps, ps->next) = (struct tlshs_promised){.promise = promise, .since_ns = ps->now_ns};
	return ps->next++;
}

static void redeem(struct tlshs_promised *p, const uint8_t *ticket, size_t len)
{
	struct tlshs_session *s = tlshs_promise_redeem(p->promise, ticket, len, time(NULL));
	if (s)
		tlshs_sessions_put(s);
	else
		tlshs_sessions_count(TLSHS_SESSIONS_tickets_unfit);
	if (++p->n_tickets == TLSHS_MAX_TICKETS)
		end_one(p);
}

// Parts of one come one after the other.
static void gather(struct tlshs_promised *p, const struct tlshs_order *o)
{
	if (!p->part) {
		p->part = malloc(o->n_left);
		p->part_room = o->n_left;
		p->part_len = 0;
	}
	if (!p->part || o->n_left != p->part_room - p->part_len || o->len > o->n_left) {
		end_one(p);
		return;
	}
	memcpy(p->part + p->part_len, o->bytes, o->len);
	p->part_len += o->len;
	if (o->len < o->n_left)
		return;
	uint8_t *ticket = p->part;
	p->part = NULL;
	redeem(p, ticket, p->part_len);
	free(ticket);
}

static void take(struct tlshs_promised *p, const struct tlshs_order *o)
{
	if (!p->part && o->len == o->n_left)
		redeem(p, o->bytes, o->len);
	else
		gather(p, o);
}

void tlshs_promises_feed(struct tlshs_promises *ps, const struct tlshs_order *o)
{
	bool is_there = o->id >= ps->first && o->id < ps->next && at(ps, o->id)->promise;
	if (is_there)
		take(at(ps, o->id), o);
	else if (o->len == o->n_left)
		tlshs_sessions_count(TLSHS_SESSIONS_tickets_late);
}

void tlshs_promises_expire(struct tlshs_promises *ps, uint64_t now_ns)
{
	ps->now_ns = now_ns;
	while (ps->first < ps->next && now_ns - at(ps, ps->first)->since_ns >= TLSHS_PROMISE_NS)
		end_first(ps);
}
