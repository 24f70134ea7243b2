// SPDX-License-Identifier: Apache-2.0
#include "tlshs/owing.h"

#include "lb/base/container_of.h"
#include "lb/base/counter.h"

#define LOOKED_AT 16 // of the late ones, for one of the largest source

void tlshs_owing_init(struct tlshs_owing *o, uint32_t max, uint64_t patience_ns)
{
	*o = (struct tlshs_owing){.max = max, .patience_ns = patience_ns};
	list_init(&o->seats);
}

void tlshs_owing_renew(struct tlshs_seat *s, uint64_t now_ns)
{
	if (!s->debtors)
		return;
	s->asked_ns = now_ns;
	list_remove(&s->owing);
	list_append(&s->debtors->seats, &s->owing);
}

void tlshs_owing_add(struct tlshs_owing *o, struct tlshs_seat *s, uint64_t now_ns)
{
	s->debtors = o;
	o->n++;
	tlshs_owing_renew(s, now_ns);
}

void tlshs_owing_remove(struct tlshs_seat *s)
{
	if (!s->debtors)
		return;
	list_remove(&s->owing);
	s->debtors->n--;
	s->debtors = NULL;
}

static bool is_short(const struct tlshs_owing *o, const struct tlshs_census *c)
{
	return o->n > o->max / 2 || (c->max && gauge_read(&c->open) > c->max / 2);
}

struct tlshs_seat *tlshs_owing_find(
	const struct tlshs_owing *o, const struct tlshs_census *c, uint64_t now_ns)
{
	struct tlshs_seat *found = NULL;
	uint32_t most = 0, n = 0;
	if (!is_short(o, c))
		return NULL;
	for (struct list_link *l = list_first(&o->seats); l && n < LOOKED_AT;
		l = list_after(&o->seats, l)) {
		struct tlshs_seat *s = CONTAINER_OF(l, struct tlshs_seat, owing);
		if (now_ns < s->asked_ns + o->patience_ns)
			break;
		if (list_linked(&s->ready)) // it waits for us
			continue;
		n++;
		uint32_t of_source = sketch_count(&c->of_source, s->source);
		if (of_source > most) {
			found = s;
			most = of_source;
		}
	}
	return found;
}
