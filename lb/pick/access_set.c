// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/access_set.h"

#include "lb/base/time.h"

#include <stdlib.h>
#include <string.h>

static bool compare(enum lb_access_op op, uint64_t value, uint64_t with)
{
	switch (op) {
	case LB_ACCESS_EQ:
		return value == with;
	case LB_ACCESS_GE:
		return value >= with;
	case LB_ACCESS_LE:
		return value <= with;
	case LB_ACCESS_NE:
		return value != with;
	}
	return false;
}

// One draw a request is enough: each salt makes another number of it (the finalizer of
// MurmurHash3).
static uint32_t draw_of(uint32_t draw, uint32_t salt)
{
	uint32_t h = draw ^ salt;
	if (!salt)
		return draw;
	h = (h ^ h >> 16) * UINT32_C(0x85ebca6b);
	h = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
	return h ^ h >> 16;
}

// gRPC's "HTTP to gRPC Status Code Mapping", as Envoy's GrpcStatusFilter has it.
static unsigned grpc_of(const struct lb_access_brief *a)
{
	if (a->grpc_status != LB_ACCESS_NO_GRPC)
		return a->grpc_status;
	switch (a->status) {
	case 400:
		return 13;
	case 401:
		return 16;
	case 403:
		return 7;
	case 404:
		return 12;
	case 429:
	case 502:
	case 503:
	case 504:
		return 14;
	default:
		return 2;
	}
}

// True if all of those within hold, or any.
static bool holds_within(
	const struct lb_access_test *t, const struct lb_access_brief *a, bool wants_all)
{
	for (unsigned i = 1; i <= t->n; i += 1 + t[i].n)
		if (lb_access_holds(&t[i], a) != wants_all)
			return !wants_all;
	return wants_all;
}

bool lb_access_holds(const struct lb_access_test *t, const struct lb_access_brief *a)
{
	switch ((enum lb_access_kind)t->kind) {
	case LB_ACCESS_ALL:
		return holds_within(t, a, true);
	case LB_ACCESS_ANY:
		return holds_within(t, a, false);
	case LB_ACCESS_STATUS:
		return compare(t->op, a->status, t->value);
	case LB_ACCESS_DURATION:
		return compare(t->op, (a->ended_ns - a->began_ns) / NS_PER_MS, t->value);
	case LB_ACCESS_CHANCE:
		return draw_of(a->draw, t->salt) < t->value;
	case LB_ACCESS_CAUSES:
		return t->value & lb_access_bits(a);
	case LB_ACCESS_GRPC:
		return t->value >> grpc_of(a) & 1;
	}
	return false;
}

static uint32_t n_tests(const struct lb_access_log *l)
{
	return l->test ? 1u + l->test->n : 0;
}

struct lb_access_set *lb_access_set_new(const struct lb_access_log *logs, uint32_t n)
{
	size_t len = sizeof(struct lb_access_set) + n * sizeof(*logs);
	size_t tests_at = len;
	for (uint32_t i = 0; i < n; i++)
		len += n_tests(&logs[i]) * sizeof(struct lb_access_test);
	struct lb_access_set *s = malloc(len);
	if (!s)
		return NULL;
	s->n_refs = 1;
	s->n = n;
	struct lb_access_test *to = (void *)((char *)s + tests_at);
	for (uint32_t i = 0; i < n; i++) {
		s->logs[i] = (struct lb_access_log){.bit = logs[i].bit};
		if (!logs[i].test)
			continue;
		s->logs[i].test = memcpy(to, logs[i].test, n_tests(&logs[i]) * sizeof(*to));
		to += n_tests(&logs[i]);
	}
	return s;
}

struct lb_access_set *lb_access_set_get(struct lb_access_set *s)
{
	if (s)
		s->n_refs++;
	return s;
}

void lb_access_set_put(struct lb_access_set *s)
{
	if (s && !--s->n_refs)
		free(s);
}

uint64_t lb_access_set_want(const struct lb_access_set *s, const struct lb_access_brief *a)
{
	uint64_t bits = 0;
	for (uint32_t i = 0; s && i < s->n; i++)
		if (!s->logs[i].test || lb_access_holds(s->logs[i].test, a))
			bits |= s->logs[i].bit;
	return bits;
}
