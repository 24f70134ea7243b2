// SPDX-License-Identifier: Apache-2.0
#include "tlshs/link.h"

#include "lb/base/check.h"

int tlshs_link_init(struct tlshs_link *l, uint32_t n_slots)
{
	l->n_done = 0;
	l->source_key = NULL;
	int is = spsc_init(&l->orders, sizeof(struct tlshs_order), n_slots);
	if (is)
		return is;
	is = spsc_init(&l->answers, sizeof(struct tlshs_answer), n_slots);
	if (is)
		spsc_fini(&l->orders);
	return is;
}

void tlshs_link_fini(struct tlshs_link *l)
{
	spsc_fini(&l->orders);
	spsc_fini(&l->answers);
}

// In place, and no more of it than what it says: another core has the lines of the ring.
static struct tlshs_order *place(struct tlshs_link *l, uint64_t id, enum tlshs_order_kind kind)
{
	struct tlshs_order *o = spsc_place(&l->orders);
	if (!o)
		return NULL;
	o->id = id;
	o->kind = (uint8_t)kind;
	o->len = 0;
	return o;
}

static void fill(struct tlshs_order *o, const void *p, size_t len)
{
	o->len = (uint16_t)len;
	if (len)
		memcpy(o->bytes, p, len);
}

bool tlshs_link_start(struct tlshs_link *l, uint64_t id, struct tlshs_context *c,
	struct str server_name, uint64_t source)
{
	DCHECK(server_name.len <= TLSHS_MAX_NAME);
	struct tlshs_order *o = place(l, id, TLSHS_START);
	if (!o)
		return false;
	o->source = source;
	o->context = c;
	fill(o, server_name.p, server_name.len);
	spsc_placed(&l->orders);
	return true;
}

size_t tlshs_link_send(struct tlshs_link *l, uint64_t id, const uint8_t *p, size_t len)
{
	struct tlshs_order *o;
	size_t at = 0;
	for (size_t n; at < len && (o = place(l, id, TLSHS_BYTES)); at += n) {
		n = len - at < TLSHS_SLOT ? len - at : TLSHS_SLOT;
		fill(o, p + at, n);
		spsc_placed(&l->orders);
	}
	return at;
}

static bool send_alone(struct tlshs_link *l, uint64_t id, enum tlshs_order_kind kind)
{
	if (!place(l, id, kind))
		return false;
	spsc_placed(&l->orders);
	return true;
}

bool tlshs_link_eof(struct tlshs_link *l, uint64_t id)
{
	return send_alone(l, id, TLSHS_EOF);
}

bool tlshs_link_stop(struct tlshs_link *l, uint64_t id)
{
	return send_alone(l, id, TLSHS_STOP);
}

bool tlshs_link_ticket(struct tlshs_link *l, uint64_t promise, const uint8_t *p, size_t len)
{
	size_t n = (len + TLSHS_SLOT - 1) / TLSHS_SLOT;
	if (!n || len > TLSHS_MAX_TICKET || spsc_room(&l->orders) < n)
		return false;
	for (size_t at = 0; at < len; at += TLSHS_SLOT) {
		struct tlshs_order *o = place(l, promise, TLSHS_TICKET);
		CHECK(o);
		o->n_left = (uint16_t)(len - at);
		fill(o, p + at, len - at < TLSHS_SLOT ? len - at : TLSHS_SLOT);
		spsc_stage_placed(&l->orders);
	}
	spsc_publish(&l->orders);
	return true;
}

bool tlshs_link_is_busy(const struct tlshs_link *l)
{
	// Pairs with the release of tlshs_link_rest().
	return __atomic_load_n(&l->n_done, __ATOMIC_ACQUIRE) != spsc_n_placed(&l->orders);
}

void tlshs_link_rest(struct tlshs_link *l)
{
	uint32_t n = spsc_n_passed(&l->orders);
	if (l->n_done != n)
		__atomic_store_n(&l->n_done, n, __ATOMIC_RELEASE);
}

const struct tlshs_answer *tlshs_link_peek(struct tlshs_link *l)
{
	return spsc_peek(&l->answers);
}

void tlshs_link_pass(struct tlshs_link *l)
{
	struct tlshs_answer *a = spsc_peek(&l->answers);
	DCHECK(a);
	if (a->kind == TLSHS_END && a->outcome == TLSHS_ok)
		tlshs_result_wipe(&a->result);
	spsc_pass(&l->answers);
}
