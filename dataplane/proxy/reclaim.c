// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/reclaim.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/leaf.h"
#include "dataplane/proxy/place.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#define STEP_NS (10 * NS_PER_MS)
#define LOOKS 256 // in a step, or more for a round to end in time
#define ROUND_NS NS_PER_SECOND

static void look_at_some(struct twheel_timer *);

void proxy_reclaim_init(struct proxy_reclaim *c)
{
	list_init(&c->ending);
	c->timer.fire = look_at_some;
}

// It is as if its client had reset it: its backend is not judged (A50-E05).
static void end(struct proxy_request *r, enum proxy_counter why, struct str text)
{
	struct proxy_reply reply = proxy_reply_for(LB_CAUSE_CLIENT_SLOW, text);
	proxy_count(r->proxy, why);
	proxy_source_ended_early(r->owner->source, r->proxy->now_ns);
	proxy_request_fail(r, &reply, H2_CANCEL);
}

// One place in so many of its breaker is taken, or more.
static bool is_pressed(const struct proxy_request *r, uint32_t one_in)
{
	const struct lb_leaf_layer *layer = proxy_leaf_of(r);
	return layer && layer->breaker == r->accounting.breaker &&
	       lb_breaker_in_flight(layer->breaker) >= layer->max_requests / one_in;
}

// It may have come before anybody counted. Returns the list for it.
static struct list_link *count(struct proxy_request *r)
{
	struct proxy_shares *all = &r->proxy->shares;
	struct proxy_accounting *b = &r->accounting;
	if (!b->held.by_source)
		proxy_share_add(all, b->breaker, r->owner->source, &b->held);
	return proxy_share_owing(all, b->breaker);
}

static void count_slow(struct proxy_request *r)
{
	struct list_link *owing = count(r);
	if (!list_linked(&r->accounting.held.owing)) // it is an old one
		list_insert(owing, &r->accounting.held.owing);
}

void proxy_reclaim_note_shut(struct proxy_request *r)
{
	struct proxy_held *held = &r->accounting.held;
	if (held->shut_ns || !proxy_place_is_shut(r) || !is_pressed(r, 4))
		return;
	held->shut_ns = r->proxy->now_ns;
	struct list_link *owing = count(r);
	if (!list_linked(&held->owing))
		list_append(owing, &held->owing);
}

static void look_at(struct proxy_request *r)
{
	struct proxy_held *held = &r->accounting.held;
	// One that was put back into its pool had ended.
	if (r->ended || !r->accounting.breaker)
		return;
	if (!is_pressed(r, 2)) {
		held->mark_ns = 0;
		return;
	}
	r->proxy->reclaim.pressed = true;
	if (!held->mark_ns || !proxy_place_waits(r) || !proxy_place_is_slow(r)) {
		proxy_place_mark(r);
		return;
	}
	count_slow(r);
	// Answers that lie for long end by TH-15.
	if (r->proxy->now_ns - held->mark_ns < PROXY_PATIENCE_NS || !proxy_place_owes(r))
		return;
	if (proxy_place_is_slower(r, PROXY_LEAST_RATE))
		end(r, PROXY_bodies_too_slow,
			STR("less than 100 bytes a second of its body came for 30 s"));
	else
		proxy_place_mark(r);
}

static void look_at_some(struct twheel_timer *t)
{
	struct proxy *p = CONTAINER_OF(t, struct proxy, reclaim.timer);
	struct proxy_reclaim *c = &p->reclaim;
	uint64_t next_ns = p->now_ns + STEP_NS;
	uint32_t n_looks = pool_n_seen(&p->requests) / (ROUND_NS / STEP_NS) + LOOKS;
	if (!c->at) {
		c->round_ns = p->now_ns;
		c->pressed = false;
	}
	for (uint32_t n = 0; n < n_looks && c->at < pool_n_seen(&p->requests); n++)
		look_at(pool_at(&p->requests, c->at++));
	if (c->at >= pool_n_seen(&p->requests)) {
		c->at = 0;
		if (next_ns < c->round_ns + ROUND_NS)
			next_ns = c->round_ns + ROUND_NS;
	}
	// Else it begins again with the next one that is counted, and nothing has a mark.
	if (p->shares.pool.n_used || c->at || c->pressed)
		twheel_arm(p->wheel, t, next_ns);
}

// One whose body was completed since it gave way is not in the list any more
// (proxy_accounting_request_done). One that is being answered since then goes on without a place.
static void end_giver(struct proxy_request *r)
{
	list_remove(&r->accounting.held.owing);
	if (r->state == PROXY_REQUEST_SENT)
		end(r, PROXY_bodies_gave_way,
			STR("it waits for its client, and another one needs its place"));
	else if (r->state == PROXY_REQUEST_ANSWERED && proxy_place_gave_answer(r))
		end(r, PROXY_answers_gave_way,
			STR("its client takes too little, and another one needs its place"));
}

bool proxy_reclaim_turn(struct proxy *p)
{
	struct proxy_reclaim *c = &p->reclaim;
	bool any = !list_empty(&c->ending);
	for (struct list_link *l; (l = list_first(&c->ending));)
		end_giver(CONTAINER_OF(l, struct proxy_request, accounting.held.owing));
	if (!twheel_armed(&c->timer))
		twheel_arm(p->wheel, &c->timer, p->now_ns + STEP_NS);
	return any;
}
