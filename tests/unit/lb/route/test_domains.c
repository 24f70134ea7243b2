// SPDX-License-Identifier: Apache-2.0
#include "lb/route/domains.h"
#include "lb/route/route.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <ctype.h>
#include <stdlib.h>

// One virtual host per domain, in order.
struct table {
	struct str domains[64];
	struct lb_vhost_conf vhosts[64];
	uint32_t n;
};

static void table_add(struct table *t, struct str domain)
{
	t->domains[t->n] = domain;
	t->vhosts[t->n] = (struct lb_vhost_conf){
		.name = STR("vh"), .domains = &t->domains[t->n], .n_domains = 1};
	t->n++;
}

// The answer of both implementations, which must be the same.
// All at once.
static struct lb_domains *domains_of(
	const struct lb_vhost_conf *vhosts, uint32_t n, struct lb_err *reterr)
{
	struct lb_domains *x = lb_domains_new(0);
	int rc = 0;
	for (uint32_t i = 0; x && !rc && i < n; i++)
		rc = lb_domains_add(x, &vhosts[i], i, reterr);
	if (x && !rc && lb_domains_seal(x) == 0)
		return x;
	lb_domains_free(x);
	return NULL;
}

static int choose(const struct table *t, const char *authority)
{
	struct lb_err err = {0};
	struct lb_domains *x = domains_of(t->vhosts, t->n, &err);
	assert_non_null(x);
	int a = lb_domains_find(x, str_from(authority));
	assert_int_equal(a, lb_vhost_choose(t->vhosts, t->n, str_from(authority)));
	lb_domains_free(x);
	return a;
}

#define TABLE(...)                                                                                 \
	struct table t = {0};                                                                      \
	const char *const names[] = {__VA_ARGS__};                                                 \
	for (size_t name = 0; name < sizeof(names) / sizeof(names[0]); name++)                     \
	table_add(&t, str_from(names[name]))

// VH-02
static void most_specific_domain_wins(void **state)
{
	(void)state;
	TABLE("*", "foo.*", "*.com", "foo.com", "*.bar.com", "foo.bar.*");
	assert_int_equal(choose(&t, "foo.com"), 3);
	assert_int_equal(choose(&t, "x.com"), 2);
	assert_int_equal(choose(&t, "x.bar.com"), 4);
	assert_int_equal(choose(&t, "foo.org"), 1);
	assert_int_equal(choose(&t, "foo.bar.org"), 5);
	assert_int_equal(choose(&t, "other"), 0);
}

// VH-03
static void suffix_beats_longer_prefix(void **state)
{
	(void)state;
	TABLE("foo.bar.example.*", "*.com");
	assert_int_equal(choose(&t, "foo.bar.example.com"), 1);
	assert_int_equal(choose(&t, "foo.bar.example.org"), 0);
}

// VH-04
static void star_covers_at_least_one_character(void **state)
{
	(void)state;
	TABLE("*.foo.com", "bar.*");
	assert_int_equal(choose(&t, ".foo.com"), -1);
	assert_int_equal(choose(&t, "foo.com"), -1);
	assert_int_equal(choose(&t, "a.b.foo.com"), 0);
	assert_int_equal(choose(&t, "bar."), -1);
	assert_int_equal(choose(&t, "bar.x"), 1);
}

// VH-05
static void case_is_ignored_on_both_sides(void **state)
{
	(void)state;
	TABLE("Foo.COM", "*.Bar.com", "Baz.*");
	assert_int_equal(choose(&t, "fOO.com"), 0);
	assert_int_equal(choose(&t, "X.bAR.COM"), 1);
	assert_int_equal(choose(&t, "bAZ.x"), 2);
}

// VH-05: letters fold, and nothing else does, in names of every length around a word.
static void every_byte_folds_as_ascii_says(void **state)
{
	(void)state;
	for (int byte = 1; byte < 256; byte++) {
		if (byte == '*')
			continue;
		for (size_t len = 1; len < 20; len++) {
			char domain[20], host[20];
			memset(domain, byte, len);
			memset(host, byte ^ 0x20, len);
			domain[len] = host[len] = 0;
			if (host[0] == 0)
				continue;
			TABLE(domain);
			bool is_letter = byte < 128 && isalpha(byte);
			assert_int_equal(choose(&t, host), is_letter ? 0 : -1);
			assert_int_equal(choose(&t, domain), 0);
		}
	}
}

