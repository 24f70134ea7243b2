// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lb/member/member_world.h"

#include "lb/base/container_of.h"
#include "tests/support/check.h"

#define MAX_ADDRESSES 16 // of a member

static void on_change(struct lb_member_watcher *w, uint32_t index)
{
	assert_int_equal(index, 0);
	struct member_world *m = CONTAINER_OF(w, struct member_world, watcher);
	m->n_told++;
	m->state = lb_member_state(m->member);
	if (m->on_told)
		m->on_told(m);
}

// max: attempts at a time, and as many may wait; 0 = any number.
static void init(struct member_world *m, uint32_t max, const uint32_t *numbers, uint32_t n)
{
	*m = (struct member_world){.watcher = {.on_change = on_change, .n = 1}};
	world_init_paced(&m->world, 1, 1, max, max, max);
	m->env = (struct lb_member_env){m->world.connectivity, 250 * WORLD_MS};
	m->member = member_world_make(m, numbers, n);
	assert_true(lb_member_watch(m->member, &m->watcher, 0));
}

void member_world_init(struct member_world *m, const uint32_t *numbers, uint32_t n)
{
	init(m, 0, numbers, n);
}

void member_world_init_paced(struct member_world *m, const uint32_t *numbers, uint32_t n)
{
	init(m, 1, numbers, n);
}

void member_world_fini(struct member_world *m)
{
	lb_member_unwatch(m->member, &m->watcher, 0);
	lb_member_put(m->member);
	world_fini(&m->world);
}

struct ip_port member_world_addr(uint32_t n)
{
	struct ip_port a = world_addr(n);
	if (n >= MEMBER_WORLD_V6)
		a.ip = (struct ip_addr){{[0] = 0xfd, [14] = (uint8_t)(n >> 8), [15] = (uint8_t)n}};
	return a;
}

struct lb_member *member_world_make(struct member_world *m, const uint32_t *numbers, uint32_t n)
{
	struct ip_port list[MAX_ADDRESSES];
	assert_in_range(n, 1, MAX_ADDRESSES);
	for (uint32_t i = 0; i < n; i++)
		list[i] = member_world_addr(numbers[i]);
	struct lb_member *member = lb_member_new(&m->env, 5, list, n);
	assert_non_null(member);
	return member;
}

uint32_t member_world_id(struct member_world *m, uint32_t number)
{
	struct ip_port a = member_world_addr(number);
	return world_id(&m->world, &a);
}

uint32_t member_world_connects(struct member_world *m, uint32_t number)
{
	uint32_t id = member_world_id(m, number);
	return id == UINT32_MAX ? 0 : m->world.n_connects[id];
}

void member_world_event(
	struct member_world *m, enum lb_event_kind kind, uint32_t number, const char *why)
{
	world_event(&m->world, 0, kind, member_world_id(m, number), why);
}
