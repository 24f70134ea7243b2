// SPDX-License-Identifier: Apache-2.0
// Sets of patterns against RE2 itself: argv[1] random pairs instead of the short form's.
#include "lb/base/rand.h"
#include "lb/regex/regex.h"
#include "lb/regex/regex_chain.h"
#include "lb/regex/regex_re2.h"
#include "lb/regex/regex_syntax.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define N_PAIRS 120000 // of the short form

static uint64_t n_pairs = N_PAIRS;

static struct lb_regex_set *set_of(const char *const *patterns, uint32_t n)
{
	struct str list[LB_REGEX_SET_MAX];
	struct lb_err err = {0};
	for (uint32_t i = 0; i < n; i++)
		list[i] = str_from(patterns[i]);
	struct lb_regex_set *s = lb_regex_set_new(list, n, &err);
	if (!s)
		fail_msg("%s: %s", patterns[0], err.text);
	return s;
}

static uint64_t match_set(const struct lb_regex_set *s, struct str subject)
{
	struct lb_regex_scratches *scratches = lb_regex_scratches_fit(NULL, 1, s);
	assert_non_null(scratches);
	uint64_t hits = lb_regex_set_match(s, scratches, 1, subject);
	assert_true(lb_regex_set_match(s, scratches, 0, subject) == hits);
	lb_regex_scratches_put(scratches);
	return hits;
}

static bool matches_str(const char *pattern, struct str subject)
{
	struct lb_regex_set *s = set_of(&pattern, 1);
	uint64_t hits = match_set(s, subject);
	lb_regex_set_put(s);
	return hits == 1;
}

static bool matches(const char *pattern, const char *subject)
{
	return matches_str(pattern, str_from(subject));
}

static bool is_common(const char *pattern)
{
	char prefix[256];
	return lb_regex_syntax_read(str_from(pattern), prefix, NULL).is_common;
}

static void a_pattern_covers_the_whole_subject(void **state) // RX-01, RX-06
{
	assert_true(matches("/a|/b", "/a"));
	assert_true(matches("/a|/b", "/b"));
	assert_false(matches("/a|/b", "/ab"));
	assert_false(matches("/a|/b", "/xx/b"));
	assert_false(matches("^(?:a)$", "a\n"));
	assert_false(matches("a", "a\n"));
	assert_true(matches("^/a/[0-9]+$", "/a/12"));
}

static int check(const char *pattern, size_t len)
{
	struct lb_err err = {0};
	int rc = lb_regex_check((struct str){pattern, len}, &err);
	assert_true(rc == 0 || err.text[0]);
	return rc;
}
#define CHECK_PATTERN(literal) check(literal, sizeof(literal) - 1)

// RX-03, RX-04: RE2 decides on the raw text, whatever Hyperscan would take.
static void what_re2_refuses_is_refused(void **state)
{
	assert_true(CHECK_PATTERN("a)|(?:b"));
	assert_true(CHECK_PATTERN("(?=a)"));
	assert_true(CHECK_PATTERN("(a)\\1"));
	assert_true(CHECK_PATTERN("a*+"));
	assert_true(CHECK_PATTERN("(?>a)"));
	assert_true(CHECK_PATTERN("x{1001}"));
	assert_true(CHECK_PATTERN("([^/]{1,255}/){1,32}"));
	assert_true(CHECK_PATTERN("\\Z"));
	assert_true(CHECK_PATTERN("\\h"));
	assert_true(CHECK_PATTERN("(?x)a b"));
	assert_true(CHECK_PATTERN("(?#c)"));
	assert_true(CHECK_PATTERN("("));
	assert_true(CHECK_PATTERN("\xff"));
	struct lb_err err = {0};
	struct str bad = STR("(");
	assert_null(lb_regex_set_new(&bad, 1, &err));
	assert_string_equal(err.text, "missing ): (");
}

