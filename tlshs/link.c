// SPDX-License-Identifier: Apache-2.0
#include "tlshs/link.h"

#include "lb/base/check.h"

int tlshs_link_init(struct tlshs_link *l, uint32_t n_slots)
{
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

bool tlshs_link_start(struct tlshs_link *l, uint64_t id, struct tlshs_context *c,
	struct str server_name, uint64_t source)
{
	DCHECK(server_name.len <= TLSHS_MAX_NAME);
	struct tlshs_order o;
	o.id = id;
	o.kind = TLSHS_START;
	o.len = (uint16_t)server_name.len;
	o.source = source;
	o.context = c;
	if (server_name.len)
		memcpy(o.bytes, server_name.p, server_name.len);
	return spsc_write(&l->orders, &o);
}

size_t tlshs_link_send(struct tlshs_link *l, uint64_t id, const uint8_t *p, size_t len)
{
	struct tlshs_order o;
	o.id = id;
	o.kind = TLSHS_BYTES;
	size_t at = 0;
	for (size_t n; at < len; at += n) {
		n = len - at < TLSHS_SLOT ? len - at : TLSHS_SLOT;
		o.len = (uint16_t)n;
		memcpy(o.bytes, p + at, n);
		if (!spsc_stage(&l->orders, &o))
			break;
	}
	spsc_publish(&l->orders);
	return at;
}

static bool send_alone(struct tlshs_link *l, uint64_t id, enum tlshs_order_kind kind)
{
	struct tlshs_order o;
	o.id = id;
	o.kind = (uint8_t)kind;
	o.len = 0;
	return spsc_write(&l->orders, &o);
}

bool tlshs_link_eof(struct tlshs_link *l, uint64_t id)
{
	return send_alone(l, id, TLSHS_EOF);
}

bool tlshs_link_stop(struct tlshs_link *l, uint64_t id)
{
	return send_alone(l, id, TLSHS_STOP);
}

bool tlshs_link_read(struct tlshs_link *l, struct tlshs_answer *ret)
{
	return spsc_take(&l->answers, ret);
}
