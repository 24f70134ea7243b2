// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/bootstrap/fields.h"

#include "lb/base/time.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int xds_field_err(struct lb_err *err, const char *at, const char *field, const char *why)
{
	return lb_err_set(err, "%s%s%s: %s", at, *at ? "." : "", field, why);
}

int xds_field_text(
	const json_t *o, const char *at, const char *field, char **ret, struct lb_err *err)
{
	const json_t *v = json_object_get(o, field);
	if (!v)
		return 0;
	if (!json_is_string(v))
		return xds_field_err(err, at, field, "must be a string");
	if (strlen(json_string_value(v)) != json_string_length(v))
		return xds_field_err(err, at, field, "must not hold a NUL");
	char *copy = strdup(json_string_value(v));
	if (!copy)
		return -ENOMEM;
	free(*ret);
	*ret = copy;
	return 0;
}

int xds_field_path(
	const json_t *o, const char *at, const char *field, char **ret, struct lb_err *err)
{
	int rc = xds_field_text(o, at, field, ret, err);
	if (!rc && *ret && !**ret)
		rc = xds_field_err(err, at, field, "must not be empty");
	return rc;
}

int xds_field_duration(
	const json_t *o, const char *at, const char *field, uint64_t *ret_ns, struct lb_err *err)
{
	static const char WHY[] = "must be a duration like \"600s\"";
	const json_t *v = json_object_get(o, field);
	if (!v)
		return 0;
	const char *p = json_string_value(v);
	if (!p || *p < '0' || *p > '9')
		return xds_field_err(err, at, field, WHY);
	uint64_t s = 0, ns = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		s = s * 10 + (uint64_t)(*p - '0');
		if (s > 315576000000ull) // the largest Duration (WF-02)
			return xds_field_err(err, at, field, "is too long");
	}
	if (*p == '.') {
		uint64_t unit = NS_PER_SECOND / 10;
		if (p[1] < '0' || p[1] > '9')
			return xds_field_err(err, at, field, WHY);
		for (p++; *p >= '0' && *p <= '9' && unit; p++, unit /= 10)
			ns += (uint64_t)(*p - '0') * unit;
	}
	if (strcmp(p, "s") != 0)
		return xds_field_err(err, at, field, WHY);
	// 2^64 ns are 584 years; a longer refresh is "never" either way.
	*ret_ns = s > UINT64_MAX / NS_PER_SECOND - 1 ? UINT64_MAX : s * NS_PER_SECOND + ns;
	return 0;
}
