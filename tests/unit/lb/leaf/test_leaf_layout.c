// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/leaf_layout.h"
#include "lb/member/member.h"
#include "lb/pick/security.h"
#include "lb/policy/node_ops.h"
#include "tests/support/check.h"
#include "tests/unit/lb/leaves.h"

static const struct lb_header headers[] = {{.version = 1}, {.version = 2},
	{.tlvs = STR("\xe0\0\1a"), .version = 2}, {.tlvs = STR("\xe0\0\1b"), .version = 2},
	{.tlvs = STR("\xe0\0\1b"), .passed = {{1}}, .version = 2}};
#define N_HEADERS (sizeof(headers) / sizeof(headers[0]))

static const struct lb_endpoint *first_of(struct leaves *f, const struct leaves_plan *p)
{
	const struct lb_member *m = lb_leaf_member(f->leaf, &p->addresses[0], 1);
	assert_non_null(m);
	return lb_member_endpoint(m);
}

// PP-13: with another PROXY header, or none, connections are others; with an equal one they stay.
static void another_proxy_header_makes_endpoints_others(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	leaves_update(&f, &p, 1);
	leaves_pass(&f, WORLD_S);
	const struct lb_endpoint *before = first_of(&f, &p);
	assert_null(lb_endpoint_header(before));
	for (unsigned i = 0; i < 2 * N_HEADERS; i++) {
		const struct lb_security_conf conf = {.header = headers[i / 2]};
		f.config.security = lb_security_new_as(&conf);
		assert_non_null(f.config.security);
		leaves_update(&f, &p, 1);
		leaves_pass(&f, 5 * WORLD_S);
		const struct lb_endpoint *now = first_of(&f, &p);
		assert_int_equal(now == before, i % 2);
		assert_true(lb_security_is(now->security, &conf));
		assert_int_equal(f.n_taken, 8);
		lb_security_put(f.config.security);
		before = now;
	}
	f.config.security = NULL;
	leaves_update(&f, &p, 1);
	leaves_pass(&f, 5 * WORLD_S);
	assert_null(lb_endpoint_header(first_of(&f, &p)));
	leaves_fini(&f);
}

// HC-06: a proxy of the endpoint's own changes nothing of the header.
static void a_header_stays_where_endpoints_have_proxies(void **state)
{
	static const struct ip_port proxy = {{{[10] = 0xff, 0xff, 10, 0, 0, 9}}, 3128};
	static struct leaves f;
	struct leaves_plan p;
	const struct lb_security_conf conf = {.header = headers[2]},
				      through = {.header = headers[2], .proxy = &proxy};
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	p.endpoints[0].proxy = proxy;
	f.config.uses_proxies = true;
	f.config.security = lb_security_new_as(&conf);
	leaves_update(&f, &p, 1);
	leaves_pass(&f, 5 * WORLD_S);
	assert_true(lb_security_is(first_of(&f, &p)->security, &through));
	const struct lb_member *other = lb_leaf_member(f.leaf, &p.addresses[1], 1);
	assert_true(lb_security_is(lb_member_endpoint(other)->security, &conf));
	leaves_fini(&f);
	assert_int_equal(f.config.security->n_refs, 1);
	lb_security_put(f.config.security);
}

// OPS-295: as the policies themselves have it, below localities or without.
static void most_policies_ignore_weights(void **state)
{
	static const struct {
		struct lb_policy_spec spec;
		bool ignores;
	} rows[] = {
		{{.kind = LB_POLICY_ROUND_ROBIN}, true},
		{{.kind = LB_POLICY_WEIGHTED_ROUND_ROBIN}, true},
		{{.kind = LB_POLICY_LEAST_REQUEST, .least_request = {2}}, true},
		{{.kind = LB_POLICY_RING_HASH, .ring_hash = {64, 64}}, false},
		{{.kind = LB_POLICY_PICK_FIRST}, true},
		{{.kind = LB_POLICY_PICK_FIRST, .pick_first = {.shuffle = true}}, false},
	};
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		static struct leaves f;
		struct leaves_plan p;
		const struct lb_policy_spec *own = &rows[i / 2].spec;
		const struct lb_policy_spec split = {.kind = LB_POLICY_WRR_LOCALITY, .child = own};
		leaves_init(&f, lb_node_ops_of);
		assert_false(lb_leaf_ignores_weights(f.leaf)); // nobody can tell
		leaves_plan_init(&p, 0);
		f.config.spec = i % 2 ? own : &split;
		leaves_update(&f, &p, 1);
		assert_int_equal(lb_leaf_ignores_weights(f.leaf), rows[i / 2].ignores);
		leaves_fini(&f);
	}
}

RUN_SUITE("lb/leaf_layout", cmocka_unit_test(most_policies_ignore_weights),
	cmocka_unit_test(another_proxy_header_makes_endpoints_others),
	cmocka_unit_test(a_header_stays_where_endpoints_have_proxies))
