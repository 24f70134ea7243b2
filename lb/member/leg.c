// SPDX-License-Identifier: Apache-2.0
#include "lb/member/leg.h"

#include "lb/base/container_of.h"
#include "lb/member/connectivity.h"

#include <stdlib.h>

#define IN_RACE 1

struct lb_subchannel *lb_leg_subchannel(const struct lb_leg *leg)
{
	return (struct lb_subchannel *)(leg->subchannel & ~(uintptr_t)IN_RACE);
}

struct lb_member *lb_leg_member(const struct lb_leg *leg)
{
	if (leg->subchannel & IN_RACE)
		return CONTAINER_OF(leg, struct lb_runner, leg)->race->member;
	return (struct lb_member *)(uintptr_t)CONTAINER_OF(leg, struct lb_member, only);
}

bool lb_leg_has_failed(const struct lb_member *m, const struct lb_leg *leg)
{
	return m->has_many ? CONTAINER_OF(leg, struct lb_runner, leg)->has_failed : m->has_failed;
}

void lb_leg_set_failed(struct lb_member *m, struct lb_leg *leg, bool failed)
{
	if (m->has_many)
		CONTAINER_OF(leg, struct lb_runner, leg)->has_failed = failed;
	else
		m->has_failed = failed;
}

void lb_leg_apply_timers(const struct lb_leg *leg, struct lb_connectivity *c)
{
	const struct lb_subchannel *s = lb_leg_subchannel(leg);
	struct lb_timers all = {0};
	struct lb_timers *timers = s ? lb_connectivity_timers(c, &s->endpoint) : NULL;
	if (!timers)
		return;
	for (const struct lb_subchannel_watcher *w = s->watchers; w; w = w->next) {
		const struct lb_leg *one = CONTAINER_OF(w, struct lb_leg, watcher);
		all = lb_timers_shortest(all, lb_member_env_of(lb_leg_member(one))->timers);
	}
	lb_timers_write(timers, all);
}

// One more user of the subchannel.
static void add_timers(const struct lb_member *m, const struct lb_subchannel *s)
{
	struct lb_timers all = lb_member_env_of(m)->timers;
	struct lb_timers *timers = lb_connectivity_timers(lb_member_connectivity(m), &s->endpoint);
	if (timers && lb_subchannel_is_watched(s))
		all = lb_timers_shortest(all, *timers);
	if (timers)
		lb_timers_write(timers, all);
}

int lb_leg_security(
	const struct lb_member *m, const struct ip_port *address, struct lb_security **ret)
{
	const struct lb_member_env *env = lb_member_env_of(m);
	*ret = NULL;
	return env->security ? env->security(env->ctx, address, ret) : 0;
}

static bool watch(
	struct lb_leg *leg, struct lb_member *m, const struct ip_port *address, uintptr_t in_race)
{
	struct lb_connectivity *c = lb_member_connectivity(m);
	struct lb_security *security;
	if (lb_leg_security(m, address, &security))
		return false;
	struct lb_subchannel *s = lb_connectivity_get(c, address, security);
	lb_security_put(security);
	if (!s)
		return false;
	leg->subchannel = (uintptr_t)s | in_race;
	add_timers(m, s);
	if (!in_race && !lb_subchannel_is_watched(s))
		lb_subchannel_request(s); // now, so that nobody need be told
	lb_subchannel_watch(s, &leg->watcher);
	return true;
}

bool lb_leg_take_only(struct lb_member *m)
{
	return m->only.subchannel || watch(&m->only, m, &m->address, 0);
}

void lb_leg_fini(struct lb_leg *leg, struct lb_connectivity *c)
{
	struct lb_subchannel *s = lb_leg_subchannel(leg);
	if (!s)
		return;
	lb_subchannel_unwatch(s, &leg->watcher);
	lb_leg_apply_timers(leg, c); // the others'
	leg->subchannel &= IN_RACE;
	lb_connectivity_put(c, s);
}

uint32_t lb_leg_count(const struct lb_member *m)
{
	return !m->has_many ? 1 : m->many->race ? m->many->race->n : 0;
}

struct lb_leg *lb_leg_at(struct lb_member *m, uint32_t i)
{
	return m->has_many ? &m->many->race->runners[i].leg : &m->only;
}

bool lb_member_is_secured(const struct lb_member *m,
	bool (*fits)(const void *ctx, const struct ip_port *, const struct lb_security *),
	const void *ctx)
{
	uint32_t n = m->phase == PHASE_STUCK ? 0 : lb_leg_count(m);
	for (uint32_t i = 0; i < n; i++) {
		const struct lb_subchannel *s =
			lb_leg_subchannel(lb_leg_at((struct lb_member *)(uintptr_t)m, i));
		if (s && !fits(ctx, &s->endpoint.addr, s->endpoint.security))
			return false;
	}
	return true;
}

struct lb_leg *lb_leg_in_use(const struct lb_member *m)
{
	if (m->has_many)
		return m->many->race ? m->many->race->in_use : NULL;
	return m->phase == PHASE_READY ? (struct lb_leg *)(uintptr_t)&m->only : NULL;
}

void lb_leg_set_last_failed(struct lb_member *m, struct lb_leg *leg)
{
	if (m->has_many)
		m->many->race->last_failed = leg;
	else
		m->tells_error = leg != NULL;
}

void lb_leg_race_free(struct lb_race *r)
{
	if (!r)
		return;
	twheel_cancel(lb_connectivity_wheel(lb_member_connectivity(r->member)), &r->timer);
	for (uint32_t i = 0; i < r->n; i++)
		lb_leg_fini(&r->runners[i].leg, lb_member_connectivity(r->member));
	free(r);
}

// The next address from `at` on that is of this family, or n.
static uint32_t next_of_family(const struct many *many, uint32_t at, bool v4)
{
	while (at < many->n && ip_is_v4(&many->addresses[at].ip) != v4)
		at++;
	return at;
}

// PF-09: the first address's, unless there was no answer from it.
static bool begins_with_v4(const struct lb_member *m)
{
	const struct many *many = m->many;
	if (twheel_now(lb_connectivity_wheel(lb_member_connectivity(m))) < many->silent_until_ns)
		return !many->silent_v4;
	return ip_is_v4(&many->addresses[0].ip);
}

// RFC 8305 4: the families take turns, as long as there are both.
struct lb_race *lb_leg_race_new(struct lb_member *m, void (*on_timer)(struct twheel_timer *))
{
	const struct many *many = m->many;
	struct lb_race *r = calloc(1, sizeof(*r) + many->n * sizeof(r->runners[0]));
	if (!r)
		return NULL;
	r->timer.fire = on_timer;
	r->member = m;
	bool v4 = begins_with_v4(m);
	uint32_t at[2];
	for (int family = 0; family < 2; family++)
		at[family] = next_of_family(many, 0, family);
	while (r->n < many->n) {
		if (at[v4] == many->n)
			v4 = !v4;
		struct lb_runner *runner = &r->runners[r->n];
		runner->race = r;
		if (!watch(&runner->leg, m, &many->addresses[at[v4]], IN_RACE)) {
			lb_leg_race_free(r);
			return NULL;
		}
		r->n++;
		at[v4] = next_of_family(many, at[v4] + 1, v4);
		v4 = !v4;
	}
	return r;
}
