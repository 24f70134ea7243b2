// SPDX-License-Identifier: Apache-2.0
// Time runs in generations: in each, every index gets one chance, and takes it in a share of the
// generations that is its weight over the largest weight. Which ones is a Bresenham line through
// the generation number, so that an index's turns are evenly spaced; offsets keep the indices out
// of step.
#include "lb/stride.h"

#include <stdlib.h>

#define RATIO_MAX 10.0 // to the mean
#define RATIO_MIN 0.01

struct lb_stride {
	uint32_t n;
	uint16_t weights[]; // scaled
};

static double clamp(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

bool lb_stride_scale(const double *weights, uint32_t n, uint16_t *ret_scaled)
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
		return false;
	double mean = sum / n_usable;
	double top = max < RATIO_MAX * mean ? max : RATIO_MAX * mean;
	for (uint32_t i = 0; i < n; i++) {
		double w = weights[i] > 0 ? weights[i] : mean;
		double scaled = clamp(w, RATIO_MIN * mean, top) / top * LB_STRIDE_MAX + 0.5;
		ret_scaled[i] = (uint16_t)clamp(scaled, 1, LB_STRIDE_MAX);
	}
	return true;
}

struct lb_stride *lb_stride_new(const double *weights, uint32_t n)
{
	struct lb_stride *s = malloc(sizeof(*s) + n * sizeof(s->weights[0]));
	if (!s)
		return NULL;
	s->n = n;
	if (lb_stride_scale(weights, n, s->weights))
		return s;
	free(s);
	return NULL;
}

void lb_stride_free(struct lb_stride *s)
{
	free(s);
}

// Some index has LB_STRIDE_MAX and takes every chance, so the loop ends within one generation.
uint32_t lb_stride_pick(const struct lb_stride *s, uint64_t *sequence)
{
	for (;;) {
		uint64_t at = (*sequence)++;
		uint32_t i = (uint32_t)(at % s->n);
		if (lb_stride_has_turn(at, s->n, s->weights[i]))
			return i;
	}
}
