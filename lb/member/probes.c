// SPDX-License-Identifier: Apache-2.0
#include "lb/member/probes.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/check.h"
#include "lb/pick/link.h"

#include <stdlib.h>

#define TURN_NS (10 * NS_PER_MS)
#define MAX_A_TURN 256 // of those that wait, how many are looked at

enum phase {
	PHASE_RESTS,
	PHASE_WAITS, // for its turn
	PHASE_UNDER_WAY,
	PHASE_ENDS, // the worker has yet to say that it has let go
};

// A probe with what ctrl knows of it.
struct entry {
	struct lb_probe probe; // first: the worker has its address
	struct lb_check *check; // counted: of the last asking; NULL = none yet
	struct lb_probe_user *user;
	struct list_link waiting;
	enum phase phase;
	bool is_known; // to the worker
	bool owes_end; // PROBE_END found no memory
};

struct lb_probes {
	struct lb_probes_env env;
	struct entry **entries; // owned; [room], by id; NULL = free
	uint32_t room, next_id; // where the search for a free id begins
	uint32_t n, n_under_way, n_waiting, n_owed;
	struct list_link waiting; // the longest first
	struct twheel_timer turn; // armed while some wait
};

static void on_turn(struct twheel_timer *);

static struct entry *entry_of(struct lb_probe *p)
{
	return CONTAINER_OF(p, struct entry, probe);
}

struct lb_probes *lb_probes_new(const struct lb_probes_env *env)
{
	CHECK(env->max_under_way > 0);
	struct lb_probes *all = calloc(1, sizeof(*all));
	if (!all)
		return NULL;
	all->env = *env;
	all->turn.fire = on_turn;
	list_init(&all->waiting);
	return all;
}

static void entry_free(struct lb_probes *all, struct entry *e)
{
	all->entries[e->probe.id] = NULL;
	all->n--;
	all->n_owed -= e->owes_end;
	lb_check_put(e->check);
	lb_security_put(e->probe.security);
	free(e);
}

void lb_probes_free(struct lb_probes *all)
{
	if (!all)
		return;
	twheel_cancel(all->env.wheel, &all->turn);
	for (uint32_t i = 0; i < all->room; i++) {
		DCHECK(!all->entries[i] || all->entries[i]->phase == PHASE_ENDS);
		if (all->entries[i])
			entry_free(all, all->entries[i]);
	}
	free(all->entries);
	free(all);
}

// UINT32_MAX = out of memory.
static uint32_t take_id(struct lb_probes *all)
{
	if (all->n == all->room) {
		uint32_t room = all->room ? 2 * all->room : 64;
		struct entry **more = realloc(all->entries, room * sizeof(struct entry *));
		if (!more)
			return UINT32_MAX;
		for (uint32_t i = all->room; i < room; i++)
			more[i] = NULL;
		all->next_id = all->room;
		all->entries = more;
		all->room = room;
	}
	while (all->entries[all->next_id % all->room])
		all->next_id++;
	return all->next_id++ % all->room;
}

struct lb_probe *lb_probes_begin(struct lb_probes *all, const struct ip_port *address,
	struct lb_security *security, struct lb_probe_user *user)
{
	uint32_t id = take_id(all);
	struct entry *e = id != UINT32_MAX ? calloc(1, sizeof(*e)) : NULL;
	if (!e)
		return NULL;
	e->probe.id = id;
	e->probe.addr = *address;
	e->probe.security = lb_security_get(security);
	e->user = user;
	all->entries[id] = e;
	all->n++;
	return &e->probe;
}

static void wait_for_turn(struct lb_probes *all, uint64_t delay_ns)
{
	if (!twheel_armed(&all->turn))
		twheel_arm(all->env.wheel, &all->turn, twheel_now(all->env.wheel) + delay_ns);
}

