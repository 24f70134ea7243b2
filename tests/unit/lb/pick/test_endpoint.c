// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/pick/endpoint.h"
#include "lb/pick/limits.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/world.h"

#include <string.h>

static struct lb_endpoint *get(struct lb_endpoint_table *t, uint32_t n, bool *ret_new)
{
	struct ip_port addr = world_addr(n);
	return lb_endpoint_get(t, &addr, NULL, ret_new);
}

static void one_address_is_one_endpoint(void **state)
{
	(void)state;
	struct lb_endpoint_table *t = lb_endpoint_table_new(NULL);
	bool is_new = false;
	struct lb_endpoint *e = get(t, 1, &is_new);
	assert_true(is_new);
	assert_ptr_equal(get(t, 1, &is_new), e);
	assert_false(is_new);
	struct ip_port other = e->addr;
	other.port++;
	assert_ptr_not_equal(lb_endpoint_get(t, &other, NULL, NULL), e);
	assert_ptr_equal(lb_endpoint_find(t, e->id), e);
	assert_null(lb_endpoint_find(t, 2));
	assert_int_equal(lb_endpoint_table_count(t), 2);
	lb_endpoint_table_free(t);
}

#define N_SECURITIES 12

// TLS-161, HC-07, PP-13
static void other_security_is_another_endpoint(void **state)
{
	(void)state;
	struct lb_endpoint_table *t = lb_endpoint_table_new(NULL);
	struct ip_port addr = world_addr(1);
	struct lb_security *a = lb_security_new(3, STR("a.example"));
	struct lb_security *same = lb_security_new(3, STR("a.example"));
	struct lb_security *name = lb_security_new(3, STR("")), *id = lb_security_new(4, STR(""));
	const struct ip_port proxy = world_addr(7), other = world_addr(8);
	const struct lb_header v1 = {.version = 1}, v2 = {.version = 2},
			       tlv = {.tlvs = STR("\xe0\0\1a"), .version = 2};
	const struct lb_security_conf more[] = {
		{.proxy = &proxy},
		{.proxy = &other},
		{.proxy = &proxy, .credential = 3, .server_name = STR("a.example")},
		{.header = v1},
		{.header = v2},
		{.header = tlv},
		{.header = tlv, .credential = 3, .server_name = STR("a.example")},
		{.header = tlv, .proxy = &proxy},
	};
	struct lb_security *all[N_SECURITIES] = {NULL, a, name, id};
	struct lb_endpoint *e[N_SECURITIES];
	for (uint32_t i = 4; i < N_SECURITIES; i++) {
		all[i] = lb_security_new_as(&more[i - 4]);
		assert_true(lb_security_is(all[i], &more[i - 4]));
	}
	for (uint32_t i = 0; i < N_SECURITIES; i++) {
		assert_false(lb_endpoint_has(t, &addr, all[i]));
		e[i] = lb_endpoint_get(t, &addr, all[i], NULL);
		assert_true(lb_endpoint_has(t, &addr, all[i]));
		assert_int_equal(e[i]->id, i);
		lb_security_put(all[i]); // the endpoint's from now on
	}
	assert_int_equal(lb_endpoint_credential(e[0]), LB_PLAIN_TEXT);
	assert_string_equal(lb_endpoint_server_name(e[0]), "");
	assert_int_equal(lb_endpoint_credential(e[1]), 3);
	assert_string_equal(lb_endpoint_server_name(e[1]), "a.example");
	assert_int_equal(lb_endpoint_credential(e[3]), 4);
	assert_int_equal(lb_endpoint_credential(e[4]), LB_PLAIN_TEXT);
	assert_int_equal(lb_endpoint_credential(e[6]), 3);
	assert_null(lb_endpoint_proxy(e[0]));
	assert_null(lb_endpoint_proxy(e[1]));
	assert_true(ip_port_eq(lb_endpoint_proxy(e[5]), &other));
	assert_null(lb_endpoint_header(e[0]));
	assert_null(lb_endpoint_header(e[6]));
	assert_int_equal(lb_endpoint_header(e[7])->version, 1);
	assert_true(str_eq(lb_endpoint_header(e[10])->tlvs, tlv.tlvs));
	assert_ptr_equal(lb_endpoint_get(t, &addr, same, NULL), e[1]);
	lb_security_put(same);
	uint32_t n = 0;
	for (const struct lb_endpoint *i = NULL; (i = lb_endpoint_next_of(t, &addr, i)); n++)
		assert_ptr_equal(i, e[n]);
	assert_int_equal(n, N_SECURITIES);
	assert_true(lb_endpoint_put(t, e[0]));
	assert_ptr_equal(lb_endpoint_next_of(t, &addr, NULL), e[1]);
	lb_endpoint_free_released(t, e[0]);
	assert_ptr_equal(lb_endpoint_next_of(t, &addr, NULL), e[1]);
	lb_endpoint_table_free(t);
}

static void id_is_used_again_only_after_release(void **state)
{
	(void)state;
	struct lb_endpoint_table *t = lb_endpoint_table_new(NULL);
	struct lb_endpoint *a = get(t, 1, NULL);
	uint32_t id = a->id;
	assert_ptr_equal(lb_endpoint_get_again(a), a);
	assert_false(lb_endpoint_put(t, a));
	assert_true(lb_endpoint_put(t, a));
	assert_int_not_equal(get(t, 2, NULL)->id, id);
	assert_ptr_equal(lb_endpoint_find(t, id), a);
	lb_endpoint_free_released(t, a);
	assert_null(lb_endpoint_find(t, id));
	assert_int_equal(get(t, 3, NULL)->id, id);
	lb_endpoint_table_free(t);
}

