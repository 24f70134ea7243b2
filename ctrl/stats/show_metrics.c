// SPDX-License-Identifier: Apache-2.0
// show metrics: what the metrics' port tells (ctrl/metrics), without one, all at once.
#include "ctrl/base/stats_proto.h"
#include "ctrl/metrics/metric_text.h"
#include "ctrl/metrics/scrape.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"

#include <event2/buffer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct json_sink {
	struct metric_sink sink;
	json_t *rows;
};

static void no_head(struct metric_sink *sink, const struct metric *m)
{
}

static void add_row(struct metric_sink *sink, const struct metric *m, const struct metric_sample *s)
{
	json_t *row = json_object(), *labels = json_object();
	char name[128];
	snprintf(name, sizeof(name), "%s%s", m->name, s->suffix);
	show_set_text(row, "name", name);
	show_set_text(row, "type", metric_type_name(m));
	show_set_text(row, "help", m->help);
	for (uint32_t i = 0; i < s->n_labels; i++)
		show_set_text(labels, s->labels[i].name, s->labels[i].value);
	json_object_set_new(row, "labels", labels);
	bool is_whole = s->value == (double)(int64_t)s->value;
	json_object_set_new(
		row, "value", is_whole ? json_integer((json_int_t)s->value) : json_real(s->value));
	json_array_append_new(((struct json_sink *)sink)->rows, row);
}

// 0 or -ENOMEM
static int tell_all(const struct show *s, struct metric_sink *sink)
{
	const struct scrape_ask all = {0};
	struct scrape *scrape = scrape_new(&s->scrape, &all, sink);
	int more = scrape ? 1 : -1;
	while (more > 0)
		more = scrape_step(scrape);
	scrape_free(scrape);
	return more;
}

static char *text_of(const struct show *s)
{
	struct evbuffer *out = evbuffer_new();
	struct metric_text text;
	char *ret = NULL;
	if (!out)
		return NULL;
	metric_text_init(&text, out, false);
	size_t len = tell_all(s, &text.sink) || text.failed ? 0 : evbuffer_get_length(out);
	if (len)
		ret = malloc(len + 1);
	if (ret) {
		evbuffer_remove(out, ret, len);
		ret[len] = '\0';
	}
	evbuffer_free(out);
	return ret;
}

// The text form is made beside JSON, not from it: there may be a hundred thousand lines.
json_t *show_metrics(const struct show *s, struct show_args *args)
{
	if (!args->json) {
		char *text = text_of(s);
		json_t *whole = text ? json_string_nocheck(text) : NULL;
		free(text);
		return whole;
	}
	struct json_sink sink = {{no_head, add_row}, json_array()};
	if (sink.rows && tell_all(s, &sink.sink) == 0)
		return sink.rows;
	json_decref(sink.rows);
	return NULL;
}

char *show_metrics_text(json_t *whole)
{
	return strdup(json_string_value(whole));
}