static void send_end(struct lb_probes *all, struct entry *e)
{
	bool is_lost = !all->env.send(all->env.ctx, &e->probe, true);
	all->n_owed += (uint32_t)is_lost - (uint32_t)e->owes_end;
	e->owes_end = is_lost;
	if (is_lost)
		wait_for_turn(all, TURN_NS);
}

// The worker that has never heard of it need not let go.
void lb_probes_end(struct lb_probes *all, struct lb_probe *p)
{
	if (!p)
		return;
	struct entry *e = entry_of(p);
	DCHECK(e->phase != PHASE_ENDS);
	if (e->phase == PHASE_WAITS) {
		list_remove(&e->waiting);
		all->n_waiting--;
	}
	all->n_under_way -= e->phase == PHASE_UNDER_WAY;
	if (all->n_waiting)
		wait_for_turn(all, 0);
	e->phase = PHASE_ENDS;
	e->user = NULL;
	if (e->is_known)
		send_end(all, e);
	else
		entry_free(all, e);
}

// False = no memory for the command.
static bool begin(struct lb_probes *all, struct entry *e)
{
	e->probe.check = e->check;
	if (!all->env.send(all->env.ctx, &e->probe, false))
		return false;
	list_remove(&e->waiting);
	all->n_waiting--;
	e->is_known = true;
	e->phase = PHASE_UNDER_WAY;
	all->n_under_way++;
	return true;
}

// Those that cannot begin yet go behind the others.
static void begin_waiting(struct lb_probes *all)
{
	const struct lb_probes_env *env = &all->env;
	for (uint32_t left = MAX_A_TURN; left && all->n_under_way < env->max_under_way; left--) {
		struct list_link *first = list_first(&all->waiting);
		if (!first)
			return;
		struct entry *e = CONTAINER_OF(first, struct entry, waiting);
		bool may = !env->may_begin || env->may_begin(env->ctx, &e->probe);
		if (may && begin(all, e))
			continue;
		list_remove(&e->waiting);
		list_append(&all->waiting, &e->waiting);
	}
}

static void pay_ends(struct lb_probes *all)
{
	for (uint32_t i = 0; all->n_owed && i < all->room; i++)
		if (all->entries[i] && all->entries[i]->owes_end)
			send_end(all, all->entries[i]);
}

static void on_turn(struct twheel_timer *t)
{
	struct lb_probes *all = CONTAINER_OF(t, struct lb_probes, turn);
	pay_ends(all);
	begin_waiting(all);
	if (all->n_waiting)
		wait_for_turn(all, TURN_NS);
}

void lb_probes_ask(struct lb_probes *all, struct lb_probe *p, struct lb_check *check)
{
	struct entry *e = entry_of(p);
	DCHECK(e->phase == PHASE_RESTS);
	struct lb_check *before = e->check;
	e->check = lb_check_get(check);
	lb_check_put(before);
	e->phase = PHASE_WAITS;
	all->n_waiting++;
	list_append(&all->waiting, &e->waiting);
	if (all->n_under_way < all->env.max_under_way)
		wait_for_turn(all, 0);
}

void lb_probes_event(struct lb_probes *all, const struct lb_event *event)
{
	struct entry *e = event->probe < all->room ? all->entries[event->probe] : NULL;
	if (!e)
		return;
	if (event->kind == LB_EVENT_PROBE_ENDED) {
		if (e->phase == PHASE_ENDS)
			entry_free(all, e);
		return;
	}
	if (e->phase != PHASE_UNDER_WAY) // it has been ended meanwhile
		return;
	e->phase = PHASE_RESTS;
	all->n_under_way--;
	if (all->n_waiting)
		wait_for_turn(all, 0);
	e->user->on_result(e->user, (enum lb_probe_result)event->probed.result, event->probed.why);
}

uint32_t lb_probes_n_under_way(const struct lb_probes *all)
{
	return all->n_under_way;
}

uint32_t lb_probes_n_waiting(const struct lb_probes *all)
{
	return all->n_waiting;
}