// UPD-03
static void endpoint_taken_up_again_stays(void **state)
{
	(void)state;
	struct lb_endpoint_table *t = lb_endpoint_table_new(NULL);
	struct lb_endpoint *a = get(t, 1, NULL);
	assert_true(lb_endpoint_put(t, a));
	bool is_new = true;
	assert_ptr_equal(get(t, 1, &is_new), a);
	assert_false(is_new);
	lb_endpoint_free_released(t, a);
	assert_ptr_equal(lb_endpoint_find(t, a->id), a);
	lb_endpoint_table_free(t);
}

static void ids_stay_dense_and_bounded(void **state)
{
	(void)state;
	struct lb_endpoint_table *t = lb_endpoint_table_new(NULL);
	for (uint32_t i = 0; i < LB_MAX_ENDPOINTS; i++)
		assert_true(get(t, i, NULL)->id < LB_MAX_ENDPOINTS);
	assert_null(get(t, LB_MAX_ENDPOINTS, NULL));
	struct lb_endpoint *e = get(t, 7, NULL); // known ones are still found
	assert_int_equal(e->n_refs, 2);
	lb_endpoint_put(t, e);
	lb_endpoint_put(t, e);
	lb_endpoint_free_released(t, e);
	assert_non_null(get(t, LB_MAX_ENDPOINTS, NULL));
	lb_endpoint_table_free(t);
}

// Random gets and puts against an array: of 50 addresses, each with four kinds of security.
static void random_life_agrees_with_an_array(void **state)
{
	(void)state;
	struct rand r;
	struct lb_security *security[4] = {NULL, lb_security_new(1, STR("")),
		lb_security_new(1, STR("a")), lb_security_new(2, STR("a"))};
	rand_init(&r, 9);
	struct lb_endpoint_table *t = lb_endpoint_table_new(NULL);
	struct lb_endpoint *known[200] = {0};
	uint32_t refs[200] = {0}, n_known = 0;
	for (int i = 0; i < 50000; i++) {
		uint32_t n = (uint32_t)rand_below(&r, 200);
		if (rand_below(&r, 2)) {
			bool is_new = false;
			struct ip_port addr = world_addr(n / 4);
			struct lb_endpoint *e = lb_endpoint_get(t, &addr, security[n % 4], &is_new);
			assert_int_equal(is_new, !known[n]);
			assert_true(!known[n] || known[n] == e);
			n_known += is_new;
			known[n] = e;
			refs[n]++;
		} else if (refs[n]) {
			assert_int_equal(lb_endpoint_put(t, known[n]), --refs[n] == 0);
		} else if (known[n]) {
			lb_endpoint_free_released(t, known[n]);
			known[n] = NULL;
			n_known--;
		}
		assert_int_equal(lb_endpoint_table_count(t), n_known);
		if (known[n])
			assert_ptr_equal(lb_endpoint_find(t, known[n]->id), known[n]);
	}
	lb_endpoint_table_free(t);
	for (int i = 1; i < 4; i++) {
		assert_int_equal(security[i]->n_refs, 1);
		lb_security_put(security[i]);
	}
}

static void anchors_spread_over_the_workers(void **state)
{
	(void)state;
	uint32_t count[3] = {0};
	for (uint32_t id = 0; id < 300; id++)
		count[lb_endpoint_anchor(id, 3)]++;
	for (int i = 0; i < 3; i++)
		assert_int_equal(count[i], 100);
}

static void states_have_grpc_names(void **state)
{
	(void)state;
	assert_string_equal(lb_state_name(LB_IDLE), "IDLE");
	assert_string_equal(lb_state_name(LB_CONNECTING), "CONNECTING");
	assert_string_equal(lb_state_name(LB_READY), "READY");
	assert_string_equal(lb_state_name(LB_TRANSIENT_FAILURE), "TRANSIENT_FAILURE");
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct lb_endpoint_table *t = NULL;
	ALLOC_FAIL_EACH(t = lb_endpoint_table_new(NULL), !t, (void)0);
	struct lb_endpoint *e = NULL;
	for (uint32_t i = 0; i < 64; i++) // the next one makes the table grow
		assert_non_null(get(t, i, NULL));
	for (size_t nth = 0;; nth++) {
		alloc_fail_arm(nth);
		e = get(t, 64, NULL);
		if (!alloc_fail_disarm())
			break;
		assert_null(e);
		assert_int_equal(lb_endpoint_table_count(t), 64);
		assert_non_null(lb_endpoint_find(t, 63));
	}
	assert_non_null(e);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(get(t, i, NULL)->n_refs, 2);
	lb_endpoint_table_free(t);
}

RUN_SUITE("lb/endpoint", cmocka_unit_test(one_address_is_one_endpoint),
	cmocka_unit_test(other_security_is_another_endpoint),
	cmocka_unit_test(id_is_used_again_only_after_release),
	cmocka_unit_test(endpoint_taken_up_again_stays),
	cmocka_unit_test(ids_stay_dense_and_bounded),
	cmocka_unit_test(random_life_agrees_with_an_array),
	cmocka_unit_test(anchors_spread_over_the_workers), cmocka_unit_test(states_have_grpc_names),
	cmocka_unit_test(each_failed_allocation_is_survived))
