// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/inflight.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"

#include <string.h>

const char *lb_inflight_state_name(enum lb_inflight_kind kind, uint32_t n)
{
#define X(name) #name,
	static const char *const of_requests[] = {LB_INFLIGHT_REQUEST_STATES(X)};
	static const char *const of_conns[] = {LB_INFLIGHT_CONN_STATES(X)};
	static const char *const of_neighbors[] = {LB_INFLIGHT_NEIGHBOR_STATES(X)};
#undef X
	if (kind == LB_INFLIGHT_REQUESTS)
		return n < LB_N_REQUEST_STATES ? of_requests[n] : NULL;
	if (kind == LB_INFLIGHT_NEIGHBORS)
		return n < LB_N_NEIGHBOR_STATES ? of_neighbors[n] : NULL;
	return kind == LB_INFLIGHT_CONNS && n < LB_N_CONN_STATES ? of_conns[n] : NULL;
}

struct lb_inflight *lb_inflight_new(void)
{
	return cacheline_alloc(1, sizeof(struct lb_inflight));
}

void lb_inflight_free(struct lb_inflight *f)
{
	cacheline_free(f);
}

bool lb_inflight_is_free(const struct lb_inflight *f)
{
	return !__atomic_load_n(&f->asked, __ATOMIC_ACQUIRE); // pairs with done()
}

void lb_inflight_ask(struct lb_inflight *f, const struct lb_inflight_query *query)
{
	DCHECK(query->limit >= 1 && query->limit <= LB_INFLIGHT_ROWS);
	f->query = *query;
	f->n_all = f->n_matching = f->n_rows = 0;
	f->ends = false;
	// The ring of commands brings the worker what was written here.
	__atomic_store_n(&f->asked, true, __ATOMIC_RELEASE);
}

void lb_inflight_end(struct lb_inflight *f)
{
	f->ends = true;
	f->n_ended = 0;
	__atomic_store_n(&f->asked, true, __ATOMIC_RELEASE); // as in ask()
}

void lb_inflight_take_back(struct lb_inflight *f)
{
	__atomic_store_n(&f->asked, false, __ATOMIC_RELAXED);
}

static uint64_t began(const struct lb_inflight *f, uint32_t at)
{
	return f->rows[f->heap[at]].began_ns;
}

static void swap(struct lb_inflight *f, uint32_t a, uint32_t b)
{
	uint32_t was = f->heap[a];
	f->heap[a] = f->heap[b];
	f->heap[b] = was;
}

// No parent in the heap is older than its children.
static void rise(struct lb_inflight *f, uint32_t at)
{
	for (; at && began(f, (at - 1) / 2) < began(f, at); at = (at - 1) / 2)
		swap(f, at, (at - 1) / 2);
}

static void sink(struct lb_inflight *f)
{
	for (uint32_t at = 0, child; (child = 2 * at + 1) < f->n_rows; at = child) {
		if (child + 1 < f->n_rows && began(f, child + 1) > began(f, child))
			child++;
		if (began(f, child) <= began(f, at))
			return;
		swap(f, at, child);
	}
}

struct lb_inflight_row *lb_inflight_find_place(struct lb_inflight *f, uint64_t began_ns)
{
	f->n_matching++;
	if (f->n_rows < f->query.limit) {
		uint32_t at = f->n_rows++;
		struct lb_inflight_row *row = &f->rows[at];
		f->heap[at] = at;
		row->began_ns = began_ns;
		row->is_marked = false;
		rise(f, at);
		return row;
	}
	struct lb_inflight_row *youngest = &f->rows[f->heap[0]];
	if (began_ns >= youngest->began_ns)
		return NULL;
	youngest->began_ns = began_ns;
	sink(f);
	return youngest;
}

void lb_inflight_done(struct lb_inflight *f)
{
	__atomic_store_n(&f->asked, false, __ATOMIC_RELEASE); // pairs with is_free()
}

void lb_inflight_put(char *to, size_t size, struct str text)
{
	size_t len = text.len < size ? text.len : size - 1;
	if (len)
		memcpy(to, text.p, len);
	to[len] = 0;
}
