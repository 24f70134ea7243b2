// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/access.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"

#include <stddef.h>
#include <string.h>

_Static_assert(LB_ACCESS_BYTES <= UINT16_MAX, "places are 16 bits");

struct lb_access *lb_access_new(const struct lb_access_filter *filter)
{
	struct lb_access *a = cacheline_alloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->has_own = filter;
	if (filter)
		a->filter = *filter;
	if (spsc_init(&a->ring, sizeof(struct lb_access_record), LB_ACCESS_RECORDS)) {
		cacheline_free(a);
		return NULL;
	}
	return a;
}

void lb_access_free(struct lb_access *a)
{
	if (!a)
		return;
	spsc_fini(&a->ring);
	cacheline_free(a);
}

void lb_access_begin(struct lb_access_record *a)
{
	memset(a, 0, offsetof(struct lb_access_record, bytes));
}

void lb_access_put(struct lb_access_record *a, enum lb_access_text which, struct str s)
{
#define X(name, most) most,
	static const uint16_t room[LB_ACCESS_N_TEXTS] = {LB_ACCESS_TEXTS(X)};
#undef X
	DCHECK(!a->made[which]);
	if (s.len > room[which]) {
		s.len = room[which];
		a->cut |= (uint16_t)(1 << which);
	}
	if (s.len)
		memcpy(a->bytes + a->n_bytes, s.p, s.len);
	a->made[which] = (uint32_t)a->n_bytes << 16 | (uint32_t)s.len;
	a->n_bytes = (uint16_t)(a->n_bytes + s.len);
}

bool lb_access_wants(const struct lb_access_filter *f, const struct lb_access_brief *a)
{
	if (a->draw < f->sample || (f->min_ns && a->ended_ns - a->began_ns >= f->min_ns) ||
		(f->causes & LB_ACCESS_DELAYED & lb_access_bits(a)))
		return true;
	if (a->cause != LB_CAUSE_OK)
		return f->causes >> a->cause & 1;
	return a->status >= f->min_status ||
	       (a->grpc_status && a->grpc_status != LB_ACCESS_NO_GRPC);
}

void lb_access_tell(struct lb_access *to, const struct lb_access_record *a)
{
	void *place = spsc_place(&to->ring);
	if (!place) {
		counter_add(&to->n_dropped, 1);
		return;
	}
	memcpy(place, a, offsetof(struct lb_access_record, bytes) + a->n_bytes);
	spsc_placed(&to->ring);
}
