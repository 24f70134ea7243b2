// SPDX-License-Identifier: Apache-2.0
#include "lb/base/devargs.h"

struct str devargs_find(const char *device, const char *key)
{
	struct str found = {NULL, 0};
	size_t len = strlen(key);
	for (const char *at = strchr(device, ','); at; at = strchr(at, ',')) {
		at++;
		if (strncmp(at, key, len) == 0 && at[len] == '=')
			found = str_until(str_from(at + len + 1), ',');
	}
	return found;
}

uint32_t devargs_number(const char *device, const char *key)
{
	uint64_t n = 0;
	(void)str_number(devargs_find(device, key), UINT32_MAX, &n);
	return (uint32_t)n;
}
