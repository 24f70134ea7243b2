// SPDX-License-Identifier: Apache-2.0
#include "ctrl/load_metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char NAMED[] = "named_metrics.";
static const char ALL_NAMED[] = "named_metrics.*";

struct load_metrics {
	bool all_named;
	uint32_t n;
	const char *names[]; // sorted; in one block with their texts
};

static bool is_named(const char *name)
{
	return strncmp(name, NAMED, strlen(NAMED)) == 0;
}

static bool is_known(const char *name)
{
	return strcmp(name, "cpu_utilization") == 0 || strcmp(name, "mem_utilization") == 0 ||
	       strcmp(name, "application_utilization") == 0 || is_named(name);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int load_metrics_new(const char *const *names, uint32_t n, struct load_metrics **ret)
{
	size_t len = 0;
	uint32_t n_known = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!is_known(names[i]))
			continue;
		n_known++;
		len += strlen(names[i]) + 1;
	}
	if (n_known == 0) {
		*ret = NULL;
		return 0;
	}
	struct load_metrics *m = calloc(1, sizeof(*m) + n_known * sizeof(m->names[0]) + len);
	if (!m)
		return -ENOMEM;
	char *at = (char *)&m->names[n_known];
	for (uint32_t i = 0; i < n; i++) {
		if (!is_known(names[i]))
			continue;
		m->all_named |= strcmp(names[i], ALL_NAMED) == 0;
		m->names[m->n++] = strcpy(at, names[i]);
		at += strlen(names[i]) + 1;
	}
	qsort(m->names, m->n, sizeof(m->names[0]), by_text);
	*ret = m;
	return 0;
}

void load_metrics_free(struct load_metrics *m)
{
	free(m);
}

bool load_metrics_has(const struct load_metrics *m, const char *name)
{
	if (!m)
		return false;
	return (m->all_named && is_named(name)) ||
	       bsearch(&name, m->names, m->n, sizeof(m->names[0]), by_text);
}
