// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf_picker.h"

#include "lb/affinity_map.h"
#include "lb/breaker.h"
#include "lb/leaf.h"
#include "lb/loads.h"
#include "lb/metrics.h"
#include "lb/picker.h"

#include <stdlib.h>

struct leaf_picker {
	struct lb_leaf_picker head;
	struct lb_picker *child; // counted
	struct lb_drops *drops; // counted
	struct lb_loads *loads; // counted; NULL = none
	struct lb_metrics *metrics; // counted; NULL = none
	struct lb_affinity_map *affinity; // counted; NULL = none
	char name[];
};

const struct lb_cell *lb_leaf_pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct leaf_picker *p = (const struct leaf_picker *)base;
	return p->child->pick(p->child, ctx);
}

static void picker_free(struct lb_picker *base)
{
	struct leaf_picker *p = (struct leaf_picker *)base;
	lb_picker_put(p->child);
	lb_drops_put(p->drops);
	lb_loads_put(p->loads);
	lb_metrics_put(p->metrics);
	lb_affinity_map_put(p->affinity);
	lb_breaker_put(p->head.layer.breaker);
	free(p);
}

struct lb_picker *lb_leaf_picker_new(const struct lb_leaf_layer *layer, struct lb_picker *child)
{
	size_t size = strlen(layer->name) + 1;
	struct leaf_picker *p = calloc(1, sizeof(*p) + size);
	if (!p)
		return NULL;
	*p = (struct leaf_picker){.head = {{1, lb_leaf_pick, picker_free}, *layer},
		.child = lb_picker_get(child),
		.drops = lb_drops_get((struct lb_drops *)(uintptr_t)layer->drops),
		.loads = lb_loads_get((struct lb_loads *)(uintptr_t)layer->loads),
		.metrics = lb_metrics_get((struct lb_metrics *)(uintptr_t)layer->metrics)};
	if (layer->affinity)
		p->affinity =
			lb_affinity_map_get((struct lb_affinity_map *)(uintptr_t)layer->affinity);
	lb_breaker_get_again(p->head.layer.breaker);
	memcpy(p->name, layer->name, size);
	p->head.layer.name = p->name;
	return &p->head.base;
}
