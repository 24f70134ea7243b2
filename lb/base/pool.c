// SPDX-License-Identifier: Apache-2.0
#include "lb/base/pool.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pool_init(struct pool *p, size_t size, uint32_t n)
{
	size = (size + 15) & ~(size_t)15;
	uint8_t *memory = cacheline_alloc(n, size);
	if (!memory)
		return -ENOMEM;
	*p = (struct pool){.memory = memory, .size = size, .n_total = n, .n_fresh = n};
	return 0;
}

void pool_fini(struct pool *p)
{
	cacheline_free(p->memory);
	*p = (struct pool){0};
}

void *pool_take(struct pool *p)
{
	void *object = p->free;
	if (object) {
		memcpy(&p->free, object, sizeof(p->free));
	} else if (p->n_fresh) {
		object = p->memory + (size_t)(p->n_total - p->n_fresh) * p->size;
		p->n_fresh--;
	} else {
		return NULL;
	}
	pool_count(&p->n_used, &p->n_peak, p->n_used + 1);
	return object;
}

void pool_put(struct pool *p, void *object)
{
	if (!object)
		return;
	DCHECK((uint8_t *)object >= p->memory &&
		(uint8_t *)object < p->memory + p->n_total * p->size);
	DCHECK(p->n_used > 0);
	memcpy(object, &p->free, sizeof(p->free));
	p->free = object;
	gauge_set(&p->n_used, p->n_used - 1);
}

void pool_list_add_view(struct pool_list *l, const struct pool_view *view)
{
	CHECK(l->n < POOL_LIST_MAX);
	l->views[l->n++] = *view;
}

void pool_list_add(struct pool_list *l, const char *name, struct pool *p)
{
	pool_list_add_view(l, &(struct pool_view){.name = name,
				      .size = p->size,
				      .n_total = p->n_total,
				      .n_used = &p->n_used,
				      .n_peak = &p->n_peak});
}

void pool_list_clear_peaks(const struct pool_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		gauge_set(l->views[i].n_peak, *l->views[i].n_used);
}