// RX-03: valid is what RE2's own bound of memory takes, more than what it then runs in mostly.
static void large_patterns_are_valid_as_far_as_re2s_own_limit(void **state)
{
	assert_int_equal(CHECK_PATTERN("\\pL{20}"), 0);
	assert_int_equal(CHECK_PATTERN("\\pL{150}"), 0);
	assert_true(CHECK_PATTERN("\\pL{1000}"));
	assert_true(matches("\\pL{20}", "abcdefghijklmnopqrst"));
	assert_false(matches("\\pL{20}", "abcdefghijklmnopqrs1"));
}

// RX-01: also where RE2 forgets something.
static void what_folds_and_what_minds_case_are_not_mixed(void **state)
{
	static const struct {
		const char *pattern, *subject;
	} rows[] = {{"(?:(?i:Z)|[a-z])", "Z"}, {"[a-z]|(?i:Z)", "Z"}, {"z|(?i)Z", "Z"},
		{"x(?:[\\d-z]|(?i:Z)|-)", "xZ"}, {"(?i:z|(?-i:z))", "Z"}, {"z|(?i)[y-z]", "Z"}};
	char why[64];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *pattern = rows[i].pattern, *subject = rows[i].subject;
		struct regex_re2 *re = regex_re2_new(pattern, strlen(pattern), why, sizeof(why));
		bool expected = regex_re2_match(re, subject, strlen(subject));
		regex_re2_free(re);
		assert_int_equal(matches(pattern, subject), expected);
		assert_false(is_common(pattern));
	}
	assert_true(is_common("(?i:bearer) [0-9]+.*[^/]\\w"));
	assert_true(is_common("(?i)a[b-c]"));
	assert_true(matches("(?i:bearer) [0-9]+", "BeaReR 7"));
}

// RX-05: accepted, and run by RE2.
static void what_hyperscan_refuses_runs_on_re2(void **state)
{
	assert_false(matches("abc^def", "abcdef"));
	assert_false(matches("a$b", "a$b"));
	assert_true(matches("(?U)a+", "aaa"));
	assert_true(matches("\\p{Greek}", "\xce\xb1"));
	assert_false(matches("\\p{Greek}", "a"));
	assert_true(matches("\\x{263a}", "\xe2\x98\xba"));
	assert_true(matches("\\C", "\xff"));
	assert_true(matches("\\Qa|b", "a|b"));
	char text[600];
	memset(text, 'a', 200);
	text[200] = 0;
	assert_true(matches("([a-z]|bc*d|xy?z){200}", text));
	text[199] = '-';
	assert_false(matches("([a-z]|bc*d|xy?z){200}", text));
}

// RX-07: empty patterns and subjects, and no flag that changes a meaning.
static void empty_patterns_and_subjects_are_matched(void **state)
{
	assert_true(matches(".*", ""));
	assert_true(matches("(x)?", ""));
	assert_true(matches("(x)?", "x"));
	assert_false(matches("x", ""));
	assert_true(matches_str(".*", (struct str){NULL, 0}));
	assert_false(matches("(x)?", "xx"));
	assert_false(matches(".", "\n"));
	assert_false(matches("a", "A"));
	assert_true(matches("(?i)a", "A"));
	assert_false(matches("a.b", "a\nb"));
	assert_true(matches("a[^x]b", "a\nb"));
}

static void an_empty_regex_matches_the_empty_value_alone(void **state) // RX-11
{
	assert_int_equal(CHECK_PATTERN(""), 0);
	assert_true(matches("", ""));
	assert_false(matches("", "a"));
}

