// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config.h"
#include "ctrl/metrics/scrape_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Steps.

static const struct scrape_family *family_at(uint32_t i)
{
	if (i < scrape_n_requests)
		return &scrape_requests[i];
	i -= scrape_n_requests;
	if (i < scrape_n_vhosts)
		return &scrape_vhosts[i];
	i -= scrape_n_vhosts;
	if (i < scrape_n_balancing)
		return &scrape_balancing[i];
	i -= scrape_n_balancing;
	if (i < scrape_n_process)
		return &scrape_process[i];
	i -= scrape_n_process;
	return i < scrape_n_certs ? &scrape_certs[i] : NULL;
}

// Not each scrape tells everything.
static bool is_told(const struct scrape *s, const struct scrape_family *f)
{
	if (s->endpoints_only)
		return f->over == scrape_over_endpoints || f->id == METRIC_ID_LEFT_OUT;
	if (s->clusters_only)
		return f->over == scrape_over_clusters;
	return f->over != scrape_over_endpoints;
}

static int tell_step(struct scrape *s)
{
	const struct scrape_family *f = family_at(s->family);
	if (!f)
		return 0;
	uint32_t n = is_told(s, f) ? f->over(s) : 0;
	if (s->at == 0 && n)
		s->sink->head(s->sink, &metrics[f->id]);
	bool is_spare = f->over == scrape_over_frontends && s->at < n &&
	                !config_serves(s->conf.config, s->at);
	if (s->at < n && !is_spare)
		f->tell(s, f->id, s->at);
	s->at++;
	if (s->at >= n) {
		s->family++;
		s->at = 0;
	}
	return 1;
}

static int note_step(struct scrape *s)
{
	int more = scrape_note_step(s);
	if (more)
		return more;
	s->step = tell_step;
	s->at = 0;
	return 1;
}

int scrape_step(struct scrape *s)
{
	return s->step(s);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

// Each once: two series of one name would spoil all.
static int copy_names(struct scrape *s, const struct scrape_ask *ask)
{
	s->names = calloc(ask->n_names + 1, sizeof(*s->names));
	if (!s->names)
		return -ENOMEM;
	for (; s->n_names < ask->n_names; s->n_names++)
		if (!(s->names[s->n_names] = strdup(ask->names[s->n_names])))
			return -ENOMEM;
	qsort(s->names, s->n_names, sizeof(*s->names), compare_names);
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n_names; i++) {
		if (n && strcmp(s->names[n - 1], s->names[i]) == 0)
			free(s->names[i]);
		else
			s->names[n++] = s->names[i];
	}
	s->n_names = n;
	return 0;
}

struct scrape *scrape_new(
	const struct scrape_conf *conf, const struct scrape_ask *ask, struct metric_sink *sink)
{
	struct scrape *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->conf = *conf;
	s->sink = sink;
	s->step = note_step;
	s->endpoints_only = ask->endpoints;
	s->clusters_only = ask->n_names > 0;
	if (copy_names(s, ask) == 0)
		return s;
	scrape_free(s);
	return NULL;
}

void scrape_free(struct scrape *s)
{
	if (!s)
		return;
	scrape_note_free(s);
	for (uint32_t i = 0; i < s->n_names; i++)
		free(s->names[i]);
	free(s->names);
	free(s);
}
