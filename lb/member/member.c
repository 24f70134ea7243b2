// SPDX-License-Identifier: Apache-2.0
#include "lb/member/member.h"

#include "lb/base/check.h"
#include "lb/index/addresses.h"
#include "lb/member/member_inside.h"

#include <stdlib.h>

#define SLAB_MIN 8
#define SLAB_MAX 64

// Storage.

static struct lb_member *members_of(const struct lb_member_slab *s)
{
	return (struct lb_member *)(uintptr_t)(s + 1);
}

static void slab_link(struct lb_member_slab *s)
{
	struct lb_member_env *env = s->env;
	s->before = NULL;
	s->next = env->slabs;
	if (s->next)
		s->next->before = s;
	env->slabs = s;
}

static void slab_unlink(struct lb_member_slab *s)
{
	if (s->next)
		s->next->before = s->before;
	if (s->before)
		s->before->next = s->next;
	else
		s->env->slabs = s->next;
}

// As many as are expected, or as there are already, so that few members need few bytes.
static struct lb_member_slab *slab_new(struct lb_member_env *env)
{
	uint32_t n = env->n_expected ? env->n_expected : SLAB_MIN;
	while (!env->n_expected && n < env->n_members && n < SLAB_MAX)
		n *= 2;
	n = n < SLAB_MAX ? n : SLAB_MAX;
	struct lb_member_slab *s = malloc(sizeof(*s) + n * sizeof(struct lb_member));
	if (!s)
		return NULL;
	uint64_t all = ~(uint64_t)0 >> (SLAB_MAX - n);
	*s = (struct lb_member_slab){.env = env, .free = all, .all = all};
	slab_link(s);
	env->n_expected -= env->n_expected < n ? env->n_expected : n;
	return s;
}

static struct lb_member *take_place(struct lb_member_env *env)
{
	struct lb_member_slab *s = env->slabs ? env->slabs : slab_new(env);
	if (!s)
		return NULL;
	uint8_t number = (uint8_t)__builtin_ctzll(s->free);
	s->free &= s->free - 1;
	if (!s->free)
		slab_unlink(s);
	env->n_members++;
	struct lb_member *m = members_of(s) + number;
	*m = (struct lb_member){.number = number};
	return m;
}

static void give_place(struct lb_member *m)
{
	struct lb_member_slab *s = lb_member_slab_of(m);
	if (!s->free)
		slab_link(s);
	s->free |= (uint64_t)1 << m->number;
	s->env->n_members--;
	if (s->free != s->all)
		return;
	slab_unlink(s);
	free(s);
}

// Life.

static struct many *many_new(const struct ip_port *addresses, uint32_t n)
{
	struct many *many = malloc(sizeof(*many) + n * sizeof(addresses[0]));
	if (!many)
		return NULL;
	*many = (struct many){.n = n};
	memcpy(many->addresses, addresses, n * sizeof(addresses[0]));
	return many;
}

struct lb_member *lb_member_new(
	struct lb_member_env *env, uint32_t id, const struct ip_port *addresses, uint32_t n)
{
	DCHECK(n > 0 && id < LB_MAX_MEMBERS);
	struct many *many = n > 1 ? many_new(addresses, n) : NULL;
	struct lb_member *m = many || n == 1 ? take_place(env) : NULL;
	if (!m) {
		free(many);
		return NULL;
	}
	m->n_refs = 1;
	m->id = id & (LB_MAX_MEMBERS - 1);
	m->has_many = n > 1;
	if (m->has_many)
		m->many = many;
	else
		m->address = addresses[0];
	return m;
}

struct lb_member *lb_member_get(struct lb_member *m)
{
	m->n_refs++;
	return m;
}

bool lb_member_is_shared(const struct lb_member *m)
{
	return m->n_refs > 1;
}

void lb_member_end(struct lb_member *m)
{
	if (m->n_refs || m->n_busy || lb_member_is_told(m))
		return;
	struct lb_member_env *env = lb_member_env_of(m);
	uint32_t id = m->id;
	lb_member_take_up(m);
	lb_member_give_back(m);
	if (m->has_many)
		free(m->many);
	give_place(m);
	if (env->on_gone)
		env->on_gone(env->ctx, id);
}

void lb_member_put(struct lb_member *m)
{
	if (!m)
		return;
	CHECK(m->n_refs > 0);
	if (--m->n_refs)
		return;
	DCHECK(!lb_member_is_watched(m));
	lb_member_end(m);
}

// What it is.

uint32_t lb_member_id(const struct lb_member *m)
{
	return m->id;
}

uint32_t lb_member_place(const struct lb_member *m)
{
	return m->place;
}

void lb_member_set_place(struct lb_member *m, uint32_t place)
{
	m->place = place;
}

uint32_t lb_member_n_addresses(const struct lb_member *m)
{
	return m->has_many ? m->many->n : 1;
}

const struct ip_port *lb_member_address(const struct lb_member *m, uint32_t i)
{
	DCHECK(i < lb_member_n_addresses(m));
	return m->has_many ? &m->many->addresses[i] : &m->address;
}

bool lb_member_same_set(const struct lb_member *m, const struct ip_port *addresses, uint32_t n)
{
	if (!m->has_many)
		return n == 1 && ip_port_eq(&m->address, addresses);
	return n == m->many->n && lb_addresses_same(m->many->addresses, addresses, n);
}

bool lb_member_reorder(struct lb_member *m, const struct ip_port *addresses)
{
	if (!m->has_many)
		return false;
	struct many *many = m->many;
	DCHECK(lb_member_same_set(m, addresses, many->n));
	bool is_other = !ip_port_eq(&many->addresses[0], &addresses[0]);
	memcpy(many->addresses, addresses, many->n * sizeof(addresses[0]));
	return is_other;
}

enum lb_state lb_member_raw_state(const struct lb_member *m)
{
	return (enum lb_state)m->raw;
}

enum lb_state lb_member_state(const struct lb_member *m)
{
	if (m->is_ejected || m->health == LB_MEMBER_UNHEALTHY || m->phase == PHASE_FAILED)
		return LB_TRANSIENT_FAILURE;
	if (m->health == LB_MEMBER_UNCHECKED && m->raw == LB_READY)
		return LB_CONNECTING;
	return (enum lb_state)m->raw;
}

enum lb_member_health lb_member_health(const struct lb_member *m)
{
	return (enum lb_member_health)m->health;
}

bool lb_member_wants_resolution(const struct lb_member *m)
{
	return m->wants_resolution;
}

bool lb_member_is_ejected(const struct lb_member *m)
{
	return m->is_ejected;
}