// VH-06
static void port_and_trailing_dot_are_part_of_the_name(void **state)
{
	(void)state;
	TABLE("foo.com", "foo.com:*");
	assert_int_equal(choose(&t, "foo.com"), 0);
	assert_int_equal(choose(&t, "foo.com:8080"), 1);
	assert_int_equal(choose(&t, "foo.com."), -1);
}

// VH-07
static void only_a_star_inside_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "a*b"};
	for (size_t i = 0; i < 2; i++) {
		TABLE("good", bad[i]);
		struct lb_err err = {0};
		assert_null(domains_of(t.vhosts, t.n, &err));
		assert_non_null(strstr(err.text, "virtual_hosts[1].domains[0]"));
	}
	const struct lb_vhost_conf without_domains = {.name = STR("empty")};
	struct lb_err err = {0};
	assert_null(domains_of(&without_domains, 1, &err));
	assert_non_null(strstr(err.text, "virtual_hosts[0] (empty): no domains"));
}

// VH-07
static void further_stars_are_literal(void **state)
{
	(void)state;
	TABLE("*a*", "**", "*");
	assert_int_equal(choose(&t, "xa"), 2);
	assert_int_equal(choose(&t, "xa*"), 0);
	assert_int_equal(choose(&t, "x*"), 1);
	assert_int_equal(choose(&t, "a*"), 1); // the star of `*a*` would cover nothing
}

// VH-07
static void further_stars_of_a_prefix_are_literal(void **state)
{
	(void)state;
	TABLE("a*b*", "a**", "*");
	assert_int_equal(choose(&t, "a*bc"), 0);
	assert_int_equal(choose(&t, "axbc"), 2);
	assert_int_equal(choose(&t, "a*c"), 1);
}

// VH-08
static void equal_domains_go_to_the_earlier_host(void **state)
{
	(void)state;
	TABLE("*.x", "foo.com", "FOO.com", "*.X", "*", "*");
	assert_int_equal(choose(&t, "foo.com"), 1);
	assert_int_equal(choose(&t, "a.x"), 0);
	assert_int_equal(choose(&t, "z"), 4);
}

// VH-10, VH-11
static void authority_without_a_match_has_no_host(void **state)
{
	(void)state;
	TABLE("foo.com", "*.org");
	assert_int_equal(choose(&t, "bar.com"), -1);
	assert_int_equal(choose(&t, ""), -1);
	table_add(&t, STR("*"));
	assert_int_equal(choose(&t, ""), 2);
}

static void names_of_any_length_are_found(void **state)
{
	(void)state;
	static char names[3][4000];
	for (int i = 0; i < 3; i++)
		memset(names[i], 'A' + i, sizeof(names[i]));
	struct table t = {0};
	for (int i = 0; i < 3; i++) // around and far beyond what the short path takes
		table_add(&t, (struct str){names[i], (size_t[]){272, 273, 3999}[i]});
	static char host[4000];
	for (int i = 0; i < 3; i++) {
		memset(host, 'a' + i, sizeof(host));
		host[t.domains[i].len] = 0;
		assert_int_equal(choose(&t, host), i);
		host[t.domains[i].len - 1] = 0;
		assert_int_equal(choose(&t, host), -1);
	}
}

// The rules as the page lists them, class by class.
static bool fold_equal(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i]))
			return false;
	return true;
}

static int twin(const struct table *t, const char *host)
{
	size_t n = strlen(host);
	for (uint32_t i = 0; i < t->n; i++) {
		struct str d = t->domains[i];
		if (d.p[0] != '*' && d.p[d.len - 1] != '*' && d.len == n &&
			fold_equal(d.p, host, n))
			return (int)i;
	}
	for (size_t len = n; len-- > 1;) // suffixes, the longest first
		for (uint32_t i = 0; i < t->n; i++) {
			struct str d = t->domains[i];
			if (d.p[0] == '*' && d.len - 1 == len &&
				fold_equal(d.p + 1, host + n - len, len))
				return (int)i;
		}
	for (size_t len = n; len-- > 1;)
		for (uint32_t i = 0; i < t->n; i++) {
			struct str d = t->domains[i];
			if (d.p[0] != '*' && d.p[d.len - 1] == '*' && d.len - 1 == len &&
				fold_equal(d.p, host, len))
				return (int)i;
		}
	for (uint32_t i = 0; i < t->n; i++)
		if (t->domains[i].len == 1 && t->domains[i].p[0] == '*')
			return (int)i;
	return -1;
}

