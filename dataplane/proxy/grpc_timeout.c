// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/grpc_timeout.h"

#include "lb/base/time.h"
#include "lb/route/timeouts.h"

#define MAX_DIGITS 8
#define MAX_VALUE 99999999

static const struct {
	char letter;
	uint64_t ns;
} units[] = {
	{'n', 1},
	{'u', NS_PER_US},
	{'m', NS_PER_MS},
	{'S', NS_PER_SECOND},
	{'M', 60 * NS_PER_SECOND},
	{'H', 3600 * NS_PER_SECOND},
};
#define N_UNITS (sizeof(units) / sizeof(units[0]))

bool proxy_grpc_timeout_parse(struct str s, uint64_t *ret_ns)
{
	if (s.len < 2 || s.len > MAX_DIGITS + 1)
		return false;
	uint64_t value = 0;
	for (size_t i = 0; i < s.len - 1; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		value = 10 * value + (uint64_t)(s.p[i] - '0');
	}
	for (size_t i = 0; i < N_UNITS; i++) {
		if (units[i].letter != s.p[s.len - 1])
			continue;
		if (__builtin_mul_overflow(value, units[i].ns, ret_ns))
			*ret_ns = LB_NO_TIMEOUT;
		return true;
	}
	return false;
}

size_t proxy_grpc_timeout_write(uint64_t ns, char out[PROXY_GRPC_TIMEOUT_MAX])
{
	size_t unit = 0;
	uint64_t value = ns ? ns : 1;
	// 2^64 ns are less than MAX_VALUE hours.
	while (value > MAX_VALUE) {
		unit++;
		value = ns / units[unit].ns + (ns % units[unit].ns != 0);
	}
	char digits[MAX_DIGITS];
	size_t n = 0, len = 0;
	for (; value; value /= 10)
		digits[n++] = (char)('0' + value % 10);
	while (n)
		out[len++] = digits[--n];
	out[len++] = units[unit].letter;
	return len;
}
