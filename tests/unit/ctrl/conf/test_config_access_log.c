// SPDX-License-Identifier: Apache-2.0
// Services that shunt.yaml's access log is for, or that listeners may have.
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_access_log.h"
#include "tests/support/check.h"

#include <string.h>

// OPS-217
static void a_service_is_a_host_with_a_port_and_a_cluster_has_one(void **state)
{
	struct config_access_filter filter = {0};
	static const struct {
		const char *path, *text_format, *collector, *log_name;
		bool has_filter;
		const char *clusters[2], *addresses[2];
		const char *wrong; // NULL = it is good
	} rows[] = {
		{.collector = "127.0.0.1:9001", .has_filter = true},
		{.collector = "127.0.0.1:9001", .log_name = "edge", .path = "stdout"},
		{.collector = "127.0.0.1", .wrong = "access_log.collector: '127.0.0.1' is not a"},
		{.collector = "a:1",
			.text_format = "x",
			.wrong = "access_log.text_format: there is no access_log.path"},
		{.path = "stdout",
			.log_name = "x",
			.wrong = "access_log.log_name: there is no access_log.collector"},
		{.clusters = {"a", "b"}, .addresses = {"a:1", "a:1"}},
		{.clusters = {"a", "a"},
			.addresses = {"a:1", "b:1"},
			.wrong = "access_log.xds_collectors[1].cluster: 'a' is "
				 "access_log.xds_collectors[0] already"},
		{.clusters = {"a"},
			.addresses = {"unix:/x"},
			.wrong = "access_log.xds_collectors[0]: address: 'unix:/x' is not a host"},
		{.wrong = "access_log: none of path, collector,"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {.text = ""};
		struct config_xds_collector list[2];
		struct config_access_log a = {.path = (char *)(uintptr_t)rows[i].path,
			.text_format = (char *)(uintptr_t)rows[i].text_format,
			.collector = (char *)(uintptr_t)rows[i].collector,
			.log_name = (char *)(uintptr_t)rows[i].log_name,
			.filter = rows[i].has_filter ? &filter : NULL,
			.xds_collectors = list};
		for (; a.n_xds_collectors < 2 && rows[i].clusters[a.n_xds_collectors];
			a.n_xds_collectors++)
			list[a.n_xds_collectors] = (struct config_xds_collector){
				(char *)(uintptr_t)rows[i].clusters[a.n_xds_collectors],
				(char *)(uintptr_t)rows[i].addresses[a.n_xds_collectors]};
		struct config c = {.access_log = &a};
		int rc = config_check_access_log(&c, &err);
		if (!rc != !rows[i].wrong || (rc && !strstr(err.text, rows[i].wrong)))
			fail_msg("row %zu: %d \"%s\"", i, rc, err.text);
	}
}

static uint32_t bit(enum lb_cause cause)
{
	return UINT32_C(1) << cause;
}

// OPS-31
static void ops_31_causes_and_response_flags_add_up(void **state)
{
	const uint32_t all = (UINT32_C(1) << LB_N_CAUSES) - 1;
	static char *causes[] = {"killed", "no_route"};
	static const struct {
		unsigned n_causes;
		char *flags[2];
		uint32_t want;
		const char *wrong; // NULL = it is good
	} rows[] = {
		{.want = all},
		{.n_causes = 1, .want = 1u << LB_CAUSE_KILLED},
		{.flags = {"UO"}, .want = 1u << LB_CAUSE_OVERFLOW},
		{.n_causes = 2,
			.flags = {"UT", "NR"},
			.want = 1u << LB_CAUSE_KILLED | 1u << LB_CAUSE_NO_ROUTE |
	                        1u << LB_CAUSE_TIMEOUT},
		{.flags = {"DI"}, .want = LB_ACCESS_DELAYED},
		{.flags = {"UO", "XX"},
			.wrong = "access_log.filter.response_flags[1]: 'XX' is not a response "
				 "flag, like NR"},
		{.flags = {"-"}, .wrong = "access_log.filter.response_flags[0]: '-' is not"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {.text = ""};
		char *flags[] = {rows[i].flags[0], rows[i].flags[1]};
		struct config_access_filter f = {.causes = rows[i].n_causes ? causes : NULL,
			.n_causes = rows[i].n_causes,
			.response_flags = flags[0] ? flags : NULL,
			.n_response_flags = !!flags[0] + !!flags[1]};
		struct config_access_log a = {.path = "stdout", .filter = &f};
		struct config c = {.access_log = &a};
		int rc = config_check_access_log(&c, &err);
		if (!rc != !rows[i].wrong || (rc && !strstr(err.text, rows[i].wrong)))
			fail_msg("row %zu: %d \"%s\"", i, rc, err.text);
		if (!rc && (c.access_filter.causes & ~bit(LB_CAUSE_OK)) !=
				   (rows[i].want & ~bit(LB_CAUSE_OK)))
			fail_msg("row %zu: %x", i, c.access_filter.causes);
	}
}

RUN_SUITE("ctrl/conf/access_log", cmocka_unit_test(ops_31_causes_and_response_flags_add_up),
	cmocka_unit_test(a_service_is_a_host_with_a_port_and_a_cluster_has_one))
