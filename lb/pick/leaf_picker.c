// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/leaf_picker.h"

#include "lb/base/container_of.h"
#include "lb/pick/affinity_map.h"
#include "lb/pick/breaker.h"
#include "lb/pick/loads.h"
#include "lb/pick/metrics.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64 // of a cache
_Static_assert(offsetof(struct lb_leaf_picker, layer.affinity) <= LINE, "picks look at one line");

const struct lb_cell *lb_leaf_pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct lb_picker *below =
		CONTAINER_OF(base, struct lb_leaf_picker, base)->layer.picker;
	return below->pick(below, ctx);
}

static void picker_free(struct lb_picker *base)
{
	struct lb_leaf_layer *layer = &CONTAINER_OF(base, struct lb_leaf_picker, base)->layer;
	lb_drops_put(layer->drops);
	lb_breaker_put(layer->breaker);
	lb_picker_put(layer->picker);
	lb_affinity_map_put(layer->affinity);
	lb_loads_put(layer->loads);
	lb_metrics_put(layer->metrics);
	free(base);
}

struct lb_picker *lb_leaf_picker_new(const struct lb_leaf_layer *layer)
{
	size_t size = sizeof(struct lb_leaf_picker) + strlen(layer->name) + 1;
	struct lb_leaf_picker *p = aligned_alloc(LINE, (size + LINE - 1) / LINE * LINE);
	if (!p)
		return NULL;
	*p = (struct lb_leaf_picker){{1, lb_leaf_pick, picker_free}, *layer};
	lb_drops_get(layer->drops);
	lb_breaker_get_again(layer->breaker);
	lb_picker_get(layer->picker);
	if (layer->affinity)
		lb_affinity_map_get(layer->affinity);
	lb_loads_get(layer->loads);
	lb_metrics_get(layer->metrics);
	p->layer.name = strcpy((char *)(p + 1), layer->name);
	return &p->base;
}
