// SPDX-License-Identifier: Apache-2.0
#include "ctrl/doctor/counts.h"

#include "lb/base/grow.h"
#include "lb/base/time.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int counts_add(struct counts *c, const struct counts_row *row)
{
	char *copy = grow(&c->rows, c->n, &c->room, sizeof(c->rows[0])) ? strdup(row->name) : NULL;
	if (!copy)
		return -ENOMEM;
	c->rows[c->n] = *row;
	c->rows[c->n++].name = copy;
	return 0;
}

// Numbers as names ("9", "10") are in no order of names, but follow each other as they did before.
static const struct counts_row *find_name(struct counts *c, const char *name)
{
	if (c->at < c->n && strcmp(c->rows[c->at].name, name) == 0)
		return &c->rows[c->at++];
	while (c->at < c->n && strcmp(c->rows[c->at].name, name) < 0)
		c->at++;
	bool is_it = c->at < c->n && strcmp(c->rows[c->at].name, name) == 0;
	return is_it ? &c->rows[c->at++] : NULL;
}

const struct counts_row *counts_find(struct counts *before, const struct counts_row *now)
{
	const struct counts_row *was = find_name(before, now->name);
	bool goes_on = was && now->at_ns > was->at_ns && now->requests >= was->requests &&
	               now->ok >= was->ok && now->failed >= was->failed && now->bad >= was->bad;
	return goes_on ? was : NULL;
}

void counts_since(struct counts *before, const struct counts_row *now, double *ret_requests,
	double *ret_failed)
{
	const struct counts_row *was = counts_find(before, now);
	*ret_requests = *ret_failed = -1;
	if (!was)
		return;
	double seconds = (double)(now->at_ns - was->at_ns) / (double)NS_PER_SECOND;
	uint64_t failed = now->failed - was->failed + now->bad - was->bad;
	*ret_requests = (double)(now->requests - was->requests) / seconds;
	*ret_failed = (double)failed / seconds;
}

void counts_fini(struct counts *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		free(c->rows[i].name);
	free(c->rows);
	*c = (struct counts){.n = 0};
}
