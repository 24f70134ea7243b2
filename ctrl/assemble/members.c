// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/members.h"

#include "ctrl/assemble/ids.h"
#include "ctrl/assemble/workers.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"
#include "lb/pick/orca.h"

#include <stdlib.h>
#include <string.h>

// Longer than the snapshots that may still carry a number.
#define REST_NS (10 * NS_PER_SECOND)
#define N_TRIES 64 // of numbers with requests in flight

struct counts {
	uint64_t issued, ok, failed, unjudged;
};

// Of a number, whoever had it. All zero of one that is new.
struct past {
	struct counts before; // what its earlier members had
	uint64_t harvested_ok, harvested_failed;
	uint64_t since_ns; // newest use by a session before the member came
};
_Static_assert(sizeof(struct past) == 7 * sizeof(uint64_t), "compares by its bytes");

struct members {
	struct workers *workers;
	struct lb_orca_table *orca;
	struct twheel *wheel;
	struct ids ids, node_slots;
	// [LB_MAX_MEMBERS] owned. Side by side only what all members need: of numbers that are new
	// the past is never written, and its pages stay the kernel's.
	void **owners; // NULL = nobody's
	struct past *past;
};

struct members *members_new(
	struct workers *workers, struct lb_orca_table *orca, struct twheel *wheel)
{
	struct members *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->workers = workers;
	m->orca = orca;
	m->wheel = wheel;
	m->owners = calloc(LB_MAX_MEMBERS, sizeof(m->owners[0]));
	m->past = calloc(LB_MAX_MEMBERS, sizeof(m->past[0]));
	if (!m->owners || !m->past || ids_init(&m->ids, LB_MAX_MEMBERS, REST_NS) ||
		ids_init(&m->node_slots, LB_MAX_SLOTS, REST_NS)) {
		members_free(m);
		return NULL;
	}
	return m;
}

void members_free(struct members *m)
{
	if (!m)
		return;
	ids_fini(&m->ids);
	ids_fini(&m->node_slots);
	free(m->owners);
	free(m->past);
	free(m);
}

static struct counts sum(const struct members *m, uint32_t member)
{
	struct counts c = {0};
	for (uint32_t i = 0; i < workers_count(m->workers); i++) {
		const struct lb_member_counters *w = &workers_link(m->workers, i)->members[member];
		c.ok += counter_read(&w->ok);
		c.failed += counter_read(&w->failed);
		c.unjudged += counter_read(&w->unjudged);
		c.issued += counter_read(&w->issued);
	}
	return c;
}

static uint64_t ended(const struct counts *c)
{
	return c->ok + c->failed + c->unjudged;
}

static uint64_t last_used(const struct members *m, uint32_t member)
{
	uint64_t newest = 0;
	for (uint32_t i = 0; i < workers_count(m->workers); i++) {
		uint64_t at = counter_read(&workers_link(m->workers, i)->members[member].used_ns);
		newest = at > newest ? at : newest;
	}
	return newest;
}

static struct lb_shared *shared_of(const struct members *m)
{
	return workers_link(m->workers, 0)->shared;
}

static bool is_idle(void *ctx, uint32_t member)
{
	struct counts c = sum(ctx, member);
	return c.issued == ended(&c);
}

uint32_t members_take(struct members *m, void *owner)
{
	// There may be very many that still have requests, one behind another.
	uint32_t id = ids_take_idle(&m->ids, twheel_now(m->wheel), N_TRIES, is_idle, m);
	if (id == IDS_NONE)
		return UINT32_MAX;
	// As with the past: a table that nobody wrote to stays the kernel's.
	uint32_t *load = &shared_of(m)->loads[id];
	if (__atomic_load_n(load, __ATOMIC_RELAXED))
		__atomic_store_n(load, 0, __ATOMIC_RELAXED);
	m->owners[id] = owner;
	struct counts c = sum(m, id);
	const struct past past = {c, c.ok, c.failed, last_used(m, id)};
	if (memcmp(&m->past[id], &past, sizeof(past)) != 0)
		m->past[id] = past;
	return id;
}

void members_give(struct members *m, uint32_t member)
{
	CHECK(m->owners[member]);
	m->owners[member] = NULL;
	lb_orca_forget(m->orca, member);
	ids_give(&m->ids, member, twheel_now(m->wheel));
}

void *members_owner(const struct members *m, uint32_t member)
{
	return member < LB_MAX_MEMBERS ? m->owners[member] : NULL;
}

uint32_t members_slot_take(struct members *m)
{
	return ids_take(&m->node_slots, twheel_now(m->wheel));
}

void members_slot_give(struct members *m, uint32_t slot)
{
	ids_give(&m->node_slots, slot, twheel_now(m->wheel));
}

void members_harvest(struct members *m, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed)
{
	struct past *p = &m->past[member];
	struct counts now = sum(m, member);
	*ret_ok = now.ok - p->harvested_ok;
	*ret_failed = now.failed - p->harvested_failed;
	p->harvested_ok = now.ok;
	p->harvested_failed = now.failed;
}

uint64_t members_last_used(const struct members *m, uint32_t member)
{
	uint64_t at = last_used(m, member);
	return at > m->past[member].since_ns ? at : 0;
}

void members_totals(const struct members *m, uint32_t member, struct member_totals *ret)
{
	const struct counts *before = &m->past[member].before;
	struct counts now = sum(m, member);
	*ret = (struct member_totals){
		.issued = now.issued - before->issued,
		.ok = now.ok - before->ok,
		.failed = now.failed - before->failed,
	};
	// Read one after the other.
	ret->active = now.issued > ended(&now) ? now.issued - ended(&now) : 0;
}

bool members_is_used(const struct members *m, uint32_t member)
{
	struct member_totals totals;
	members_totals(m, member, &totals);
	return totals.issued > 0;
}
