// SPDX-License-Identifier: Apache-2.0
// HttpConnectionManager.tracing: what is read of it, and what is said of the rest.
#include "ctrl/res/listener.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/json.h"
#include "tests/unit/ctrl/res/rows.h"

#include <stdio.h>
#include <string.h>

#define OPENTELEMETRY "envoy.config.trace.v3.OpenTelemetryConfig"
#define TRACING(fields) ROUTED(RDS ",'tracing':{" fields "}")
#define PROVIDER(type) "'provider':{'name':'p','typedConfig':" ANY(type, "") "}"
#define ALL LB_TRACE_ALL

// OPS-163: none of it is a reason to refuse a listener.
static void what_is_not_supported_is_left_out_with_a_warning(void **state)
{
	static const struct res_row rows[] = {
		{"empty", TRACING("")},
		{"OpenTelemetry", TRACING(PROVIDER(OPENTELEMETRY))},
		{"another provider", TRACING(PROVIDER(ROUTER_TYPE)), NULL,
			"tracing is ignored: provider: is not OpenTelemetryConfig"},
		{"a provider without type", TRACING("'provider':{'name':'p'}"), NULL,
			"tracing is ignored: provider: is not OpenTelemetryConfig"},
		{"custom tags", TRACING("'customTags':[{'tag':'a'}]"), NULL,
			"tracing: custom_tags are ignored"},
	};
	RUN_ROWS(&res_type_listener, rows);
}

static void ops_163_a_listener_says_what_is_traced(void **state)
{
	static const struct {
		const char *json;
		struct lb_tracing want;
	} rows[] = {
		{ROUTED(RDS), {.on = false}},
		{TRACING(PROVIDER(ROUTER_TYPE)), {.on = false}},
		{TRACING(""), {.on = true,
				      .path_max = 256,
				      .client = ALL,
				      .random = ALL,
				      .overall = ALL}},
		{TRACING("'clientSampling':{'value':50},'randomSampling':{'value':25},"
			 "'overallSampling':{'value':12.5},'spawnUpstreamSpan':true,"
			 "'maxPathTagLength':9"),
			{true, true, 9, ALL / 2, ALL / 4, ALL / 8}},
		{TRACING("'clientSampling':{'value':-1},'randomSampling':{'value':101},"
			 "'overallSampling':{'value':'NaN'},'spawnUpstreamSpan':false,"
			 "'maxPathTagLength':70000"),
			{true, false, UINT16_MAX, 0, ALL, 0}},
		{TRACING("'randomSampling':{}"),
			{.on = true, .path_max = 256, .client = ALL, .random = 0, .overall = ALL}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *res = res_decode(&res_type_listener, rows[i].json);
		const struct lb_tracing got = res_listener_from(res)->tracing;
		const struct lb_tracing *want = &rows[i].want;
		if (got.on != want->on || got.upstream_spans != want->upstream_spans ||
			got.path_max != want->path_max || got.client != want->client ||
			got.random != want->random || got.overall != want->overall)
			fail_msg("row %zu", i);
		xds_res_put(res);
	}
}

RUN_SUITE("ctrl/res/tracing", cmocka_unit_test(what_is_not_supported_is_left_out_with_a_warning),
	cmocka_unit_test(ops_163_a_listener_says_what_is_traced))
