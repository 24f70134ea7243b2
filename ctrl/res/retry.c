// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/retry.h"

#include "lb/base/time.h"

#include <errno.h>
#include <stdio.h>

#define MAX_RETRIES 4
#define DEFAULT_BASE_NS (25 * NS_PER_MS)
#define MAX_PER_BASE 10

typedef Envoy__Config__Route__V3__RetryPolicy Policy;
typedef Envoy__Config__Route__V3__RetryPolicy__RetryBackOff BackOff;

static const struct {
	struct str name;
	unsigned status;
} conditions[] = {
	{STR("cancelled"), 1},
	{STR("deadline-exceeded"), 4},
	{STR("resource-exhausted"), 8},
	{STR("internal"), 13},
	{STR("unavailable"), 14},
};

// Words that mean nothing here, as far as there is room for them.
struct unknown_words {
	char text[256];
	size_t len;
};

static void add_unknown(struct unknown_words *u, struct str word)
{
	int len = snprintf(u->text + u->len, sizeof(u->text) - u->len, "%s%.*s", u->len ? ", " : "",
		(int)word.len, word.p);
	u->len += len > 0 ? (size_t)len : 0;
	if (u->len >= sizeof(u->text))
		u->len = sizeof(u->text) - 1;
}

// RT-01.
static uint32_t read_conditions(struct res_reader *rd, const char *list)
{
	struct unknown_words unknown = {.len = 0};
	uint32_t statuses = 0;
	for (const char *p = list; *p;) {
		size_t len = strcspn(p, ",");
		struct str name = str_trim((struct str){p, len});
		uint32_t status = 0;
		for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
			if (str_eq_fold(name, conditions[i].name))
				status = 1u << conditions[i].status;
		if (!status && name.len)
			add_unknown(&unknown, name);
		statuses |= status;
		p += len + (p[len] == ',');
	}
	if (unknown.len)
		res_warn(rd, "retry_policy.retry_on: ignored: %s", unknown.text);
	return statuses;
}

static uint64_t at_least_1_ms(uint64_t ns)
{
	return ns < NS_PER_MS ? NS_PER_MS : ns;
}

// RT-04.
static int read_back_off(const BackOff *m, struct lb_retry *ret, struct lb_err *err)
{
	if (!m->base_interval)
		return lb_err_set(err, "base_interval: missing");
	if (res_check_duration(m->base_interval, "base_interval", err) ||
		res_check_duration(m->max_interval, "max_interval", err))
		return -EINVAL;
	uint64_t base = res_duration_ns(m->base_interval);
	if (base == 0)
		return lb_err_set(err, "base_interval: must be above 0");
	ret->base_ns = at_least_1_ms(base);
	if (!m->max_interval) {
		if (__builtin_mul_overflow(ret->base_ns, MAX_PER_BASE, &ret->max_ns))
			ret->max_ns = UINT64_MAX;
		return 0;
	}
	uint64_t max = res_duration_ns(m->max_interval);
	if (max == 0)
		return lb_err_set(err, "max_interval: must be above 0");
	if (max < base)
		return lb_err_set(err, "max_interval: below base_interval");
	ret->max_ns = at_least_1_ms(max);
	return 0;
}

int res_retry_read(struct res_reader *rd, const Policy *m, struct lb_retry *ret)
{
	*ret = (struct lb_retry){
		.max_attempts = 1,
		.base_ns = DEFAULT_BASE_NS,
		.max_ns = DEFAULT_BASE_NS * MAX_PER_BASE,
	};
	if (!m)
		return 0;
	uint32_t n = m->num_retries ? m->num_retries->value : 1; // RT-03
	if (n == 0)
		return lb_err_set(rd->err, "retry_policy.num_retries: must be above 0");
	if (m->retry_back_off && read_back_off(m->retry_back_off, ret, rd->err))
		return lb_err_within(rd->err, "retry_policy.retry_back_off");
	ret->statuses = read_conditions(rd, m->retry_on);
	if (ret->statuses)
		ret->max_attempts = (uint8_t)(1 + (n < MAX_RETRIES ? n : MAX_RETRIES));
	return 0;
}
