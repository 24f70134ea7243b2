// SPDX-License-Identifier: Apache-2.0
#include "ctrl/page/worst.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *row_at(const struct worst *w, uint32_t i)
{
	return w->rows + i * w->size;
}

bool worst_init(struct worst *w, size_t size, uint32_t max,
	bool (*is_before)(const void *a, const void *b), void (*drop)(void *row))
{
	*w = (struct worst){.size = size, .max = max, .is_before = is_before, .drop = drop};
	w->rows = calloc(max, size);
	return w->rows;
}

void worst_fini(struct worst *w)
{
	for (uint32_t i = 0; w->drop && i < w->n; i++)
		w->drop(row_at(w, i));
	free(w->rows);
	*w = (struct worst){.rows = NULL};
}

bool worst_wants(struct worst *w, const void *row)
{
	w->n_seen++;
	return w->n < w->max || w->is_before(row, row_at(w, w->max - 1));
}

void worst_add(struct worst *w, const void *row)
{
	if (w->n == w->max) {
		if (w->drop)
			w->drop(row_at(w, w->max - 1));
		w->n--;
	}
	uint32_t at = w->n++;
	for (; at && w->is_before(row, row_at(w, at - 1)); at--)
		memcpy(row_at(w, at), row_at(w, at - 1), w->size);
	memcpy(row_at(w, at), row, w->size);
}

const void *worst_at(const struct worst *w, uint32_t i)
{
	return row_at(w, i);
}

uint64_t worst_left_out(const struct worst *w)
{
	return w->n_seen - w->n;
}
