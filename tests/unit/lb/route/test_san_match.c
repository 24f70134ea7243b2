// SPDX-License-Identifier: Apache-2.0
// Names of certificates and what they are matched by (TLS-130, TLS-131), as rows, and wildcards
// beside a naive twin.
#include "lb/base/rand.h"
#include "lb/route/san_match.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

struct row {
	enum lb_san_kind kind; // of the certificate's only name
	const char *name;
	uint32_t kinds;
	enum lb_san_match match;
	const char *text;
	bool ignore_case, hit;
};

static void check_row(const struct row *r)
{
	struct lb_err err = {""};
	const struct lb_san_matcher_conf conf = {
		r->kinds, r->match, r->ignore_case, str_from(r->text)};
	const struct lb_san san = {r->kind, str_from(r->name)};
	struct lb_san_matchers *m = lb_san_matchers_new(&conf, 1, &err);
	if (!m)
		fail_msg("%s: %s", r->text, err.text);
	if (lb_san_matchers_match(m, &san, 1) != r->hit)
		fail_msg("\"%s\" by \"%s\": not %d", r->name, r->text, r->hit);
	lb_san_matchers_free(m);
}

static void tls_130_names_are_matched_by_their_kind(void **state)
{
	static const struct row rows[] = {
		{LB_SAN_DNS, "a.example", LB_SAN_ALL, LB_SAN_EXACT, "a.example", false, true},
		{LB_SAN_DNS, "a.example", LB_SAN_DNS, LB_SAN_EXACT, "a.example", false, true},
		{LB_SAN_DNS, "a.example", LB_SAN_URI, LB_SAN_EXACT, "a.example", false, false},
		{LB_SAN_DNS, "A.Example", LB_SAN_ALL, LB_SAN_EXACT, "a.eXAMPLE", false, true},
		{LB_SAN_DNS, "a.example.", LB_SAN_ALL, LB_SAN_EXACT, "a.example", false, true},
		{LB_SAN_DNS, "a.example", LB_SAN_ALL, LB_SAN_EXACT, "a.example.", false, true},
		{LB_SAN_DNS, "*.example", LB_SAN_ALL, LB_SAN_EXACT, "a.example", false, true},
		{LB_SAN_DNS, "*.example", LB_SAN_ALL, LB_SAN_EXACT, "a.b.example", false, false},
		{LB_SAN_DNS, "*.example", LB_SAN_ALL, LB_SAN_EXACT, "example", false, false},
		{LB_SAN_DNS, "*.example", LB_SAN_ALL, LB_SAN_EXACT, ".example", false, false},
		{LB_SAN_DNS, "a*.example", LB_SAN_ALL, LB_SAN_EXACT, "ab.example", false, false},
		{LB_SAN_DNS, "*.*.example", LB_SAN_ALL, LB_SAN_EXACT, "a.b.example", false, false},
		{LB_SAN_DNS, "a.*.example", LB_SAN_ALL, LB_SAN_EXACT, "a.b.example", false, false},
		{LB_SAN_DNS, "*", LB_SAN_ALL, LB_SAN_EXACT, "a", false, false},
		{LB_SAN_DNS, "*.", LB_SAN_ALL, LB_SAN_EXACT, "a.", false, false},
		{LB_SAN_DNS, "", LB_SAN_ALL, LB_SAN_EXACT, "", false, false},
		{LB_SAN_DNS, ".", LB_SAN_ALL, LB_SAN_EXACT, ".", false, false},
		// Only exact names of hosts know wildcards.
		{LB_SAN_URI, "*.example", LB_SAN_ALL, LB_SAN_EXACT, "a.example", false, false},
		{LB_SAN_DNS, "*.example", LB_SAN_ALL, LB_SAN_SUFFIX, "a.example", false, false},
		{LB_SAN_DNS, "*.example", LB_SAN_ALL, LB_SAN_PREFIX, "*.ex", false, true},
		{LB_SAN_URI, "spiffe://a/b", LB_SAN_URI, LB_SAN_EXACT, "spiffe://a/b", false, true},
		{LB_SAN_URI, "spiffe://a/B", LB_SAN_URI, LB_SAN_EXACT, "spiffe://a/b", false,
			false},
		{LB_SAN_URI, "spiffe://a/B", LB_SAN_URI, LB_SAN_EXACT, "spiffe://a/b", true, true},
		{LB_SAN_URI, "spiffe://a/b", LB_SAN_URI, LB_SAN_PREFIX, "spiffe://a/", false, true},
		{LB_SAN_URI, "spiffe://ab/b", LB_SAN_URI, LB_SAN_PREFIX, "spiffe://a/", false,
			false},
		{LB_SAN_URI, "spiffe://a/b", LB_SAN_URI, LB_SAN_PREFIX, "SPIFFE://", true, true},
		{LB_SAN_URI, "spiffe://a/b", LB_SAN_URI, LB_SAN_SUFFIX, "/b", false, true},
		{LB_SAN_URI, "/b", LB_SAN_URI, LB_SAN_SUFFIX, "a/b", false, false},
		{LB_SAN_URI, "spiffe://a/b", LB_SAN_URI, LB_SAN_CONTAINS, "//a", false, true},
		{LB_SAN_URI, "spiffe://a/b", LB_SAN_URI, LB_SAN_CONTAINS, "//A", false, false},
		{LB_SAN_URI, "spiffe://a/b", LB_SAN_URI, LB_SAN_CONTAINS, "//A", true, true},
		{LB_SAN_URI, "spiffe://a/b", LB_SAN_URI, LB_SAN_REGEX, "spiffe://[a-c]/.*", false,
			true},
		{LB_SAN_URI, "spiffe://a/b", LB_SAN_URI, LB_SAN_REGEX, "spiffe://[a-c]/", false,
			false},
		{LB_SAN_EMAIL, "a@b", LB_SAN_EMAIL, LB_SAN_EXACT, "a@b", false, true},
		{LB_SAN_IP, "\x0a\x01\x02\x03", LB_SAN_ALL, LB_SAN_EXACT, "10.1.2.3", false, true},
		{LB_SAN_IP, "\x0a\x01\x02\x03", LB_SAN_IP, LB_SAN_PREFIX, "10.1.", false, true},
		{LB_SAN_IP, "\x0a\x01\x02", LB_SAN_ALL, LB_SAN_REGEX, ".*", false, false},
		{LB_SAN_IP, "\x20\x01\x0d\xb8\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01",
			LB_SAN_IP, LB_SAN_EXACT, "2001:db8:101:101:101:101:101:101", false, true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
}

static void tls_130_one_name_and_one_matcher_are_enough(void **state)
{
	const struct lb_san_matcher_conf confs[] = {
		{LB_SAN_ALL, LB_SAN_EXACT, false, STR("x")},
		{LB_SAN_URI, LB_SAN_PREFIX, false, STR("spiffe://a/")},
	};
	const struct lb_san sans[] = {{LB_SAN_DNS, STR("a")}, {LB_SAN_URI, STR("spiffe://a/b")}};
	struct lb_san_matchers *m = lb_san_matchers_new(confs, 2, NULL);
	assert_non_null(m);
	assert_true(lb_san_matchers_match(m, sans, 2));
	assert_false(lb_san_matchers_match(m, sans, 1));
	assert_false(lb_san_matchers_match(m, NULL, 0));
	lb_san_matchers_free(m);
}

static void tls_130_without_matchers_everybody_is_accepted(void **state)
{
	struct lb_san_matchers *m = lb_san_matchers_new(NULL, 0, NULL);
	assert_non_null(m);
	assert_true(lb_san_matchers_match(m, NULL, 0));
	lb_san_matchers_free(m);
}

static void a_bad_pattern_is_an_error(void **state)
{
	struct lb_err err = {""};
	const struct lb_san_matcher_conf confs[] = {{LB_SAN_ALL, LB_SAN_REGEX, false, STR("a")},
		{LB_SAN_ALL, LB_SAN_REGEX, false, STR("(")}};
	assert_null(lb_san_matchers_new(confs, 2, &err));
	assert_string_equal(err.text, "missing ): (");
}

static void tls_131_a_host_is_a_dns_name_alone(void **state)
{
	const struct lb_san sans[] = {{LB_SAN_URI, STR("a.example")}, {LB_SAN_DNS, STR("*.test")}};
	assert_true(lb_san_has_host(sans, 2, STR("b.test")));
	assert_false(lb_san_has_host(sans, 2, STR("a.example")));
	assert_false(lb_san_has_host(sans, 2, STR("c.b.test")));
	assert_false(lb_san_has_host(sans, 2, STR("")));
}

// Label by label, on names of a few letters.
static bool twin_covers(const char *name, const char *host)
{
	char a[64], b[64], *save_a, *save_b;
	snprintf(a, sizeof(a), "%s", name);
	snprintf(b, sizeof(b), "%s", host);
	bool wild = strncmp(a, "*.", 2) == 0 && a[2] && a[2] != '.';
	if (strchr(a + wild, '*') || !*a || !*b || *a == '.' || *b == '.' || strstr(a, "..") ||
		strstr(b, ".."))
		return false;
	char *la = strtok_r(a, ".", &save_a), *lb = strtok_r(b, ".", &save_b);
	for (bool first = true; la && lb; first = false) {
		if (!(first && wild) && strcasecmp(la, lb) != 0)
			return false;
		la = strtok_r(NULL, ".", &save_a);
		lb = strtok_r(NULL, ".", &save_b);
	}
	return !la && !lb;
}

static void random_name(struct rand *r, const char *letters, char *out)
{
	size_t len = rand_u64(r) % 8, n = strlen(letters);
	for (size_t i = 0; i < len; i++)
		out[i] = letters[rand_u64(r) % n];
	out[len] = '\0';
}

static void wildcards_are_what_a_naive_twin_says(void **state)
{
	struct rand r;
	rand_init(&r, 1);
	uint32_t n_hits = 0;
	for (int i = 0; i < 2000000; i++) {
		char name[16], host[16];
		random_name(&r, "ab.*", name);
		random_name(&r, "aB.", host);
		if (strstr(name, "..") || strstr(host, "..")) // no names of hosts
			continue;
		struct lb_san san = {LB_SAN_DNS, str_from(name)};
		bool hit = lb_san_has_host(&san, 1, str_from(host));
		if (hit != twin_covers(name, host))
			fail_msg("\"%s\" and \"%s\": %d", name, host, hit);
		n_hits += hit;
	}
	assert_true(n_hits > 1000);
}

RUN_SUITE("lb/san_match", cmocka_unit_test(tls_130_names_are_matched_by_their_kind),
	cmocka_unit_test(tls_130_one_name_and_one_matcher_are_enough),
	cmocka_unit_test(tls_130_without_matchers_everybody_is_accepted),
	cmocka_unit_test(a_bad_pattern_is_an_error),
	cmocka_unit_test(tls_131_a_host_is_a_dns_name_alone),
	cmocka_unit_test(wildcards_are_what_a_naive_twin_says))
