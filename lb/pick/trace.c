// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/trace.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/base/min.h"

#include <stddef.h>
#include <string.h>

uint64_t lb_trace_attempt_span(const struct lb_trace_ids *ids, uint32_t attempt)
{
	// splitmix64's steps are a bijection: one value alone becomes 0.
	uint64_t z = ids->span + (attempt + 1) * UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return z ? z : 1;
}

void lb_trace_tags_add(struct lb_trace_tags *t, struct str key, struct str value)
{
	value.len = min_size(value.len, LB_TRACE_TAG_VALUE);
	CHECK(key.len <= LB_TRACE_TAG_KEY &&
		2 + key.len + value.len <= sizeof(t->bytes) - t->n_bytes);
	char *p = t->bytes + t->n_bytes;
	p[0] = (char)key.len;
	p[1] = (char)value.len;
	memcpy(p + 2, key.p, key.len);
	if (value.len)
		memcpy(p + 2 + key.len, value.p, value.len);
	t->n_bytes = (uint16_t)(t->n_bytes + 2 + key.len + value.len);
}

bool lb_trace_tags_next(
	const struct lb_trace_tags *t, uint16_t *at, struct str *retkey, struct str *retvalue)
{
	if (*at == t->n_bytes)
		return false;
	const char *p = t->bytes + *at;
	*retkey = (struct str){p + 2, (unsigned char)p[0]};
	*retvalue = (struct str){p + 2 + retkey->len, (unsigned char)p[1]};
	*at = (uint16_t)(*at + 2 + retkey->len + retvalue->len);
	return true;
}

void lb_trace_tags_copy(struct lb_trace_tags *to, const struct lb_trace_tags *from)
{
	memcpy(to, from, offsetof(struct lb_trace_tags, bytes) + from->n_bytes);
}

struct lb_trace *lb_trace_new(void)
{
	struct lb_trace *t = cacheline_alloc(1, sizeof(*t));
	if (!t)
		return NULL;
	if (spsc_init(&t->ring, sizeof(struct lb_trace_record), LB_TRACE_RECORDS)) {
		cacheline_free(t);
		return NULL;
	}
	return t;
}

void lb_trace_free(struct lb_trace *t)
{
	if (!t)
		return;
	spsc_fini(&t->ring);
	cacheline_free(t);
}

struct lb_trace_record *lb_trace_place(struct lb_trace *t)
{
	struct lb_trace_record *r = spsc_place(&t->ring);
	if (!r)
		counter_add(&t->n_dropped, 1);
	return r;
}

void lb_trace_told(struct lb_trace *t)
{
	spsc_placed(&t->ring);
}
