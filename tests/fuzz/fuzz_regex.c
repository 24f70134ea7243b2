// SPDX-License-Identifier: Apache-2.0
// Lines: a pattern, and subjects. Validity and verdicts are RE2's, by whichever engine, and what
// matches starts with the set's prefix.
#include "lb/base/check.h"
#include "lb/regex/regex.h"
#include "lb/regex/regex_re2.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str take_line(struct str *text)
{
	const char *end = text->len ? memchr(text->p, '\n', text->len) : NULL;
	struct str line = {text->p, end ? (size_t)(end - text->p) : text->len};
	size_t n = line.len + (end != NULL);
	*text = (struct str){text->p + n, text->len - n};
	return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	struct str pattern = take_line(&text);
	char why[128];
	struct lb_err err;
	struct regex_re2 *re = regex_re2_new(pattern.p, pattern.len, why, sizeof(why));
	CHECK((lb_regex_check(pattern, &err) == 0) == (re != NULL));
	// Alone, and among so many that nothing is a chain.
	struct str list[9];
	for (int i = 0; i < 9; i++)
		list[i] = pattern;
	struct lb_regex_set *one = lb_regex_set_new(list, 1, &err);
	struct lb_regex_set *many = re ? lb_regex_set_new(list, 9, &err) : NULL;
	CHECK(!one == !re && !many == !re);
	if (!re)
		return 0;
	struct lb_regex_scratches *first = lb_regex_scratches_fit(NULL, 0, one);
	struct lb_regex_scratches *s = lb_regex_scratches_fit(first, 0, many);
	for (int i = 0; i < 16 && (i == 0 || text.len); i++) {
		struct str subject = take_line(&text);
		bool expected = regex_re2_match(re, subject.p, subject.len);
		CHECK(lb_regex_set_match(one, s, 0, subject) == expected);
		CHECK(lb_regex_set_match(many, s, 0, subject) == (expected ? 0x1ff : 0));
		CHECK(!expected || str_starts(subject, lb_regex_set_prefix(one)));
	}
	lb_regex_scratches_put(s);
	lb_regex_scratches_put(first);
	lb_regex_set_put(one);
	lb_regex_set_put(many);
	regex_re2_free(re);
	return 0;
}
