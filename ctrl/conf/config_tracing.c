// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_tracing.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_address.h"
#include "ctrl/conf/config_numbers.h"

#include <errno.h>

int config_check_tracing(struct config *c, struct lb_err *reterr)
{
	const struct config_tracing none = {0}, *t = c->tracing ? c->tracing : &none;
	uint32_t per_million;
	if (config_number_check(CONFIG_TRACE_SAMPLE, t->sample_per_million, &per_million, reterr))
		return -EINVAL;
	if (t->collector && config_check_host_port("tracing.collector", t->collector, reterr))
		return -EINVAL;
	c->traced = (struct lb_tracing){
		.on = c->tracing,
		.upstream_spans = t->upstream_spans,
		.path_max = LB_TRACE_PATH_MAX,
		.client = LB_TRACE_ALL,
		.random = per_million * LB_TRACE_ALL / 1000000,
		.overall = LB_TRACE_ALL,
	};
	return 0;
}
