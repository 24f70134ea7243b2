// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics/metric_text.h"
#include "tests/support/check.h"

#include <event2/buffer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text_of(const struct metric *m, const struct metric_sample *s, bool is_open_metrics)
{
	struct evbuffer *out = evbuffer_new();
	struct metric_text t;
	metric_text_init(&t, out, is_open_metrics);
	t.sink.head(&t.sink, m);
	t.sink.sample(&t.sink, m, s);
	metric_text_end(&t);
	assert_false(t.failed);
	size_t len = evbuffer_get_length(out);
	char *text = malloc(len + 1);
	evbuffer_remove(out, text, len);
	text[len] = '\0';
	evbuffer_free(out);
	return text;
}

static void expect(enum metric_id id, const struct metric_sample *s, bool is_open_metrics,
	const char *expected)
{
	char *text = text_of(&metrics[id], s, is_open_metrics);
	assert_string_equal(text, expected);
	free(text);
}

// OPS-10
static void ops_10_each_form_names_a_counter_as_it_wants(void **state)
{
	const struct metric_sample s = {.suffix = "_total", .value = 9007199254740991.0};
	expect(METRIC_ID_TCP_RESENT, &s, false,
		"# HELP shunt_tcp_retransmitted_segments_total Segments sent again.\n"
		"# TYPE shunt_tcp_retransmitted_segments_total counter\n"
		"shunt_tcp_retransmitted_segments_total 9007199254740991\n");
	expect(METRIC_ID_TCP_RESENT, &s, true,
		"# HELP shunt_tcp_retransmitted_segments Segments sent again.\n"
		"# TYPE shunt_tcp_retransmitted_segments counter\n"
		"shunt_tcp_retransmitted_segments_total 9007199254740991\n# EOF\n");
}

static void only_open_metrics_knows_infos(void **state)
{
	const struct metric_sample s = {
		.suffix = "_info", .labels = {{"version", "1"}}, .n_labels = 1, .value = 1};
	expect(METRIC_ID_BUILD, &s, false,
		"# HELP shunt_build_info The version that runs.\n# TYPE shunt_build_info gauge\n"
		"shunt_build_info{version=\"1\"} 1\n");
	expect(METRIC_ID_BUILD, &s, true,
		"# HELP shunt_build The version that runs.\n# TYPE shunt_build info\n"
		"shunt_build_info{version=\"1\"} 1\n# EOF\n");
}

// OPS-10
static void ops_10_no_label_breaks_a_line_or_ends_a_text_early(void **state)
{
	static const struct {
		const char *value, *escaped;
	} rows[] = {
		{"plain", "plain"},
		{"a\"b\\c", "a\\\"b\\\\c"},
		{"two\nlines", "two\\nlines"},
		{"\x1b[2J\x7f", "\\\\x1b[2J\\\\x7f"},
		{"caf\xc3\xa9", "caf\xc3\xa9"},
		{"cut \xc3", "cut \xEF\xBF\xBD"},
		{"\xff\xfe", "\xEF\xBF\xBD\xEF\xBF\xBD"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct metric_sample s = {.suffix = "",
			.labels = {{"cluster", rows[i].value}},
			.n_labels = 1,
			.value = 0.25};
		char line[128];
		snprintf(line, sizeof(line), "\nshunt_cluster_up{cluster=\"%s\"} 0.25\n",
			rows[i].escaped);
		char *text = text_of(&metrics[METRIC_ID_CLUSTER_UP], &s, false);
		assert_non_null(strstr(text, line));
		free(text);
	}
}

// OPS-10
static void ops_10_labels_that_are_too_long_are_cut_and_stay_different(void **state)
{
	char names[2][10001], *texts[2];
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i + 1 < sizeof(names[k]); i += 2)
			memcpy(names[k] + i, "\xc3\xa9", 2);
		memcpy(names[k] + sizeof(names[k]) - 3, k ? "\xc3\xa8" : "\xc3\xa9", 3);
		const struct metric_sample s = {.suffix = "",
			.labels = {{"cluster", names[k]}, {"leaf", names[0]},
				{"endpoint", names[0]}, {"state", "last"}},
			.n_labels = 4,
			.value = 1};
		texts[k] = text_of(&metrics[METRIC_ID_CLUSTER_UP], &s, false);
		assert_non_null(strstr(texts[k], "\xc3\xa9#"));
		assert_non_null(strstr(texts[k], "\",state=\"last\"} 1\n"));
	}
	assert_string_not_equal(texts[0], texts[1]);
	free(texts[0]);
	free(texts[1]);
}

// A cut is for what does not fit: nothing else gets a hash.
static void a_label_that_just_fits_stays_as_it_is(void **state)
{
	for (size_t len = 899; len <= 901; len++) {
		char name[902];
		memset(name, 'a', len);
		name[len] = '\0';
		const struct metric_sample s = {
			.suffix = "", .labels = {{"cluster", name}}, .n_labels = 1, .value = 1};
		char *text = text_of(&metrics[METRIC_ID_CLUSTER_UP], &s, false);
		assert_int_equal(strstr(text, name) != NULL, len <= 900);
		free(text);
	}
}

// A time of start is read to the millisecond, and a counter never seems to fall.
static void fractions_have_all_their_digits(void **state)
{
	const struct metric_sample s = {.suffix = "", .value = 1795411234.5678};
	char *text = text_of(&metrics[METRIC_ID_START_TIME], &s, false);
	const char *number = strrchr(text, ' ');
	assert_non_null(number);
	assert_true(strtod(number, NULL) == s.value);
	free(text);
}

// OPS-10
static void ops_10_the_reader_chooses_the_form(void **state)
{
	static const struct {
		const char *accept;
		bool is_open_metrics;
	} rows[] = {
		{NULL, false},
		{"*/*", false},
		{"text/plain", false},
		{"application/openmetrics-text", true},
		{"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", true},
		{"application/openmetrics-text;q=0.4,text/plain;version=0.0.4;q=0.5", false},
		{"application/openmetrics-text;q=0", false},
		{"text/plain;q=0.2, application/openmetrics-text;q=0.75;version=1.0.0", true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(
			metric_text_wants_open_metrics(rows[i].accept), rows[i].is_open_metrics);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("ctrl/metric_text", CASE(ops_10_each_form_names_a_counter_as_it_wants),
	CASE(only_open_metrics_knows_infos),
	CASE(ops_10_no_label_breaks_a_line_or_ends_a_text_early),
	CASE(ops_10_labels_that_are_too_long_are_cut_and_stay_different),
	CASE(a_label_that_just_fits_stays_as_it_is), CASE(fractions_have_all_their_digits),
	CASE(ops_10_the_reader_chooses_the_form))
