// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/proxy/desk.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "tlshs/context.h"
#include "tlshs/handshake.h"

void desk_init(struct desk *d, uint32_t n_slots)
{
	*d = (struct desk){.links = {&d->link}};
	list_init(&d->waiting);
	CHECK(tlshs_link_init(&d->link, n_slots) == 0);
	CHECK(tlshs_promises_init(&d->promises) == 0);
}

static void answer(struct desk *d, struct tlshs_seat *s)
{
	list_remove(&s->waiting);
	if (!tlshs_seat_answer(s, &d->link, &d->census, d->counts))
		list_append(&d->waiting, &s->waiting);
}

static void obey(struct desk *d, const struct tlshs_order *o)
{
	if (o->kind == TLSHS_TICKET) {
		tlshs_promises_feed(&d->promises, o);
		return;
	}
	uint32_t at = (uint32_t)o->id;
	CHECK(at < DESK_SEATS);
	struct tlshs_seat *s = &d->seats[at];
	CHECK(o->kind == TLSHS_START ? !s->taken : s->taken && s->id == o->id);
	if (o->kind == TLSHS_START)
		tlshs_seat_start(s, o, &d->census, &d->promises, 0);
	else if (o->kind == TLSHS_BYTES)
		if (tlshs_seat_feed(s, &d->link, o))
			tlshs_seat_run(s);
	if (o->kind == TLSHS_STOP)
		tlshs_seat_stop(s, &d->census, d->counts);
	else
		answer(d, s);
}

bool desk_turn(struct desk *d)
{
	struct tlshs_order o;
	struct list_link *l;
	while ((l = list_first(&d->waiting)) && spsc_room(&d->link.answers) > 0)
		answer(d, CONTAINER_OF(l, struct tlshs_seat, waiting));
	while (!d->asleep && list_empty(&d->waiting) && spsc_room(&d->link.answers) > 0 &&
		spsc_read(&d->link.orders, &o))
		obey(d, &o);
	if (list_empty(&d->waiting))
		tlshs_link_rest(&d->link);
	return !spsc_is_empty(&d->link.answers);
}

void desk_give_way(struct desk *d)
{
	for (uint32_t i = 0; i < DESK_SEATS; i++) {
		struct tlshs_seat *s = &d->seats[i];
		if (!s->handshake)
			continue;
		tlshs_handshake_stop(s->handshake, TLSHS_gave_way);
		answer(d, s);
	}
}

void desk_fini(struct desk *d)
{
	desk_turn(d);
	for (uint32_t i = 0; i < DESK_SEATS; i++)
		CHECK(!d->seats[i].taken);
	CHECK(d->census.open == 0);
	tlshs_promises_fini(&d->promises);
	tlshs_link_fini(&d->link);
}