static size_t random_name(struct rand *r, char *to, size_t max)
{
	static const char alphabet[] = "abAB.:1*";
	size_t len = 1 + rand_below(r, max);
	for (size_t i = 0; i < len; i++)
		to[i] = alphabet[rand_below(r, 7)]; // the star comes only by the caller
	to[len] = 0;
	return len;
}

static void random_tables_agree_with_the_rules(void **state)
{
	(void)state;
	struct rand r;
	rand_init(&r, 7);
	for (int round = 0; round < 4000; round++) {
		struct table t = {0};
		char names[64][16];
		uint32_t n = 1 + (uint32_t)rand_below(&r, 40);
		for (uint32_t i = 0; i < n; i++) {
			char *name = names[i];
			switch (rand_below(&r, 8)) {
			case 0:
				strcpy(name, "*");
				break;
			case 1:
			case 2:
				name[0] = '*';
				random_name(&r, name + 1, 4);
				if (rand_below(&r, 8) == 0)
					strcat(name, "*");
				break;
			case 3:
			case 4:
				name[random_name(&r, name, 4)] = '*';
				name[strcspn(name, "*") + 1] = 0;
				break;
			default:
				random_name(&r, name, 5);
			}
			table_add(&t, str_from(name));
		}
		struct lb_err err = {0};
		struct lb_domains *x = domains_of(t.vhosts, t.n, &err);
		assert_non_null(x);
		for (int i = 0; i < 50; i++) {
			char host[16];
			random_name(&r, host, 6);
			if (rand_below(&r, 4) == 0)
				strcpy(host + 1, "a*");
			int expected = twin(&t, host);
			assert_int_equal(lb_domains_find(x, str_from(host)), expected);
			assert_int_equal(lb_vhost_choose(t.vhosts, t.n, str_from(host)), expected);
		}
		lb_domains_free(x);
	}
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	TABLE("foo.com", "*.bar", "baz.*", "*");
	struct lb_domains *x = NULL;
	struct lb_err err = {0};
	ALLOC_FAIL_EACH(x = domains_of(t.vhosts, t.n, &err), !x, lb_domains_free(x));
}

// RFC 3986 3.2: unreserved, sub-delims, ":", "[", "]" and "%"; "@" would make a userinfo.
static void an_authority_has_the_bytes_of_host_and_port(void **state)
{
	(void)state;
	static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				  "-._~!$&'()*+,;=:[]%";
	for (int i = 0; i < 256; i++) {
		char text[] = {'a', (char)i, 'b'};
		bool expected = memchr(fit, i, sizeof(fit) - 1);
		assert_int_equal(lb_authority_is_valid((struct str){text, 3}), expected);
		assert_int_equal(lb_authority_is_valid((struct str){text + 1, 1}), expected);
	}
	assert_false(lb_authority_is_valid((struct str){0}));
}

RUN_SUITE("lb/domains", cmocka_unit_test(most_specific_domain_wins),
	cmocka_unit_test(an_authority_has_the_bytes_of_host_and_port),
	cmocka_unit_test(suffix_beats_longer_prefix),
	cmocka_unit_test(star_covers_at_least_one_character),
	cmocka_unit_test(case_is_ignored_on_both_sides),
	cmocka_unit_test(every_byte_folds_as_ascii_says),
	cmocka_unit_test(port_and_trailing_dot_are_part_of_the_name),
	cmocka_unit_test(only_a_star_inside_is_refused),
	cmocka_unit_test(further_stars_are_literal),
	cmocka_unit_test(further_stars_of_a_prefix_are_literal),
	cmocka_unit_test(equal_domains_go_to_the_earlier_host),
	cmocka_unit_test(authority_without_a_match_has_no_host),
	cmocka_unit_test(names_of_any_length_are_found),
	cmocka_unit_test(random_tables_agree_with_the_rules),
	cmocka_unit_test(each_failed_allocation_is_survived))