static void each_pattern_of_a_set_has_its_bit(void **state) // RX-08
{
	static const char *const patterns[] = {
		"/a.*", "/a/b", "(?i)/A/B", "/.*b", "", "/a/\\p{L}", "/a/b?b"};
	struct lb_regex_set *s = set_of(patterns, 7);
	assert_true(match_set(s, STR("/a/b")) == (1 | 2 | 4 | 8 | 32 | 64));
	assert_true(match_set(s, STR("/A/B")) == 4);
	assert_true(match_set(s, STR("")) == 16);
	assert_true(match_set(s, STR("/a/\xc3\xa4")) == (1 | 32));
	assert_true(lb_regex_set_size(s) > 0);
	lb_regex_set_put(s);
	char texts[LB_REGEX_SET_MAX][16];
	const char *all[LB_REGEX_SET_MAX];
	for (uint32_t i = 0; i < LB_REGEX_SET_MAX; i++) {
		snprintf(texts[i], sizeof(texts[i]), "/s%u/[0-9]+", i);
		all[i] = texts[i];
	}
	s = set_of(all, LB_REGEX_SET_MAX);
	assert_true(match_set(s, STR("/s63/7")) == UINT64_C(1) << 63);
	assert_true(match_set(s, STR("/s0/7")) == 1);
	lb_regex_set_put(s);
}

// RX-09: beyond ASCII a dot is a code point, and no byte of an invalid one.
static void subjects_beyond_ascii_are_read_by_re2(void **state)
{
	assert_true(matches(".", "\xc3\xa4"));
	assert_false(matches("..", "\xc3\xa4"));
	assert_false(matches(".", "\xff"));
	assert_false(matches("a.b", "a\x80"
				    "b"));
	assert_true(matches("(?i)k", "\xe2\x84\xaa")); // KELVIN SIGN
	assert_false(matches("a\\sb", "a\x0b"
				      "b"));
}

static void nul_bytes_are_bytes(void **state) // RX-10
{
	static const char pattern[] = "a\0b";
	struct str p = {pattern, 3};
	struct lb_err err;
	struct lb_regex_set *s = lb_regex_set_new(&p, 1, &err);
	assert_non_null(s);
	assert_true(match_set(s, (struct str){"a\0b", 3}) == 1);
	assert_true(match_set(s, STR("a")) == 0);
	lb_regex_set_put(s);
	assert_false(matches_str("a", (struct str){"a\0", 2}));
	assert_true(matches_str("a.", (struct str){"a\0", 2}));
	assert_true(matches_str("a[^b]*", (struct str){"aaaaaaaaa\0", 10}));
}

static struct str prefix_of(const char *const *patterns, uint32_t n, char *out)
{
	struct lb_regex_set *s = set_of(patterns, n);
	struct str p = lb_regex_set_prefix(s);
	memcpy(out, p.p, p.len);
	lb_regex_set_put(s);
	return (struct str){out, p.len};
}

static void the_prefix_is_what_all_matches_start_with(void **state)
{
	static const struct {
		const char *patterns[3], *prefix;
	} rows[] = {
		{{"/v1/[a-z]+"}, "/v1/"},
		{{"^/v1/x$"}, "/v1/x"},
		{{"/v1/ab?"}, "/v1/a"},
		{{"/v1/ab*"}, "/v1/a"},
		{{"/v1/ab+"}, "/v1/ab"},
		{{"/v1/ab{0,3}"}, "/v1/a"},
		{{"/v1\\.0/x.*"}, "/v1.0/x"},
		{{"/a|/b"}, "/"},
		{{"^/a/b$|^/a/[cd]$"}, "/a/"},
		{{"/a/b|/a"}, "/a"},
		{{"/a||/ab"}, ""},
		{{"/a(|/b)"}, "/a"},
		{{"/a[(]|/b"}, "/"},
		{{"(?i)/a"}, "/"},
		{{"/a(?P<rest>/.*)?"}, "/a"},
		{{"/a{2}"}, "/"},
		{{"/a\\p{L}"}, ""},
		{{"/v1/a.*", "/v1/b.*", "/v1"}, "/v1"},
		{{"/v1/a.*", ".*"}, ""},
		{{""}, ""},
	};
	char out[64];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t n = 0;
		while (n < 3 && rows[i].patterns[n])
			n++;
		struct str p = prefix_of(rows[i].patterns, n, out);
		if (!str_eq(p, str_from(rows[i].prefix)))
			fail_msg("%s: %.*s", rows[i].patterns[0], (int)p.len, p.p);
	}
}

