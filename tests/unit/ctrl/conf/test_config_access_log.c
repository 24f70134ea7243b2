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

RUN_SUITE("ctrl/conf/access_log",
	cmocka_unit_test(a_service_is_a_host_with_a_port_and_a_cluster_has_one))
