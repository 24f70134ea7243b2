// SPDX-License-Identifier: Apache-2.0
// The first byte says which form, the rest is a field's value: base64 is made of it for the binary
// ones. What is read holds finite numbers only, and is read again as the same.
#include "dataplane/proxy/orca.h"
#include "lb/base/base64.h"
#include "lb/base/check.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_named(void *ctx, struct str name, double value)
{
	CHECK(isfinite(value));
	double *sum = ctx;
	*sum += (double)name.len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[BASE64_SIZE(4096)], scratch[sizeof(text) + 3];
	if (!size || size > 4096)
		return 0;
	bool is_binary = data[0] & 1;
	size_t len = size - 1;
	if (is_binary)
		len = base64_encode(data + 1, len, text);
	else
		memcpy(text, data + 1, len);
	const struct field f = {
		.name = is_binary ? STR("endpoint-load-metrics-bin") : STR("endpoint-load-metrics"),
		.value = {text, len}};
	struct proxy_orca a, b;
	double n = 0;
	const struct proxy_orca_listener l = {on_named, &n};
	enum proxy_orca_kind kind = proxy_orca_read(&f, 1, scratch, sizeof(scratch), &a, &l);
	CHECK(kind != PROXY_ORCA_NONE && (kind == PROXY_ORCA_READ || n == 0));
	CHECK(proxy_orca_read(&f, 1, scratch, sizeof(scratch), &b, NULL) == kind);
	if (kind != PROXY_ORCA_READ)
		return 0;
	CHECK(memcmp(&a, &b, sizeof(a)) == 0);
	CHECK(isfinite(a.report.qps) && isfinite(a.report.eps) && isfinite(a.mem_utilization) &&
		isfinite(a.report.cpu_utilization) && isfinite(a.report.application_utilization));
	return 0;
}