// RE2 is not to run what real routes are written with.
static void everyday_patterns_are_common(void **state)
{
	static const char *const patterns[] = {"/v1/[^/]+/items/[0-9]+", "^/api/v[12]/.*$",
		"/(foo|bar)/?", "[a-z0-9_-]+\\.example\\.com", "(?:a|b){1,3}c*?", "\\d{4}-\\d{2}",
		"[A-Za-z0-9._~-]*", "x\\$\\^\\|\\\\", "a\\s", "(?i)bearer .+", "(?s).*",
		"[[:alpha:]]+", "\\x41", "/(?P<user>[^/]+)", "a{,3}", "[]a]", "^a$|^b$",
		"(?i:a)-1"};
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (!is_common(patterns[i]))
			fail_msg("%s", patterns[i]);
	static const char *const others[] = {"a$b", "\\bfoo", "(^a)*", "(a$)", "\\Qa", "\\pL",
		"\\x{4e00}", "\xc3\xa4", "(?m)^a$", "(?U)a+", "\\C", "\\012", "\\Aa", "a\\z",
		"[^\\x00-\\x7f]", "[[:alpha:]-\\x{e4}]"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (is_common(others[i]))
			fail_msg("%s", others[i]);
}

static struct lb_regex_chain *chain_of(const char *pattern)
{
	char prefix[256], text[8192];
	struct str p = str_from(pattern);
	assert_true(lb_regex_syntax_room(p.len) <= sizeof(text));
	struct lb_regex_syntax s = lb_regex_syntax_read(p, prefix, text);
	assert_true(s.is_common && s.text_len <= sizeof(text));
	return lb_regex_chain_new(text, s.text_len);
}

static void patterns_that_need_no_second_try_are_chains(void **state)
{
	static const char *const chains[] = {"/v1/[^/]+/items/[0-9]+", "/a/.*", "[a-z]+-\\d{2,3}x?",
		"", "a?b?c", ".*", "(?i)ab+"};
	for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
		struct lb_regex_chain *c = chain_of(chains[i]);
		if (!c)
			fail_msg("%s", chains[i]);
		assert_true(lb_regex_chain_size(c) > 0);
		lb_regex_chain_free(c);
	}
	static const char *const others[] = {
		"a*a", "/.*/b", "[a-z]*x?z", "a|b", "(ab)+", "a{1,2}b?a", "\\w+_"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (chain_of(others[i]))
			fail_msg("%s", others[i]);
}

// Random pairs.

static size_t put(char *out, size_t at, const char *text)
{
	size_t len = strlen(text);
	memcpy(out + at, text, len);
	return at + len;
}

static size_t random_pattern(struct rand *r, char *out, size_t at, int depth)
{
	static const char *const atoms[] = {"a", "b", "c", "/", "k", "s", "1", "-", "_", " ", ".",
		"\\d", "\\w", "\\W", "\\D", "\\.", "\\/", "\\-", "[ab]", "[^a]", "[a-c]",
		"[a-c0-9_-]", "[-a]", "\\t", "[\\d.]", "[^\\w]", "\\s", "\\S", "\\b", "^", "$",
		"\\z", "[[:alpha:]]", "\xc3\xa4", "\\x{e4}", "\\pL", "(?i)", "(?s)", "(?m)", "(?U)",
		"\\C", "\\Q.\\E", "[\\s]", "]", "}", "{", "[a-", "\\A", "\\B", "[^\\n]", "\\n",
		"x{2}", "\\x0b", "[&&]", "[~a]"};
	static const char *const counts[] = {
		"*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}", "{2,}", "{0}"};
	uint32_t n = 1 + (uint32_t)rand_below(r, 4);
	// Mostly of what both engines share, which is the front of the list.
	uint32_t n_atoms = rand_below(r, 4) ? 26 : (uint32_t)(sizeof(atoms) / sizeof(atoms[0]));
	for (uint32_t i = 0; i < n && at < 150; i++) {
		if (depth < 3 && rand_below(r, 4) == 0) {
			at = put(out, at, rand_below(r, 2) ? "(" : "(?:");
			at = random_pattern(r, out, at, depth + 1);
			at = put(out, at, ")");
		} else {
			at = put(out, at, atoms[rand_below(r, n_atoms)]);
		}
		if (rand_below(r, 3) == 0)
			at = put(out, at, counts[rand_below(r, 11)]);
		if (rand_below(r, 6) == 0)
			at = put(out, at, "|");
	}
	return at;
}

// What is left of the pattern without its signs, so that hits are not rare.
static size_t subject_like(struct rand *r, struct str pattern, char *out, size_t room)
{
	size_t at = 0;
	for (size_t i = 0; i < pattern.len && at < room; i++)
		if (!strchr("()|*+?[]\\{}:", pattern.p[i]) && rand_below(r, 8))
			out[at++] = pattern.p[i] == '.' ? 'a' : pattern.p[i];
	if (at && rand_below(r, 2))
		out[rand_below(r, (uint32_t)at)] ^= 0x20;
	return at;
}

static size_t random_subject(struct rand *r, char *out)
{
	static const char bytes[] = "aaabbbccc//kKsS11--__  ..\t\n\x0b]}{x\0\xff\xc3\xa4\x80";
	static const char *const pieces[] = {"\xc3\xa4", "\xe2\x84\xaa", "\xc5\xbf"};
	size_t len = rand_below(r, 10), at = 0;
	bool odd = rand_below(r, 4) == 0;
	while (at < len) {
		if (odd && rand_below(r, 6) == 0)
			at = put(out, at, pieces[rand_below(r, 3)]);
		else
			out[at++] = bytes[rand_below(r, odd ? sizeof(bytes) - 1 : 34)];
	}
	return at;
}

#define PER_PATTERN 40

// RX-01, and that no match lacks the prefix: both sides get the same pattern and subject.
static void random_pairs_get_the_verdict_of_re2(void **state)
{
	struct rand r;
	rand_init(&r, 1);
	uint64_t n = 0, n_common = 0, n_hits = 0, n_patterns = 0;
	char pattern[400], subject[64], prefix[400], why[128];
	while (n < n_pairs) {
		struct str p = {pattern, random_pattern(&r, pattern, 0, 0)};
		struct regex_re2 *re = regex_re2_new(p.p, p.len, why, sizeof(why));
		struct lb_err err;
		assert_int_equal(lb_regex_check(p, &err) == 0, re != NULL);
		if (!re)
			continue;
		struct lb_regex_set *s = lb_regex_set_new(&p, 1, &err);
		assert_non_null(s);
		n_patterns++;
		n_common += lb_regex_syntax_read(p, prefix, NULL).is_common;
		struct lb_regex_scratches *scratches = lb_regex_scratches_fit(NULL, 1, s);
		for (int i = 0; i < PER_PATTERN; i++) {
			struct str t = {subject, rand_below(&r, 2)
							 ? random_subject(&r, subject)
							 : subject_like(&r, p, subject, 32)};
			bool expected = regex_re2_match(re, t.p, t.len);
			bool got = lb_regex_set_match(s, scratches, 0, t) == 1;
			if (got != expected)
				fail_msg("/%.*s/ on \"%.*s\": %d, RE2 says %d", (int)p.len, p.p,
					(int)t.len, t.p, got, expected);
			n_hits += expected;
		}
		n += PER_PATTERN;
		lb_regex_scratches_put(scratches);
		lb_regex_set_put(s);
		regex_re2_free(re);
	}
	print_message("%llu pairs, %llu patterns, %llu of them common, %llu hits\n",
		(unsigned long long)n, (unsigned long long)n_patterns, (unsigned long long)n_common,
		(unsigned long long)n_hits);
	assert_true(n_common > n_patterns / 3 && n_hits > n / 100);
}

static void scratches_grow_only_for_a_set_that_needs_it(void **state)
{
	static const char *const small[] = {"/a"};
	static const char *const re2[] = {"\\pL"};
	struct lb_regex_set *a = set_of(small, 1), *b = set_of(re2, 1);
	struct lb_regex_scratches *first = lb_regex_scratches_fit(NULL, 2, a);
	struct lb_regex_scratches *again = lb_regex_scratches_fit(first, 2, a);
	struct lb_regex_scratches *none = lb_regex_scratches_fit(first, 2, b);
	assert_ptr_equal(first, again);
	assert_ptr_equal(first, none);
	assert_true(lb_regex_set_match(a, first, 2, STR("/a")) == 1);
	lb_regex_scratches_put(first);
	lb_regex_scratches_put(again);
	lb_regex_scratches_put(none);
	lb_regex_set_put(a);
	lb_regex_set_put(b);
}

static void scratches_grow_for_a_set_that_needs_more(void **state)
{
	static const char *const small[] = {"/(a|b)"};
	static const char *const large[] = {".*x.{200}(a|b)", ".*y.{300}c", "(.*z|w){3}[a-f]{2,9}"};
	struct lb_regex_set *a = set_of(small, 1), *b = set_of(large, 3);
	struct lb_regex_scratches *first = lb_regex_scratches_fit(NULL, 2, a);
	struct lb_regex_scratches *both = lb_regex_scratches_fit(first, 2, b);
	assert_ptr_not_equal(first, both);
	struct lb_regex_scratches *again = lb_regex_scratches_fit(both, 2, a);
	assert_ptr_equal(both, again);
	for (uint32_t thread = 0; thread <= 2; thread++) {
		assert_true(lb_regex_set_match(a, first, thread, STR("/a")) == 1);
		assert_true(lb_regex_set_match(a, both, thread, STR("/b")) == 1);
		assert_true(lb_regex_set_match(b, both, thread, STR("zwwaa")) == 4);
	}
	lb_regex_scratches_put(first);
	lb_regex_scratches_put(both);
	lb_regex_scratches_put(again);
	lb_regex_set_put(a);
	lb_regex_set_put(b);
}

static void scratches_stand_a_lack_of_memory(void **state)
{
	static const char *const small[] = {"/(a|b)"}, *const large[] = {".*x.{200}(a|b)"};
	struct lb_regex_set *a = set_of(small, 1), *b = set_of(large, 1);
	struct lb_regex_scratches *old = lb_regex_scratches_fit(NULL, 2, a), *s;
	ALLOC_FAIL_EACH(
		s = lb_regex_scratches_fit(old, 2, b), s == NULL, lb_regex_scratches_put(s));
	ALLOC_FAIL_EACH(
		s = lb_regex_scratches_fit(NULL, 2, b), s == NULL, lb_regex_scratches_put(s));
	assert_true(lb_regex_set_match(a, old, 0, STR("/a")) == 1);
	lb_regex_scratches_put(old);
	lb_regex_set_put(a);
	lb_regex_set_put(b);
}

#define N_THREADS 3

struct shared {
	struct lb_regex_set *set;
	struct lb_regex_scratches *scratches;
	pthread_t threads[N_THREADS];
	unsigned n_wrong[N_THREADS];
};
struct turn {
	struct shared *shared;
	uint32_t thread;
};

static void *match_much(void *arg)
{
	struct turn *t = arg;
	struct shared *x = t->shared;
	for (unsigned i = 0; i < 4000; i++) {
		char text[64];
		int n = snprintf(text, sizeof(text), "/a/%u\xc3\xa4%u", i % 97, i % 7);
		uint64_t hits = lb_regex_set_match(
			x->set, x->scratches, t->thread, (struct str){text, (size_t)n});
		x->n_wrong[t->thread] += hits != (i % 7 == 3 ? 3 : 2);
		hits = lb_regex_set_match(x->set, x->scratches, t->thread, STR("/a/b3"));
		x->n_wrong[t->thread] += hits != 5;
	}
	return NULL;
}

static void threads_match_at_once(void **state)
{
	static const char *const patterns[] = {"/a/.*3", "/a/[0-9]+[^/]+", "/a/(b|c)+[0-9]"};
	struct shared x = {.set = set_of(patterns, 3)};
	x.scratches = lb_regex_scratches_fit(NULL, N_THREADS - 1, x.set);
	struct turn turns[N_THREADS];
	for (uint32_t i = 0; i < N_THREADS; i++) {
		turns[i] = (struct turn){&x, i};
		assert_int_equal(pthread_create(&x.threads[i], NULL, match_much, &turns[i]), 0);
	}
	for (uint32_t i = 0; i < N_THREADS; i++) {
		pthread_join(x.threads[i], NULL);
		assert_int_equal(x.n_wrong[i], 0);
	}
	lb_regex_scratches_put(x.scratches);
	lb_regex_set_put(x.set);
}

static void rewrites_replace_all_hits_with_groups(void **state) // HP-03
{
	struct lb_err err = {0};
	char out[32];
	struct lb_regex_rewrite *r = lb_regex_rewrite_new(STR("user-(\\d+)"), STR("<\\1>"), &err);
	assert_non_null(r);
	size_t n = lb_regex_rewrite_apply(r, STR("user-1,user-22"), out, sizeof(out));
	assert_int_equal(n, 8);
	assert_memory_equal(out, "<1>,<22>", 8);
	assert_int_equal(lb_regex_rewrite_apply(r, STR("user-1,user-22"), out, 3), 3);
	assert_int_equal(lb_regex_rewrite_apply(r, STR(""), out, 3), 0);
	lb_regex_rewrite_free(r);
	assert_null(lb_regex_rewrite_new(STR("("), STR(""), &err));
	assert_string_equal(err.text, "missing ): (");
	assert_null(lb_regex_rewrite_new(STR("a"), STR("\\1"), &err));
	assert_true(err.text[0]);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		n_pairs = strtoull(argv[1], NULL, 0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_covers_the_whole_subject),
		cmocka_unit_test(what_re2_refuses_is_refused),
		cmocka_unit_test(large_patterns_are_valid_as_far_as_re2s_own_limit),
		cmocka_unit_test(what_folds_and_what_minds_case_are_not_mixed),
		cmocka_unit_test(what_hyperscan_refuses_runs_on_re2),
		cmocka_unit_test(empty_patterns_and_subjects_are_matched),
		cmocka_unit_test(an_empty_regex_matches_the_empty_value_alone),
		cmocka_unit_test(each_pattern_of_a_set_has_its_bit),
		cmocka_unit_test(subjects_beyond_ascii_are_read_by_re2),
		cmocka_unit_test(nul_bytes_are_bytes),
		cmocka_unit_test(the_prefix_is_what_all_matches_start_with),
		cmocka_unit_test(everyday_patterns_are_common),
		cmocka_unit_test(patterns_that_need_no_second_try_are_chains),
		cmocka_unit_test(random_pairs_get_the_verdict_of_re2),
		cmocka_unit_test(scratches_grow_only_for_a_set_that_needs_it),
		cmocka_unit_test(scratches_grow_for_a_set_that_needs_more),
		cmocka_unit_test(scratches_stand_a_lack_of_memory),
		cmocka_unit_test(threads_match_at_once),
		cmocka_unit_test(rewrites_replace_all_hits_with_groups),
	};
	return cmocka_run_group_tests_name("lb/regex", tests, NULL, NULL);
}
