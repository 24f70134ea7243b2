// SPDX-License-Identifier: Apache-2.0
// Time runs in generations: in each, every index gets one chance, and takes it in a share of the
// generations that is its weight over the largest weight. Which ones is a Bresenham line through
// the generation number, so that an index's turns are evenly spaced; offsets keep the indices out
// of step.
#include "lb/stride.h"

#include <stdlib.h>

#define WEIGHT_MAX UINT16_MAX
#define OFFSET (WEIGHT_MAX / 2)
#define RATIO_MAX 10.0 // to the mean
#define RATIO_MIN 0.01

struct lb_stride {
	uint32_t n;
	uint16_t weights[]; // the largest is WEIGHT_MAX; none is 0
};

static double clamp(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

struct lb_stride *lb_stride_new(const double *weights, uint32_t n)
{
	double sum = 0, max = 0;
	uint32_t n_usable = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!(weights[i] > 0))
			continue;
		sum += weights[i];
		max = weights[i] > max ? weights[i] : max;
		n_usable++;
	}
	if (n_usable < 2)
		return NULL;
	struct lb_stride *s = malloc(sizeof(*s) + n * sizeof(s->weights[0]));
	if (!s)
		return NULL;
	double mean = sum / n_usable;
	double top = max < RATIO_MAX * mean ? max : RATIO_MAX * mean;
	s->n = n;
	for (uint32_t i = 0; i < n; i++) {
		double w = weights[i] > 0 ? weights[i] : mean;
		double scaled = clamp(w, RATIO_MIN * mean, top) / top * WEIGHT_MAX + 0.5;
		s->weights[i] = (uint16_t)clamp(scaled, 1, WEIGHT_MAX);
	}
	return s;
}

void lb_stride_free(struct lb_stride *s)
{
	free(s);
}

// Some index has WEIGHT_MAX and takes every chance, so the loop ends within one generation.
uint32_t lb_stride_pick(const struct lb_stride *s, uint64_t *sequence)
{
	for (;;) {
		uint64_t at = (*sequence)++;
		uint32_t i = (uint32_t)(at % s->n);
		uint64_t generation = at / s->n;
		uint64_t weight = s->weights[i];
		if ((weight * generation + (uint64_t)i * OFFSET) % WEIGHT_MAX >=
			WEIGHT_MAX - weight)
			return i;
	}
}
