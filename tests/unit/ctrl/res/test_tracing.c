// SPDX-License-Identifier: Apache-2.0
// HttpConnectionManager.tracing: what is read of it, and what is said of the rest.
#include "ctrl/res/listener.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/json.h"
#include "tests/unit/ctrl/res/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPENTELEMETRY "envoy.config.trace.v3.OpenTelemetryConfig"
#define TRACING(fields) ROUTED(RDS ",'tracing':{" fields "}")
#define PROVIDER(type) "'provider':{'name':'p','typedConfig':" ANY(type, "") "}"
#define TAGS(list) "'customTags':[" list "]"
#define ONE_TAG "{'tag':'a','literal':{'value':'x'}}"
#define FOUR_TAGS ONE_TAG "," ONE_TAG "," ONE_TAG "," ONE_TAG
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
		{"tags", TRACING(TAGS("{'tag':'a','literal':{'value':'1'}}"))},
		{"a tag of nothing", TRACING(TAGS("{'tag':'a'}")), NULL,
			"tracing: custom_tags: a: is of no kind that is supported"},
		{"a tag without name", TRACING(TAGS("{'literal':{'value':'1'}}")), NULL,
			"tracing: custom_tags: tag \"\" has not between 1 and 46 bytes"},
		{"metadata", TRACING(TAGS("{'tag':'a','metadata':{'defaultValue':'1'}}")), NULL,
			"tracing: custom_tags: a: metadata is not kept: it has its default_value"},
		{"too many tags", TRACING(TAGS(FOUR_TAGS "," FOUR_TAGS "," ONE_TAG)), NULL,
			"tracing: custom_tags: those behind the first 8 are ignored"},
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

// OPS-220
static void tags_are_what_they_are_made_of(void **state)
{
	setenv("SHUNT_TEST_ZONE", "eu-1", 1);
	struct xds_res *res = res_decode(&res_type_listener,
		TRACING(TAGS("{'tag':'l','literal':{'value':'1'}},"
			     "{'tag':'e','environment':{'name':'SHUNT_TEST_ZONE'}},"
			     "{'tag':'n','environment':{'name':'SHUNT_TEST_NONE',"
			     "'defaultValue':'2'}},"
			     "{'tag':'none'},"
			     "{'tag':'h','requestHeader':{'name':'X-Tenant'}},"
			     "{'tag':'d','requestHeader':{'name':':path','defaultValue':'3'}},"
			     "{'tag':'m','metadata':{'defaultValue':'4'}}")));
	static const char *const want[][3] = {{"l", "", "1"}, {"e", "", "eu-1"}, {"n", "", "2"},
		{"h", "x-tenant", ""}, {"d", ":path", "3"}, {"m", "", "4"}};
	const struct lb_tracing *t = &res_listener_from(res)->tracing;
	assert_int_equal(t->n_tags, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < t->n_tags; i++)
		if (!str_eq(t->tags[i].key, str_from(want[i][0])) ||
			!str_eq(t->tags[i].header, str_from(want[i][1])) ||
			!str_eq(t->tags[i].value, str_from(want[i][2])))
			fail_msg("%s", want[i][0]);
	xds_res_put(res);
	unsetenv("SHUNT_TEST_ZONE");
}

RUN_SUITE("ctrl/res/tracing", cmocka_unit_test(what_is_not_supported_is_left_out_with_a_warning),
	cmocka_unit_test(ops_163_a_listener_says_what_is_traced),
	cmocka_unit_test(tags_are_what_they_are_made_of))
