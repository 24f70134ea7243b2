// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_tracing.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static void a_collector_is_a_host_with_a_port(void **state)
{
	static const struct {
		const char *collector;
		bool is_good;
	} rows[] = {
		{"127.0.0.1:4317", true},
		{"otel.example:4317", true},
		{"[::1]:4317", true},
		{"otel.example", false},
		{"otel.example:0", false},
		{"otel.example:65536", false},
		{"otel.example:4317x", false},
		{":4317", false},
		{"[]:4317", false},
		{"::1:4317", false},
		{"unix:/run/otel:1", false},
		{"dns:///otel:1", false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[64];
		struct lb_err err = {0};
		struct config_tracing tracing = {.collector = text};
		struct config c = {.tracing = &tracing};
		snprintf(text, sizeof(text), "%s", rows[i].collector);
		int rc = config_check_tracing(&c, &err);
		if (!rc != rows[i].is_good || (rc && !strstr(err.text, "tracing.collector: '")))
			fail_msg("%s: %d \"%s\"", rows[i].collector, rc, err.text);
		if (!rc)
			assert_true(c.traced.on && c.traced.overall == LB_TRACE_ALL);
	}
}

static void chances_have_a_range_and_nothing_is_traced_without_a_collector(void **state)
{
	struct lb_err err = {0};
	uint32_t per_million = 250000;
	struct config_tracing tracing = {
		.collector = (char[]){"a:1"}, .sample_per_million = &per_million};
	struct config c = {.tracing = &tracing};
	assert_int_equal(config_check_tracing(&c, &err), 0);
	assert_int_equal(c.traced.random, LB_TRACE_ALL / 4);
	per_million = 1000001;
	assert_int_not_equal(config_check_tracing(&c, &err), 0);
	assert_non_null(strstr(err.text, "tracing.sample_per_million: 1000001 is outside"));
	c.tracing = NULL;
	assert_int_equal(config_check_tracing(&c, &err), 0);
	assert_false(c.traced.on);
}

RUN_SUITE("ctrl/conf/tracing", cmocka_unit_test(a_collector_is_a_host_with_a_port),
	cmocka_unit_test(chances_have_a_range_and_nothing_is_traced_without_a_collector))
