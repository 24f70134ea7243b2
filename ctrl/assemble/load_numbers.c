// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/load_numbers.h"

#include "ctrl/assemble/workers.h"
#include "lb/base/check.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"
#include "lb/pick/loads.h"

#include <errno.h>
#include <stdlib.h>

int load_numbers_init(struct load_numbers *l, const struct workers *workers,
	const struct twheel *wheel, uint32_t n)
{
	CHECK(n <= LB_MAX_LOADS);
	l->workers = workers;
	l->wheel = wheel;
	l->n = n;
	l->list = calloc(n, sizeof(*l->list));
	return l->list ? ids_init(&l->ids, n - 1, 0) : -ENOMEM;
}

void load_numbers_fini(struct load_numbers *l)
{
	free(l->list);
	ids_fini(&l->ids);
}

// Ends before beginnings: a request that ends meanwhile counts as one still in flight, not as one
// that never began.
struct lb_load_counters load_numbers_sum(const struct load_numbers *l, uint32_t number)
{
	struct lb_load_counters s = {0};
	for (uint32_t i = 0; i < workers_count(l->workers); i++) {
		const struct lb_load_counters *c = &workers_link(l->workers, i)->loads[number];
		s.ok += counter_read(&c->ok);
		s.failed += counter_read(&c->failed);
		s.issued += counter_read(&c->issued);
	}
	return s;
}

static uint64_t open_requests(const struct lb_load_counters *s)
{
	return s->issued - s->ok - s->failed;
}

int64_t load_numbers_in_flight(
	const struct load_numbers *l, uint32_t number, const struct lb_load_counters *sum)
{
	return (int64_t)(open_requests(sum) - l->list[number].idle);
}

// It is not where a request came late, by an old snapshot, and has not ended.
static bool is_idle(void *ctx, uint32_t id)
{
	const struct load_numbers *l = ctx;
	struct load_number *n = &l->list[id + 1];
	struct lb_load_counters s = load_numbers_sum(l, id + 1);
	if (n->had_drops)
		n->idle = open_requests(&s);
	return open_requests(&s) == n->idle;
}

uint32_t load_numbers_take(struct load_numbers *l, void *owner)
{
	uint32_t id = ids_take_idle(&l->ids, twheel_now(l->wheel), UINT32_MAX, is_idle, l);
	if (id == IDS_NONE)
		return 0;
	l->list[id + 1].owner = owner;
	return id + 1;
}

void load_numbers_give(struct load_numbers *l, uint32_t number, bool had_drops)
{
	l->list[number].had_drops = had_drops;
	l->list[number].owner = NULL;
	ids_give(&l->ids, number - 1, twheel_now(l->wheel));
}

void *load_numbers_owner(const struct load_numbers *l, uint32_t number)
{
	CHECK(number < l->n);
	return l->list[number].owner;
}
