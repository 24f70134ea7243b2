// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/outlier.h"

#include "lb/base/time.h"
#include "lb/leaf/outlier.h"

#include <errno.h>

#define INTERVAL_NS (10 * NS_PER_SECOND)
#define INTERVAL_LEAST_NS (NS_PER_SECOND / 10) // a sweep looks at each endpoint
#define BASE_EJECTION_NS (30 * NS_PER_SECOND)
#define MAX_EJECTION_NS (300 * NS_PER_SECOND)

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Cluster__V3__OutlierDetection OutlierDetection;
typedef Google__Protobuf__UInt32Value Number;

static uint32_t number_or(const Number *n, uint32_t otherwise)
{
	return n ? n->value : otherwise;
}

static int read_percent(
	const Number *in, const char *field, uint32_t otherwise, uint32_t *ret, struct lb_err *err)
{
	uint32_t n = number_or(in, otherwise);
	if (n > 100)
		return lb_err_set(err, "%s: must be in [0, 100]", field);
	*ret = n;
	return 0;
}

static int read_times(struct res_reader *rd, const OutlierDetection *m, struct lb_outlier_conf *c)
{
	if (res_check_duration(m->interval, "interval", rd->err) ||
		res_check_duration(m->base_ejection_time, "base_ejection_time", rd->err) ||
		res_check_duration(m->max_ejection_time, "max_ejection_time", rd->err))
		return -EINVAL;
	c->interval_ns = m->interval ? res_duration_ns(m->interval) : INTERVAL_NS;
	c->base_ejection_ns =
		m->base_ejection_time ? res_duration_ns(m->base_ejection_time) : BASE_EJECTION_NS;
	if (m->max_ejection_time)
		c->max_ejection_ns = res_duration_ns(m->max_ejection_time);
	else if (c->base_ejection_ns > MAX_EJECTION_NS)
		c->max_ejection_ns = c->base_ejection_ns;
	else
		c->max_ejection_ns = MAX_EJECTION_NS;
	if (c->interval_ns < INTERVAL_LEAST_NS) {
		c->interval_ns = INTERVAL_LEAST_NS;
		res_warn(rd, "outlier_detection: interval: is too short, 0.1s is used");
	}
	return 0;
}

// Which algorithms run (A50-E02), and how.
static int read_algorithms(
	struct res_reader *rd, const OutlierDetection *m, struct lb_outlier_conf *c)
{
	struct lb_outlier_algorithm *rate = &c->success_rate, *failures = &c->failure_percentage;
	if (read_percent(m->max_ejection_percent, "max_ejection_percent", 10,
		    &c->max_ejection_percent, rd->err) ||
		read_percent(m->enforcing_success_rate, "enforcing_success_rate", 100,
			&rate->enforcement_percent, rd->err) ||
		read_percent(m->enforcing_failure_percentage, "enforcing_failure_percentage", 0,
			&failures->enforcement_percent, rd->err) ||
		read_percent(m->failure_percentage_threshold, "failure_percentage_threshold", 85,
			&c->threshold_percent, rd->err))
		return -EINVAL;
	rate->enabled = rate->enforcement_percent > 0;
	rate->minimum_hosts = number_or(m->success_rate_minimum_hosts, 5);
	rate->request_volume = number_or(m->success_rate_request_volume, 100);
	c->stdev_factor = number_or(m->success_rate_stdev_factor, 1900);
	failures->enabled = failures->enforcement_percent > 0;
	failures->minimum_hosts = number_or(m->failure_percentage_minimum_hosts, 5);
	failures->request_volume = number_or(m->failure_percentage_request_volume, 50);
	return 0;
}

static bool is_on(const Number *enforcing)
{
	return enforcing && enforcing->value > 0;
}

static bool is_off(const Number *enforcing)
{
	return enforcing && enforcing->value == 0;
}

// ENV-04: what Envoy would do besides. Nothing is said of what the sender has switched off.
static void warn_of_ignored(struct res_reader *rd, const OutlierDetection *m)
{
	if ((m->consecutive_5xx && !is_off(m->enforcing_consecutive_5xx)) ||
		is_on(m->enforcing_consecutive_5xx))
		res_warn(rd, "outlier_detection: consecutive_5xx is ignored");
	if (is_on(m->enforcing_consecutive_gateway_failure)) // off unless it is set
		res_warn(rd, "outlier_detection: consecutive_gateway_failure is ignored");
	if (m->split_external_local_origin_errors)
		res_warn(rd, "outlier_detection: split_external_local_origin_errors is ignored");
	const Google__Protobuf__Duration *jitter = m->max_ejection_time_jitter;
	if (jitter && (jitter->seconds || jitter->nanos))
		res_warn(rd, "outlier_detection: max_ejection_time_jitter is ignored");
}

int res_outlier_read(
	struct res_reader *rd, const OutlierDetection *m, const struct lb_outlier_conf **ret)
{
	struct lb_outlier_conf *c = lb_arena_alloc(rd->arena, 1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	if (read_times(rd, m, c) || read_algorithms(rd, m, c))
		return -EINVAL;
	warn_of_ignored(rd, m);
	*ret = c;
	return 0;
}
