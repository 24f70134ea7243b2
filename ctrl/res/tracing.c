// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/tracing.h"

#include "ctrl/res/common.h"
#include "envoy/config/trace/v3/opentelemetry.pb-c.h"
#include "lb/base/min.h"
#include "proto/wire.h"

typedef res_tracing_message Tracing;
typedef Envoy__Type__V3__Percent Percent;
#define TYPED_CONFIG ENVOY__CONFIG__TRACE__V3__TRACING__HTTP__CONFIG_TYPE_TYPED_CONFIG
#define PROVIDER (&envoy__config__trace__v3__open_telemetry_config__descriptor)

// Without one all, as Envoy has it; what is no number is 0.
static uint64_t chance_of(const Percent *p)
{
	if (!p || p->value >= 100)
		return LB_TRACE_ALL;
	return p->value > 0 ? (uint64_t)(p->value / 100 * (double)LB_TRACE_ALL) : 0;
}

// None: it is whoever the process has, which is shunt.yaml's collector.
static bool is_known(const Tracing *m)
{
	if (!m->provider)
		return true;
	return m->provider->config_type_case == TYPED_CONFIG &&
	       res_any_stands_for(m->provider->typed_config, PROVIDER);
}

void res_tracing_read(struct res_reader *rd, const Tracing *m, struct lb_tracing *ret)
{
	*ret = (struct lb_tracing){.on = false};
	if (!m)
		return;
	if (!is_known(m)) {
		res_warn(rd, "tracing is ignored: provider: is not OpenTelemetryConfig");
		return;
	}
	if (m->n_custom_tags)
		res_warn(rd, "tracing: custom_tags are ignored");
	uint32_t path_max =
		m->max_path_tag_length ? m->max_path_tag_length->value : LB_TRACE_PATH_MAX;
	*ret = (struct lb_tracing){
		.on = true,
		.upstream_spans = m->spawn_upstream_span && m->spawn_upstream_span->value,
		.path_max = (uint16_t)min_u64(path_max, UINT16_MAX),
		.client = chance_of(m->client_sampling),
		.random = chance_of(m->random_sampling),
		.overall = chance_of(m->overall_sampling),
	};
}
