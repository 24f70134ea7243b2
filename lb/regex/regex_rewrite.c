// SPDX-License-Identifier: Apache-2.0
#include "lb/regex/regex.h"
#include "lb/regex/regex_re2.h"

#include <errno.h>
#include <stdlib.h>

struct lb_regex_rewrite {
	struct regex_re2 *re; // owned
	size_t len;
	char substitution[];
};

struct lb_regex_rewrite *lb_regex_rewrite_new(
	struct str pattern, struct str substitution, struct lb_err *reterr)
{
	char why[128] = "out of memory";
	struct lb_regex_rewrite *r = malloc(sizeof(*r) + substitution.len);
	if (!r)
		goto err;
	r->len = substitution.len;
	if (r->len)
		memcpy(r->substitution, substitution.p, r->len);
	r->re = regex_re2_new(pattern.p, pattern.len, why, sizeof(why));
	if (r->re && regex_re2_rewrite_ok(r->re, r->substitution, r->len, why, sizeof(why)))
		return r;
err:
	(void)lb_err_set(reterr, "%s", why);
	lb_regex_rewrite_free(r);
	return NULL;
}

void lb_regex_rewrite_free(struct lb_regex_rewrite *r)
{
	if (!r)
		return;
	regex_re2_free(r->re);
	free(r);
}

size_t lb_regex_rewrite_apply(
	const struct lb_regex_rewrite *r, struct str subject, char *out, size_t room)
{
	return regex_re2_replace(r->re, r->substitution, r->len, subject.len ? subject.p : "",
		subject.len, out, room);
}
