// SPDX-License-Identifier: Apache-2.0
#include "lb/regex/regex_one.h"

#include "lb/regex/regex_chain.h"
#include "lb/regex/regex_re2.h"
#include "lb/regex/regex_syntax.h"

#include <stdlib.h>

struct lb_regex_one {
	struct regex_re2 *re2; // owned
	struct lb_regex_chain *chain; // owned; NULL = it is none
	bool if_empty; // matches the empty subject
};

// Without memory for a chain RE2 does it all.
static struct lb_regex_chain *chain_of(struct str pattern)
{
	char *prefix = malloc(pattern.len + 1);
	char *text = malloc(lb_regex_syntax_room(pattern.len));
	struct lb_regex_chain *chain = NULL;
	if (prefix && text) {
		struct lb_regex_syntax s = lb_regex_syntax_read(pattern, prefix, text);
		if (s.is_common)
			chain = lb_regex_chain_new(text, s.text_len);
	}
	free(prefix);
	free(text);
	return chain;
}

struct lb_regex_one *lb_regex_one_new(struct str pattern, struct lb_err *reterr)
{
	char why[128];
	struct lb_regex_one *r = calloc(1, sizeof(*r));
	if (!r) {
		(void)lb_err_set(reterr, "out of memory");
		return NULL;
	}
	r->re2 = regex_re2_new(pattern.p, pattern.len, why, sizeof(why));
	if (!r->re2) {
		(void)lb_err_set(reterr, "%s", why);
		free(r);
		return NULL;
	}
	r->chain = chain_of(pattern);
	r->if_empty = regex_re2_match(r->re2, "", 0);
	return r;
}

void lb_regex_one_free(struct lb_regex_one *r)
{
	if (!r)
		return;
	regex_re2_free(r->re2);
	lb_regex_chain_free(r->chain);
	free(r);
}

bool lb_regex_one_match(const struct lb_regex_one *r, struct str subject)
{
	if (subject.len == 0)
		return r->if_empty;
	if (r->chain && lb_regex_syntax_is_common_text(subject))
		return lb_regex_chain_match(r->chain, subject);
	return regex_re2_match(r->re2, subject.p, subject.len);
}
