// SPDX-License-Identifier: Apache-2.0
// How a sample is told, and over how many things a metric is.
#include "ctrl/conf/config.h"
#include "ctrl/metrics/scrape_inside.h"

#include <stdio.h>
#include <string.h>

void scrape_tell(struct scrape *s, enum metric_id id, double value, const char *const *labels)
{
	const struct metric *m = &metrics[id];
	struct metric_sample sample = {.suffix = metric_suffix(m), .value = value};
	char names[128], *save = NULL;
	snprintf(names, sizeof(names), "%s", m->labels);
	for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		sample.labels[sample.n_labels] =
			(struct metric_label){name, labels[sample.n_labels]};
		sample.n_labels++;
	}
	s->sink->sample(s->sink, m, &sample);
}

// Bounds as OpenMetrics wants numbers in labels, in seconds.
static const char *bound_text(uint32_t i)
{
	static char texts[HISTOGRAM_N][24]; // ctrl's
	if (i == HISTOGRAM_N - 1)
		return "+Inf";
	if (!texts[i][0])
		snprintf(texts[i], sizeof(texts[i]), "%.9g", (double)histogram_bound_ns(i) / 1e9);
	return texts[i];
}

void scrape_tell_histogram(
	struct scrape *s, enum metric_id id, const struct histogram *h, const char *label)
{
	const struct metric *m = &metrics[id];
	uint64_t n = 0;
	struct metric_sample sample = {
		.suffix = "_bucket", .labels = {{m->labels, label}, {"le", ""}}, .n_labels = 2};
	for (uint32_t i = 0; i < HISTOGRAM_N; i++) {
		n += h->counts[i];
		sample.labels[1].value = bound_text(i);
		sample.value = (double)n;
		s->sink->sample(s->sink, m, &sample);
	}
	sample.n_labels = 1;
	sample.suffix = "_sum";
	sample.value = (double)h->sum_ns / 1e9;
	s->sink->sample(s->sink, m, &sample);
	sample.suffix = "_count";
	sample.value = (double)n;
	s->sink->sample(s->sink, m, &sample);
}

void scrape_tell_answers(struct scrape *s, enum metric_id id, const uint64_t answers[LB_N_ANSWERS],
	const char *label, bool with_zeros)
{
	static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
	char status[8];
	for (uint32_t i = 0; i < LB_N_ANSWERS; i++) {
		const char *labels[] = {label, "grpc", status};
		if (!answers[i] && !with_zeros)
			continue;
		if (i < LB_ANSWER_GRPC_OTHER) {
			snprintf(status, sizeof(status), "%u", i);
		} else if (i == LB_ANSWER_GRPC_OTHER) {
			labels[2] = "other";
		} else if (i == LB_ANSWER_NONE) {
			labels[1] = labels[2] = "none";
		} else {
			labels[1] = "http";
			labels[2] = classes[i - LB_ANSWER_HTTP];
		}
		scrape_tell(s, id, (double)answers[i], labels);
	}
}

uint32_t scrape_over_once(const struct scrape *s)
{
	return 1;
}

uint32_t scrape_over_frontends(const struct scrape *s)
{
	return s->conf.config->n_frontends;
}

uint32_t scrape_over_clusters(const struct scrape *s)
{
	return s->n_clusters;
}

uint32_t scrape_over_endpoints(const struct scrape *s)
{
	return s->n_endpoints;
}

uint32_t scrape_over_workers(const struct scrape *s)
{
	return workers_count(s->conf.workers);
}

uint32_t scrape_over_ports(const struct scrape *s)
{
	return s->conf.config->n_ports;
}
