// SPDX-License-Identifier: Apache-2.0
#include "lb/hosts.h"
#include "lb/limits.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <stdlib.h>

static struct ip_port at(uint32_t last, uint16_t port)
{
	return (struct ip_port){ip_from_v4(0x0a000000 + last), port};
}

static struct lb_endpoint *endpoint(struct lb_endpoint_table *t, uint32_t last)
{
	struct ip_port a = at(last, 80);
	return lb_endpoint_get(t, &a, NULL);
}

static void expect_text(struct str s, const char *text)
{
	assert_int_equal(s.len, strlen(text));
	assert_memory_equal(s.p ? s.p : "", text, s.len);
}

static struct lb_host_conf conf_of(
	struct lb_endpoint *e, const struct ip_port *list, uint32_t n, const char *hostname)
{
	return (struct lb_host_conf){e, list, n, str_from(hostname), true};
}

static const struct lb_host *known(const struct lb_hosts *hosts, const struct lb_endpoint *e)
{
	return lb_hosts_find(hosts, &e->addr);
}

// SA-06, A81: by any of its addresses; the list is as a cookie has it.
static void endpoint_is_found_by_each_of_its_addresses(void **state)
{
	struct lb_endpoint_table *t = lb_endpoint_table_new();
	struct lb_endpoint *a = endpoint(t, 1), *b = endpoint(t, 2);
	const struct ip_port a_list[] = {at(1, 80), {{{0xfd, [15] = 7}}, 8080}, at(1, 81)};
	const struct ip_port b_list[] = {at(2, 80)};
	const struct lb_host_conf conf[] = {
		conf_of(a, a_list, 3, "a.example"), {b, b_list, 1, STR(""), false}};
	struct lb_hosts *h = lb_hosts_new(conf, 2, NULL);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(lb_hosts_find(h, &a_list[i])->endpoint, a);
	assert_ptr_equal(known(h, a), lb_hosts_find(h, &a_list[2]));
	expect_text(known(h, a)->addresses, "10.0.0.1:80,[fd00::7]:8080,10.0.0.1:81");
	expect_text(known(h, a)->hostname, "a.example");
	assert_true(known(h, a)->is_session_target);
	expect_text(known(h, b)->hostname, "");
	assert_false(known(h, b)->is_session_target);
	struct ip_port other = at(1, 82);
	assert_null(lb_hosts_find(h, &other));
	assert_null(lb_hosts_find(NULL, &other));
	assert_int_equal(a->n_refs, 2);
	assert_ptr_equal(lb_hosts_get(h), h);
	lb_hosts_put(h);
	lb_hosts_put(h);
	lb_hosts_put(NULL);
	assert_int_equal(a->n_refs, 1);
	lb_endpoint_table_free(t);
}

static void first_endpoint_with_an_address_counts(void **state)
{
	struct lb_endpoint_table *t = lb_endpoint_table_new();
	struct lb_endpoint *a = endpoint(t, 1), *b = endpoint(t, 2);
	const struct ip_port a_list[] = {at(1, 80), at(9, 80)}, b_list[] = {at(2, 80), at(9, 80)};
	const struct lb_host_conf conf[] = {conf_of(a, a_list, 2, "a"), conf_of(b, b_list, 2, "b")};
	struct lb_hosts *h = lb_hosts_new(conf, 2, NULL);
	assert_ptr_equal(lb_hosts_find(h, &a_list[1])->endpoint, a);
	assert_ptr_equal(known(h, b)->endpoint, b);
	lb_hosts_put(h);
	lb_endpoint_table_free(t);
}

// RR-04: pickers may hold on to what left. Its connections must be free to close, though.
static void what_left_is_told_of_for_some_updates_and_not_held(void **state)
{
	struct lb_endpoint_table *t = lb_endpoint_table_new();
	struct lb_endpoint *a = endpoint(t, 1), *b = endpoint(t, 2);
	const struct ip_port a_list[] = {at(1, 80), at(1, 81)}, b_list[] = {at(2, 80)};
	const struct lb_host_conf with_a = conf_of(a, a_list, 2, "a"),
				  with_b = conf_of(b, b_list, 1, "b");
	struct lb_hosts *h = lb_hosts_new(&with_a, 1, NULL);
	for (int update = 0; update < 4; update++) {
		struct lb_hosts *next = lb_hosts_new(&with_b, 1, h);
		lb_hosts_put(h);
		h = next;
		assert_int_equal(a->n_refs, 1);
		assert_null(known(h, a)->endpoint);
		assert_false(known(h, a)->is_session_target);
		expect_text(known(h, a)->hostname, "a");
		expect_text(known(h, a)->addresses, "10.0.0.1:80,10.0.0.1:81");
		assert_ptr_equal(known(h, b)->endpoint, b);
	}
	struct lb_hosts *last = lb_hosts_new(&with_b, 1, h);
	assert_null(known(last, a));
	// Back in time: no trace of its leave.
	struct lb_hosts *back = lb_hosts_new(&with_a, 1, h);
	assert_ptr_equal(known(back, a)->endpoint, a);
	lb_hosts_put(back);
	lb_hosts_put(last);
	lb_hosts_put(h);
	lb_endpoint_table_free(t);
}

static void many_hosts_are_all_found_and_none_is_fine(void **state)
{
	enum { N = 3000 };
	struct lb_endpoint_table *t = lb_endpoint_table_new();
	struct lb_host_conf *conf = calloc(N, sizeof(*conf));
	struct ip_port *list = calloc(N, sizeof(*list));
	for (uint32_t i = 0; i < N; i++) {
		list[i] = at(i, 80);
		conf[i] = conf_of(endpoint(t, i), &list[i], 1, "h");
	}
	struct lb_hosts *h = lb_hosts_new(conf, N, NULL);
	for (uint32_t i = 0; i < N; i++)
		assert_ptr_equal(lb_hosts_find(h, &list[i])->endpoint, conf[i].endpoint);
	struct lb_hosts *none = lb_hosts_new(NULL, 0, NULL);
	assert_null(lb_hosts_find(none, &list[0]));
	lb_hosts_put(none);
	struct lb_hosts *each;
	ALLOC_FAIL_EACH(each = lb_hosts_new(conf, 2, h), !each, lb_hosts_put(each));
	lb_hosts_put(h);
	assert_int_equal(conf[7].endpoint->n_refs, 1);
	free(conf);
	free(list);
	lb_endpoint_table_free(t);
}

RUN_SUITE("lb/hosts", cmocka_unit_test(endpoint_is_found_by_each_of_its_addresses),
	cmocka_unit_test(first_endpoint_with_an_address_counts),
	cmocka_unit_test(what_left_is_told_of_for_some_updates_and_not_held),
	cmocka_unit_test(many_hosts_are_all_found_and_none_is_fine))
