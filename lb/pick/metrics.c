// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/metrics.h"

#include "lb/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const OWN[] = {[LB_METRIC_CPU] = "cpu_utilization",
	[LB_METRIC_MEM] = "mem_utilization",
	[LB_METRIC_APPLICATION] = "application_utilization"};
static const char NAMED[] = "named_metrics.";
static const char ALL_NAMED[] = "named_metrics.*";

static bool is_named(const char *name)
{
	return strncmp(name, NAMED, strlen(NAMED)) == 0 && strcmp(name, ALL_NAMED) != 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_own(struct lb_metrics *m, const char *name)
{
	m->all_named |= strcmp(name, ALL_NAMED) == 0;
	for (uint32_t i = 0; i < LB_METRIC_NAMED; i++)
		if (strcmp(name, OWN[i]) == 0)
			m->own |= 1u << i;
}

int lb_metrics_new(const char *const *names, uint32_t n, uint32_t list, struct lb_metrics **ret)
{
	size_t len = 0, n_named = 0;
	*ret = NULL;
	for (uint32_t i = 0; i < n; i++) {
		n_named += is_named(names[i]);
		len += is_named(names[i]) ? strlen(names[i]) + 1 : 0;
	}
	struct lb_metrics *m = calloc(1, sizeof(*m) + n_named * sizeof(m->named[0]) + len);
	if (!m)
		return -ENOMEM;
	m->n_refs = 1;
	m->list = list;
	char *at = (char *)&m->named[n_named];
	for (uint32_t i = 0; i < n; i++) {
		add_own(m, names[i]);
		if (!is_named(names[i]))
			continue;
		m->named[m->n_named++] = strcpy(at, names[i]);
		at += strlen(names[i]) + 1;
	}
	qsort(m->named, m->n_named, sizeof(m->named[0]), by_text);
	if (m->own || m->all_named || m->n_named)
		*ret = m;
	else
		free(m);
	return 0;
}

struct lb_metrics *lb_metrics_get(struct lb_metrics *m)
{
	if (m)
		m->n_refs++;
	return m;
}

void lb_metrics_put(struct lb_metrics *m)
{
	if (!m)
		return;
	CHECK(m->n_refs > 0);
	if (--m->n_refs == 0)
		free(m);
}

bool lb_metrics_same(const struct lb_metrics *a, const struct lb_metrics *b)
{
	if (!a || !b)
		return a == b;
	if (a->own != b->own || a->all_named != b->all_named || a->n_named != b->n_named)
		return false;
	for (uint32_t i = 0; i < a->n_named; i++)
		if (strcmp(a->named[i], b->named[i]) != 0)
			return false;
	return true;
}

uint32_t lb_metrics_find(const struct lb_metrics *m, struct str name)
{
	for (uint32_t low = 0, high = m->n_named; low < high;) {
		uint32_t middle = low + (high - low) / 2;
		struct str here = str_from(m->named[middle] + strlen(NAMED));
		size_t len = here.len < name.len ? here.len : name.len;
		int order = len ? memcmp(name.p, here.p, len) : 0;
		if (order == 0 && name.len == here.len)
			return LB_METRIC_NAMED + middle;
		if (order < 0 || (order == 0 && name.len < here.len))
			high = middle;
		else
			low = middle + 1;
	}
	return LB_METRIC_NONE;
}

const char *lb_metrics_name(const struct lb_metrics *m, uint32_t index)
{
	if (index < LB_METRIC_NAMED)
		return lb_metrics_has(m, (enum lb_metric)index) ? OWN[index] : NULL;
	index -= LB_METRIC_NAMED;
	return index < m->n_named ? m->named[index] : NULL;
}
