// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/regex_check.h"

#include "lb/regex/regex.h"

#include <xxhash.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define N_REMEMBERED 16384 // 256 KiB

// Hashes of valid patterns, each in the one place that its hash gives it; a newer pattern takes the
// place of an older one. Whoever finds two patterns with one hash gets no further than the compiler
// of the tables, which refuses what is not valid.
static XXH128_hash_t remembered[N_REMEMBERED];

int res_regex_check(const char *pattern, struct lb_err *err)
{
	size_t len = strlen(pattern);
	XXH128_hash_t h = XXH3_128bits(pattern, len);
	XXH128_hash_t *place = &remembered[h.low64 % N_REMEMBERED];
	if (XXH128_isEqual(*place, h))
		return 0;
	int rc = lb_regex_check((struct str){pattern, len}, err);
	if (!rc)
		*place = h;
	return rc;
}

int res_rewrite_check(const char *pattern, const char *substitution, struct lb_err *err)
{
	struct lb_err why = {""};
	struct lb_regex_rewrite *rewrite =
		lb_regex_rewrite_new(str_from(pattern), str_from(substitution), &why);
	lb_regex_rewrite_free(rewrite);
	if (rewrite)
		return 0;
	return *why.text ? lb_err_set(err, "%s", why.text) : -ENOMEM;
}
