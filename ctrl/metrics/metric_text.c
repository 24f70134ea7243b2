// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics/metric_text.h"

#include "proto/wire.h"

#include <event2/buffer.h>
#include <xxhash.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_LEN 4096
#define VALUE_MAX_LEN 900 // of a label, escaped: METRIC_MAX_LABELS of them and the rest fit a line
#define HASH_LEN 17 // with its '#'

// A line that is being made.
struct line {
	char text[LINE_MAX_LEN];
	size_t len;
};

static void put(struct line *l, const char *text, size_t len)
{
	size_t room = sizeof(l->text) - 1 - l->len;
	len = len < room ? len : room;
	memcpy(l->text + l->len, text, len);
	l->len += len;
}

static void put_text(struct line *l, const char *text)
{
	put(l, text, strlen(text));
}

// Prometheus knows no escapes but these: of other control characters it reads "\\x1b". What is not
// UTF-8 would spoil the whole answer. n: what proto_utf8_len() says of it.
static void put_character(struct line *l, const uint8_t *p, size_t n)
{
	char escaped[8];
	if (n == 0)
		put_text(l, "\uFFFD");
	else if (*p == '\n')
		put_text(l, "\\n");
	else if (*p < ' ' || *p == 0x7f)
		put(l, escaped, (size_t)snprintf(escaped, sizeof(escaped), "\\\\x%02x", *p));
	else if (*p == '"' || *p == '\\')
		put(l, (char[]){'\\', (char)*p}, 2);
	else
		put(l, (const char *)p, n);
}

// A hash of the whole tells values apart that are cut at the same place.
static void put_hash(struct line *l, const char *value)
{
	char text[HASH_LEN + 1];
	uint64_t hash = XXH64(value, strlen(value), 0);
	put(l, text, (size_t)snprintf(text, sizeof(text), "#%016" PRIx64, hash));
}

static void put_value(struct line *l, const char *value)
{
	const uint8_t *p = (const uint8_t *)value;
	size_t left = strlen(value), end = l->len + VALUE_MAX_LEN, cut = l->len;
	while (left && l->len <= end) {
		size_t n = proto_utf8_len(p, left);
		put_character(l, p, n);
		p += n ? n : 1;
		left -= n ? n : 1;
		if (l->len <= end - HASH_LEN)
			cut = l->len;
	}
	if (l->len > end) {
		l->len = cut;
		put_hash(l, value);
	}
}

static void put_number(struct line *l, double x)
{
	char text[32];
	bool is_whole = x == floor(x) && fabs(x) < 9007199254740992.0; // 2^53
	int len = is_whole ? snprintf(text, sizeof(text), " %lld\n", (long long)x)
	                   : snprintf(text, sizeof(text), " %.17g\n", x);
	put(l, text, (size_t)len);
}

static void write_line(struct metric_text *t, const struct line *l)
{
	if (evbuffer_add(t->out, l->text, l->len) != 0)
		t->failed = true;
}

// OpenMetrics names the family; Prometheus the sample, and knows no type "info".
static void head(struct metric_sink *sink, const struct metric *m)
{
	struct metric_text *t = (struct metric_text *)sink;
	const char *suffix = t->is_open_metrics ? "" : metric_suffix(m);
	bool is_info = m->type == METRIC_INFO && !t->is_open_metrics;
	const char *type = is_info ? "gauge" : metric_type_name(m);
	if (evbuffer_add_printf(t->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", m->name, suffix,
		    m->help, m->name, suffix, type) < 0)
		t->failed = true;
}

static void sample(struct metric_sink *sink, const struct metric *m, const struct metric_sample *s)
{
	struct metric_text *t = (struct metric_text *)sink;
	struct line l = {.len = 0};
	put_text(&l, m->name);
	put_text(&l, s->suffix);
	for (uint32_t i = 0; i < s->n_labels; i++) {
		put_text(&l, i ? "," : "{");
		put_text(&l, s->labels[i].name);
		put_text(&l, "=\"");
		put_value(&l, s->labels[i].value);
		put_text(&l, "\"");
	}
	if (s->n_labels)
		put_text(&l, "}");
	put_number(&l, s->value);
	write_line(t, &l);
}

void metric_text_init(struct metric_text *t, struct evbuffer *out, bool is_open_metrics)
{
	*t = (struct metric_text){
		.sink = {head, sample}, .out = out, .is_open_metrics = is_open_metrics};
}

void metric_text_end(struct metric_text *t)
{
	if (t->is_open_metrics && evbuffer_add_printf(t->out, "# EOF\n") < 0)
		t->failed = true;
}

// RFC 9110 12.5.1: the highest weight of a media type; 0 = it is not listed.
static double weight_of(const char *accept, const char *type)
{
	const char *at = strstr(accept, type);
	if (!at)
		return 0;
	size_t len = strcspn(at, ",");
	const char *q = strstr(at, "q=");
	return q && (size_t)(q - at) < len ? strtod(q + 2, NULL) : 1;
}

bool metric_text_wants_open_metrics(const char *accept)
{
	if (!accept)
		return false;
	double open = weight_of(accept, "application/openmetrics-text");
	return open > 0 && open >= weight_of(accept, "text/plain");
}

const char *metric_text_content_type(bool is_open_metrics)
{
	return is_open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
	                       : "text/plain; version=0.0.4; charset=utf-8";
}
