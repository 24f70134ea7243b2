// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/outlier.h"

#include <math.h>

struct sweep {
	const struct lb_outlier_conf *conf;
	struct lb_outlier_host *hosts;
	uint32_t n, n_ejected;
	uint64_t now_ns;
	struct rand *rand;
	enum lb_outlier_method method; // that runs
	struct lb_outlier_counts *counts; // its own
};

bool lb_outlier_counts(const struct lb_outlier_conf *c)
{
	return c->success_rate.enabled || c->failure_percentage.enabled;
}

static bool is_candidate(const struct lb_outlier_host *h, const struct lb_outlier_algorithm *a)
{
	uint64_t volume = h->n_ok + h->n_failed;
	return volume > 0 && volume >= a->request_volume;
}

static uint32_t count_candidates(const struct sweep *s, const struct lb_outlier_algorithm *a)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n; i++)
		n += is_candidate(&s->hosts[i], a);
	return n;
}

// Looked at before each ejection, so that the limit may be passed by less than one (A50-E09).
static bool is_full(const struct sweep *s)
{
	return (uint64_t)s->n_ejected * 100 >= (uint64_t)s->conf->max_ejection_percent * s->n;
}

static void eject(struct sweep *s, struct lb_outlier_host *h, const struct lb_outlier_algorithm *a)
{
	if (h->ejected)
		return;
	if (is_full(s)) {
		s->counts->spared_by_limit++;
		return;
	}
	if (rand_below(s->rand, 100) >= a->enforcement_percent) {
		s->counts->spared_by_chance++;
		return;
	}
	s->counts->enforced++;
	h->ejected = true;
	h->method = (uint8_t)s->method;
	h->ejected_at_ns = s->now_ns;
	h->multiplier += h->multiplier < UINT32_MAX;
	s->n_ejected++;
}

static double success_percent(const struct lb_outlier_host *h)
{
	return 100.0 * (double)h->n_ok / (double)(h->n_ok + h->n_failed);
}

// A50-E07.
static void run_success_rate(struct sweep *s)
{
	const struct lb_outlier_algorithm *a = &s->conf->success_rate;
	uint32_t n = count_candidates(s, a);
	if (n == 0 || n < a->minimum_hosts)
		return;
	double mean = 0, variance = 0;
	for (uint32_t i = 0; i < s->n; i++)
		if (is_candidate(&s->hosts[i], a))
			mean += success_percent(&s->hosts[i]) / n;
	for (uint32_t i = 0; i < s->n; i++) {
		if (!is_candidate(&s->hosts[i], a))
			continue;
		double off = success_percent(&s->hosts[i]) - mean;
		variance += off * off / n;
	}
	double cut = mean - sqrt(variance) * s->conf->stdev_factor / 1000;
	for (uint32_t i = 0; i < s->n; i++)
		if (is_candidate(&s->hosts[i], a) && success_percent(&s->hosts[i]) < cut)
			eject(s, &s->hosts[i], a);
}

static void run_failure_percentage(struct sweep *s)
{
	const struct lb_outlier_algorithm *a = &s->conf->failure_percentage;
	uint32_t n = count_candidates(s, a);
	if (n == 0 || n < a->minimum_hosts)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		struct lb_outlier_host *h = &s->hosts[i];
		double failed = 100.0 * (double)h->n_failed / (double)(h->n_ok + h->n_failed);
		if (is_candidate(h, a) && failed > s->conf->threshold_percent)
			eject(s, h, a);
	}
}

// A50-E14: products and sums saturate.
uint64_t lb_outlier_ejected_until(const struct lb_outlier_conf *c, const struct lb_outlier_host *h)
{
	uint64_t longest =
		c->base_ejection_ns > c->max_ejection_ns ? c->base_ejection_ns : c->max_ejection_ns;
	uint64_t time, until;
	if (__builtin_mul_overflow(c->base_ejection_ns, h->multiplier, &time) || time > longest)
		time = longest;
	return __builtin_add_overflow(h->ejected_at_ns, time, &until) ? UINT64_MAX : until;
}

static void forgive(struct sweep *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		struct lb_outlier_host *h = &s->hosts[i];
		if (!h->ejected)
			h->multiplier -= h->multiplier > 0; // A50-E15
		else if (s->now_ns > lb_outlier_ejected_until(s->conf, h))
			h->ejected = false;
	}
}

void lb_outlier_sweep(const struct lb_outlier_conf *conf, struct lb_outlier_host *hosts, uint32_t n,
	uint64_t now_ns, struct rand *rand, struct lb_outlier_counts counts[LB_OUTLIER_N])
{
	struct sweep s = {.conf = conf, .hosts = hosts, .n = n, .now_ns = now_ns, .rand = rand};
	for (uint32_t i = 0; i < n; i++)
		s.n_ejected += hosts[i].ejected;
	s.method = LB_OUTLIER_SUCCESS_RATE;
	s.counts = &counts[s.method];
	if (conf->success_rate.enabled)
		run_success_rate(&s);
	s.method = LB_OUTLIER_FAILURE_PERCENTAGE;
	s.counts = &counts[s.method];
	if (conf->failure_percentage.enabled)
		run_failure_percentage(&s);
	forgive(&s);
}
