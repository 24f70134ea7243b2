// SPDX-License-Identifier: Apache-2.0
// docs/metrics.md: each metric has one row there, with the name that Prometheus sees, its type,
// labels and meaning, and no row is of anything else (OPS-13).
#include "ctrl/metrics/metric.h"
#include "tests/support/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// "| `a_total` | counter | `b`, `c` | Meaning. |"
static void row_of(const struct metric *m, char *to, size_t size)
{
	char labels[160] = "", copy[128], *save = NULL;
	snprintf(copy, sizeof(copy), "%s", m->labels);
	for (char *l = strtok_r(copy, " ", &save); l; l = strtok_r(NULL, " ", &save))
		snprintf(labels + strlen(labels), sizeof(labels) - strlen(labels), "%s`%s`",
			labels[0] ? ", " : "", l);
	snprintf(to, size, "\n| `%s%s` | %s | %s | %s |\n", m->name, metric_suffix(m),
		metric_type_name(m), labels[0] ? labels : "-", m->help);
}

static char *read_docs(void)
{
	FILE *f = fopen(DOCS, "r");
	assert_non_null(f);
	char *text = calloc(1, 1 << 20);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

static unsigned count_rows(const char *docs)
{
	unsigned n = 0;
	for (const char *at = docs; (at = strstr(at, "\n| `")); at++)
		n += strncmp(at, "\n| `shunt_", 10) == 0 || strncmp(at, "\n| `grpc_", 9) == 0 ||
		     strncmp(at, "\n| `process_", 12) == 0;
	return n;
}

// OPS-13
static void ops_13_each_metric_has_its_row_and_no_row_is_of_anything_else(void **state)
{
	char *docs = read_docs();
	for (int i = 0; i < N_METRICS; i++) {
		char row[512];
		row_of(&metrics[i], row, sizeof(row));
		if (!strstr(docs, row))
			fail_msg("docs/metrics.md lacks:%s", row);
	}
	assert_int_equal(count_rows(docs), N_METRICS);
	free(docs);
}

// The rules of Prometheus and OpenMetrics for names.
static void ops_13_names_follow_the_conventions(void **state)
{
	for (int i = 0; i < N_METRICS; i++) {
		const struct metric *m = &metrics[i];
		size_t len = strlen(m->name);
		assert_int_equal(strspn(m->name, "abcdefghijklmnopqrstuvwxyz_"), len);
		assert_null(strstr(m->name, "_total"));
		assert_true(m->help[0] && m->help[strlen(m->help) - 1] == '.');
		bool is_time = strstr(m->name, "duration") || strstr(m->name, "_age");
		assert_true(!is_time || strcmp(m->name + len - 8, "_seconds") == 0);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(metrics[k].name, m->name);
	}
}

RUN_SUITE("ctrl/metric_docs",
	cmocka_unit_test(ops_13_each_metric_has_its_row_and_no_row_is_of_anything_else),
	cmocka_unit_test(ops_13_names_follow_the_conventions))
