// SPDX-License-Identifier: Apache-2.0
// Time runs in generations: in each, every index gets one chance, and takes it in a share of the
// generations that is its weight over the largest weight. Which ones is a Bresenham line through
// the generation number, so that an index's turns are evenly spaced; offsets keep the indices out
// of step.
#include "lb/pick/stride.h"

#define RATIO_MAX 10.0 // to the mean
#define RATIO_MIN 0.01

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
