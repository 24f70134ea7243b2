// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/leaf_layer.h"

#include "lb/leaf/leaf.h"
#include "lb/pick/breaker.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/loads.h"
#include "lb/pick/metrics.h"
#include "lb/policy/dump.h"

#include <errno.h>

int lb_leaf_layer_init(struct lb_leaf_layer *l, const struct lb_leaf_layer *before,
	struct lb_breakers *breakers, const struct lb_leaf_config *config)
{
	*l = (struct lb_leaf_layer){
		.id = before->id,
		.max_requests = config->max_requests,
		.retry_budget = config->retry_budget,
		.loads = config->loads,
		.metrics = config->metrics,
		.name = before->name,
	};
	lb_loads_get(l->loads);
	lb_metrics_get(l->metrics);
	if (before->drops && lb_drops_same(before->drops, config->drops, config->n_drops))
		l->drops = lb_drops_get(before->drops);
	else if (config->n_drops)
		l->drops = lb_drops_new(config->drops, config->n_drops);
	l->breaker = lb_breakers_get(breakers, l->name, config->eds_service_name);
	if ((l->drops || !config->n_drops) && l->breaker)
		return 0;
	lb_leaf_layer_fini(l);
	return -ENOMEM;
}

void lb_leaf_layer_fini(struct lb_leaf_layer *l)
{
	lb_drops_put(l->drops);
	lb_loads_put(l->loads);
	lb_metrics_put(l->metrics);
	lb_breaker_put(l->breaker);
	*l = (struct lb_leaf_layer){0};
}

static void dump_drops(const struct lb_drops *drops, struct lb_dump *d)
{
	for (uint32_t i = 0; drops && i < lb_drops_count(drops); i++) {
		d->enter(d, "drop", "");
		lb_dump_text(d, "category", lb_drops_name(drops, i));
		lb_dump_number(d, "per_million", lb_drops_per_million(drops, i));
		lb_dump_leave(d);
	}
}

void lb_leaf_layer_dump(const struct lb_leaf_layer *l, struct lb_dump *d)
{
	d->enter(d, "xds_cluster_impl", "");
	lb_dump_number(d, "max_requests", l->max_requests);
	lb_dump_number(d, "in_flight", l->breaker ? lb_breaker_in_flight(l->breaker) : 0);
	if (l->retry_budget.is_set) {
		lb_dump_number(d, "retries_per_million", l->retry_budget.per_million);
		lb_dump_number(d, "retries_anyway", l->retry_budget.min_concurrency);
		lb_dump_number(d, "retrying", l->breaker ? lb_breaker_retrying(l->breaker) : 0);
	}
	lb_dump_number(d, "drop_categories", l->drops ? lb_drops_count(l->drops) : 0);
	dump_drops(l->drops, d);
}
