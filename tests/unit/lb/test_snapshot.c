// SPDX-License-Identifier: Apache-2.0
#include "lb/chain_set.h"
#include "lb/cluster.h"
#include "lb/live_frontend.h"
#include "lb/pick/access_set.h"
#include "lb/pick/picker.h"
#include "lb/route/chain_match.h"
#include "lb/route/filter.h"
#include "lb/route/req.h"
#include "lb/route/route.h"
#include "lb/snapshot.h"
#include "lb/vips.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/support/route_table.h"

#include <errno.h>

static struct lb_cluster *cluster(uint32_t id)
{
	return lb_cluster_new(id, "c", LB_CONNECTING, lb_picker_queue());
}

static struct lb_route_table *routes(void)
{
	static const struct str any[] = {STR("*")};
	const struct lb_vhost_conf vhost = {.domains = any, .n_domains = 1};
	struct lb_vhost *compiled = lb_vhost_new(&vhost, NULL);
	const struct lb_route_table_conf conf = {.n_vhosts = 1, .n_workers = 1};
	struct lb_route_table *t = route_table_of(&conf, &vhost, &compiled, NULL);
	lb_vhost_put(compiled);
	return t;
}

static void empty_one_has_the_error_everywhere(void **state)
{
	(void)state;
	struct lb_snapshot *s = lb_snapshot_new(3, "no configuration yet");
	assert_int_equal(s->version, 1);
	assert_int_equal(s->n_frontends, 3);
	for (int i = 0; i < 3; i++) {
		assert_null(lb_snapshot_frontend(s, i)->routes);
		assert_string_equal(lb_snapshot_frontend(s, i)->error, "no configuration yet");
	}
	assert_null(lb_snapshot_cluster(s, 0));
	assert_null(lb_snapshot_cluster(s, UINT32_MAX));
	lb_snapshot_free(s);
	lb_snapshot_free(NULL);
}

// OPS-40
static void access_logs_of_a_frontend_go_with_its_last_snapshot(void **state)
{
	const struct lb_access_log log = {.bit = 2};
	struct lb_access_set *logs = lb_access_set_new(&log, 1);
	struct lb_snapshot *a = lb_snapshot_new(2, "waiting");
	assert_int_equal(lb_snapshot_set_access(a, 1, logs), 0);
	assert_int_equal(lb_snapshot_set_access(a, 1, logs), 0);
	assert_int_equal(logs->n_refs, 2);
	assert_null(lb_snapshot_frontend(a, 0)->access);
	struct lb_snapshot *b = lb_snapshot_copy(a);
	assert_int_equal(lb_snapshot_set_filters(b, 0, NULL, 3), 0); // a page of its own
	assert_ptr_equal(lb_snapshot_frontend(b, 1)->access, logs);
	struct lb_snapshot *c = lb_snapshot_copy(b);
	assert_int_equal(lb_snapshot_set_access(c, 1, NULL), 0);
	assert_ptr_equal(lb_snapshot_frontend(b, 1)->access, logs);
	assert_null(lb_snapshot_frontend(c, 1)->access);
	lb_snapshot_free(a);
	assert_int_equal(logs->n_refs, 2);
	lb_snapshot_free(b);
	assert_int_equal(logs->n_refs, 1);
	lb_snapshot_free(c);
	lb_access_set_put(logs);
}

// OPS-323
static void what_is_said_of_a_frontend_goes_with_its_last_snapshot(void **state)
{
	char authority[] = "a.test";
	struct ip_prefix allow = {.bits = 128};
	const struct lb_frontend_conf conf = {
		.port = 80, .authority = authority, .header = {&allow, 1, true, true}};
	struct lb_live_frontend *live = lb_live_frontend_new(&conf, 1, 1, false);
	authority[0] = 'b'; // it has copies
	allow.bits = 0;
	assert_string_equal(live->conf.authority, "a.test");
	assert_int_equal(live->conf.header.allow[0].bits, 128);
	struct lb_snapshot *a = lb_snapshot_new(2, "waiting");
	assert_int_equal(lb_snapshot_set_live(a, 1, live), 0);
	assert_int_equal(lb_snapshot_set_live(a, 1, live), 0);
	assert_int_equal(live->n_refs, 2);
	assert_int_equal(a->n_live, 1);
	struct lb_snapshot *b = lb_snapshot_copy(a);
	assert_int_equal(lb_snapshot_set_filters(b, 0, NULL, 3), 0); // a page of its own
	assert_ptr_equal(lb_snapshot_frontend(b, 1)->live, live);
	assert_int_equal(b->n_live, 1);
	assert_int_equal(lb_snapshot_set_live(b, 1, NULL), 0);
	assert_int_equal(b->n_live, 2);
	assert_int_equal(live->n_refs, 2);
	lb_snapshot_free(a);
	assert_int_equal(live->n_refs, 1);
	lb_snapshot_free(b);
	lb_live_frontend_put(live);
	assert_null(lb_live_frontend_get(NULL));
	lb_live_frontend_put(NULL);
	ALLOC_FAIL_EACH(
		live = lb_live_frontend_new(&conf, 2, 2, true), !live, lb_live_frontend_put(live));
}

// What did not change is the same object in the next one.
static void copies_share_unchanged_parts(void **state)
{
	(void)state;
	struct lb_snapshot *a = lb_snapshot_new(2, "waiting");
	struct lb_route_table *table = routes();
	struct lb_cluster *c[4];
	static const uint32_t ids[] = {0, 3, 200, LB_MAX_CLUSTERS - 1};
	assert_int_equal(lb_snapshot_set_frontend(a, 0, table, ""), 0);
	for (int i = 0; i < 4; i++) {
		c[i] = cluster(ids[i]);
		assert_int_equal(lb_snapshot_set_cluster(a, ids[i], c[i]), 0);
	}
	struct lb_snapshot *b = lb_snapshot_copy(a);
	assert_int_equal(b->version, 2);
	assert_ptr_equal(lb_snapshot_frontend(b, 0)->routes, table);
	assert_string_equal(lb_snapshot_frontend(b, 1)->error, "waiting");
	struct lb_cluster *other = cluster(3);
	assert_int_equal(lb_snapshot_set_cluster(b, 3, other), 0);
	assert_int_equal(lb_snapshot_set_cluster(b, 200, NULL), 0);
	assert_ptr_equal(lb_snapshot_cluster(b, 0), c[0]);
	assert_ptr_equal(lb_snapshot_cluster(b, LB_MAX_CLUSTERS - 1), c[3]);
	assert_ptr_equal(lb_snapshot_cluster(b, 3), other);
	assert_null(lb_snapshot_cluster(b, 200));
	assert_ptr_equal(b->pages[LB_MAX_CLUSTERS / 64 - 1], a->pages[LB_MAX_CLUSTERS / 64 - 1]);
	assert_ptr_not_equal(b->pages[0], a->pages[0]);
	assert_ptr_equal(lb_snapshot_cluster(a, 3), c[1]); // the old one stays as it was
	assert_ptr_equal(lb_snapshot_cluster(a, 200), c[2]);
	for (int i = 0; i < 4; i++)
		lb_cluster_put(c[i]);
	lb_cluster_put(other);
	lb_route_table_put(table);
	lb_snapshot_free(a);
	assert_string_equal(lb_snapshot_cluster(b, 0)->name, "c");
	struct rand rand;
	rand_init(&rand, 1);
	struct lb_route_ctx ctx = {.rand = &rand, .scratch = lb_route_scratch_new(0, 1000)};
	const struct lb_req req = {.authority = STR("x"), .path = STR("/")};
	assert_int_equal(
		lb_route_find(lb_snapshot_frontend(b, 0)->routes, &req, &ctx).kind, LB_ROUTE_NONE);
	lb_route_scratch_free(ctx.scratch);
	lb_snapshot_free(b);
}

static void frontend_may_lose_its_routes_for_an_error(void **state)
{
	(void)state;
	struct lb_snapshot *s = lb_snapshot_new(1, "");
	struct lb_route_table *table = routes();
	assert_int_equal(lb_snapshot_set_frontend(s, 0, table, ""), 0);
	assert_int_equal(lb_snapshot_set_frontend(s, 0, table, ""), 0);
	lb_route_table_put(table);
	assert_int_equal(lb_snapshot_set_frontend(s, 0, NULL, "listener was removed"), 0);
	assert_null(lb_snapshot_frontend(s, 0)->routes);
	assert_string_equal(lb_snapshot_frontend(s, 0)->error, "listener was removed");
	lb_snapshot_free(s);
}

// A36-30
static void chains_are_shared_until_others_come(void **state)
{
	const struct ip_prefix from = {ip_from_v4(UINT32_C(0x0a000000)), IP_V4_BITS + 8};
	const struct lb_chain_conf conf = {.sources = &from, .n_sources = 1};
	const struct lb_chain_hello silent = {.tls = false};
	const struct lb_inspector none = {.on = false};
	const uint32_t places[] = {7, LB_NO_PLACE};
	const struct ip_addr local = ip_from_v4(1);
	const struct ip_port ours = {ip_from_v4(UINT32_C(0x0a000001)), 1}, other = {local, 1};
	struct lb_chain_match *match = lb_chain_match_new(&conf, 1, &none, NULL);
	struct lb_chain_set *set = lb_chain_set_new(match, 1, places, NULL);
	lb_chain_match_put(match);
	struct lb_snapshot *a = lb_snapshot_new(8, "");
	assert_null(lb_snapshot_frontend(a, 0)->chains);
	assert_int_equal(lb_snapshot_set_chains(a, 0, set), 0);
	struct lb_snapshot *b = lb_snapshot_copy(a);
	assert_int_equal(lb_snapshot_set_frontend(b, 1, NULL, "other"), 0); // of the same page
	lb_snapshot_free(a);
	assert_int_equal(set->n_refs, 2);
	assert_int_equal(
		lb_chain_set_find(lb_snapshot_frontend(b, 0)->chains, &local, &ours, &silent), 7);
	assert_int_equal(lb_chain_set_find(set, &local, &other, &silent), LB_NO_PLACE);
	assert_int_equal(lb_snapshot_set_chains(b, 0, NULL), 0);
	assert_int_equal(set->n_refs, 1);
	lb_chain_set_put(set);
	set = lb_chain_set_new(NULL, 0, &places[1], NULL); // a frontend that does not serve
	assert_int_equal(lb_chain_set_find(set, &local, &ours, &silent), LB_NO_PLACE);
	lb_chain_set_put(set);
	lb_snapshot_free(b);
}

// FLT-11: the number goes with the listener, not with the routes.
// A36-65
static void vips_are_shared_until_others_come(void **state)
{
	const uint32_t places[] = {7};
	struct lb_chain_set *chains = lb_chain_set_new(NULL, 0, places, NULL);
	const struct lb_vip list[] = {{.at = {ip_from_v4(0x0a090001), 80}, .chains = chains},
		{.at = {ip_from_v4(0x0a090002), 80}}};
	struct lb_vips *vips = lb_vips_new(list, 2, 1), *none = lb_vips_new(NULL, 0, 2);
	struct lb_snapshot *a = lb_snapshot_new(1, "x");
	assert_null(lb_vips_at(a->vips, 0));
	lb_snapshot_set_vips(a, vips);
	struct lb_snapshot *b = lb_snapshot_copy(a);
	assert_ptr_equal(lb_vips_at(b->vips, 0)->chains, chains);
	assert_int_equal(lb_vips_at(b->vips, 0)->at.port, 80);
	assert_null(lb_vips_at(b->vips, 1));
	assert_null(lb_vips_at(b->vips, 2));
	lb_snapshot_set_vips(b, none);
	assert_null(lb_vips_at(b->vips, 0));
	assert_int_equal(vips->n_refs, 2);
	lb_snapshot_free(a);
	assert_int_equal(vips->n_refs, 1);
	lb_vips_put(vips);
	assert_int_equal(chains->n_refs, 1);
	lb_chain_set_put(chains);
	lb_snapshot_free(b);
	assert_int_equal(none->n_refs, 1);
	lb_vips_put(none);
}

static void filters_and_their_generation_stay_until_others_come(void **state)
{
	(void)state;
	const struct lb_filter fault = {.name = STR("f"), .kind = LB_FILTER_FAULT};
	struct lb_filter_chain *chain = lb_filter_chain_new(&fault, 1, &lb_no_listener_timeouts);
	struct lb_snapshot *a = lb_snapshot_new(1, "");
	assert_null(lb_snapshot_frontend(a, 0)->filters);
	assert_int_equal(lb_snapshot_set_filters(a, 0, chain, 3), 0);
	lb_filter_chain_put(chain);
	assert_int_equal(lb_snapshot_set_frontend(a, 0, NULL, "no routes"), 0);
	struct lb_snapshot *b = lb_snapshot_copy(a);
	assert_ptr_equal(lb_snapshot_frontend(b, 0)->filters, chain);
	assert_int_equal(lb_snapshot_frontend(b, 0)->generation, 3);
	lb_snapshot_free(a);
	assert_int_equal(chain->n_refs, 1);
	assert_int_equal(lb_snapshot_set_filters(b, 0, chain, 4), 0); // the same one again
	assert_true(str_eq(chain->filters[0].name, STR("f")));
	assert_int_equal(lb_snapshot_set_filters(b, 0, NULL, 5), 0);
	assert_null(lb_snapshot_frontend(b, 0)->filters);
	assert_int_equal(lb_snapshot_frontend(b, 0)->generation, 5);
	lb_snapshot_free(b);
}

// A change costs what it touches, however many frontends there are.
static void copies_share_the_pages_of_unchanged_frontends(void **state)
{
	(void)state;
	const uint32_t n_pages = LB_MAX_FRONTENDS / LB_FRONTENDS_PER_PAGE, changed = 1000;
	struct lb_snapshot *a = lb_snapshot_new(LB_MAX_FRONTENDS, "waiting");
	struct lb_snapshot *b = lb_snapshot_copy(a);
	assert_int_equal(lb_snapshot_set_frontend(b, changed, NULL, "other"), 0);
	assert_int_equal(b->n_generations, a->n_generations);
	assert_int_equal(lb_snapshot_set_filters(b, changed, NULL, 7), 0);
	assert_int_not_equal(b->n_generations, a->n_generations);
	for (uint32_t i = 0; i < n_pages; i++)
		assert_int_equal(a->frontend_pages[i] == b->frontend_pages[i],
			i != changed / LB_FRONTENDS_PER_PAGE);
	for (uint32_t i = 0; i < LB_MAX_FRONTENDS; i++) {
		assert_string_equal(lb_snapshot_frontend(a, i)->error, "waiting");
		assert_string_equal(
			lb_snapshot_frontend(b, i)->error, i == changed ? "other" : "waiting");
	}
	lb_snapshot_free(a);
	assert_string_equal(lb_snapshot_frontend(b, 0)->error, "waiting");
	lb_snapshot_free(b);
}

static void put_context(struct tlshs_context *c)
{
	++*(uint32_t *)(void *)c;
}

// TLS-160
static void credentials_change_under_their_ids(void **state)
{
	(void)state;
	uint32_t n_put[2] = {0}; // stand for contexts
	struct lb_credential *c[2];
	for (int i = 0; i < 2; i++)
		c[i] = lb_credential_new((struct tlshs_context *)(void *)&n_put[i], put_context);
	struct lb_snapshot *a = lb_snapshot_new(2, "waiting");
	assert_int_equal(lb_snapshot_frontend(a, 1)->credential, LB_PLAIN_TEXT);
	assert_int_equal(lb_snapshot_set_frontend_credential(a, 1, 9), 0);
	assert_null(lb_snapshot_credential(a, 9));
	assert_int_equal(lb_snapshot_set_credential(a, 9, c[0]), 0);
	struct lb_snapshot *b = lb_snapshot_copy(a);
	assert_ptr_equal(b->credentials, a->credentials);
	assert_int_equal(lb_snapshot_set_credential(b, 9, c[1]), 0);
	assert_int_equal(lb_snapshot_frontend(b, 1)->credential, 9);
	assert_ptr_equal(lb_snapshot_credential(a, 9), c[0]);
	assert_ptr_equal(lb_snapshot_credential(b, 9), c[1]);
	assert_ptr_equal(a->frontend_pages[0], b->frontend_pages[0]);
	assert_int_equal(lb_snapshot_set_frontend_credential(b, 0, 9), 0);
	assert_int_equal(lb_snapshot_frontend(a, 0)->credential, LB_PLAIN_TEXT);
	assert_int_equal(lb_snapshot_frontend(b, 1)->credential, 9); // its page was copied
	for (int i = 0; i < 2; i++)
		lb_credential_put(c[i]);
	lb_snapshot_free(a);
	assert_int_equal(n_put[0], 1);
	assert_int_equal(n_put[1], 0);
	lb_snapshot_free(b);
	assert_int_equal(n_put[1], 1);
}

static void removing_what_is_not_there_is_fine(void **state)
{
	(void)state;
	struct lb_snapshot *s = lb_snapshot_new(0, "");
	assert_int_equal(lb_snapshot_set_cluster(s, 9000, NULL), 0);
	assert_null(lb_snapshot_cluster(s, 9000));
	lb_snapshot_free(s);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct lb_snapshot *s = NULL, *copy = NULL;
	ALLOC_FAIL_EACH(s = lb_snapshot_new(2, "error"), !s, (void)0);
	struct lb_route_table *table = routes();
	struct lb_cluster *c = cluster(1);
	int err = 0;
	ALLOC_FAIL_EACH(err = lb_snapshot_set_frontend(s, 0, table, ""), err == -ENOMEM, (void)0);
	for (size_t nth = 0;; nth++) {
		alloc_fail_arm(nth);
		err = lb_snapshot_set_cluster(s, 1, c);
		if (!alloc_fail_disarm())
			break;
		assert_int_equal(err, -ENOMEM);
		assert_null(lb_snapshot_cluster(s, 1));
	}
	assert_int_equal(err, 0);
	struct lb_snapshot *sharer = lb_snapshot_copy(s);
	alloc_fail_arm(0);
	err = lb_snapshot_set_cluster(sharer, 1, NULL); // its page must be copied
	if (alloc_fail_disarm())
		assert_int_equal(err, -ENOMEM);
	assert_ptr_equal(lb_snapshot_cluster(s, 1), c);
	lb_snapshot_free(sharer);
	ALLOC_FAIL_EACH(copy = lb_snapshot_copy(s), !copy, lb_snapshot_free(copy));
	assert_int_equal(c->n_refs, 2);
	lb_snapshot_free(s);
	assert_int_equal(c->n_refs, 1);
	lb_cluster_put(c);
	lb_route_table_put(table);
}

RUN_SUITE("lb/snapshot", cmocka_unit_test(empty_one_has_the_error_everywhere),
	cmocka_unit_test(access_logs_of_a_frontend_go_with_its_last_snapshot),
	cmocka_unit_test(what_is_said_of_a_frontend_goes_with_its_last_snapshot),
	cmocka_unit_test(copies_share_unchanged_parts),
	cmocka_unit_test(frontend_may_lose_its_routes_for_an_error),
	cmocka_unit_test(chains_are_shared_until_others_come),
	cmocka_unit_test(vips_are_shared_until_others_come),
	cmocka_unit_test(filters_and_their_generation_stay_until_others_come),
	cmocka_unit_test(copies_share_the_pages_of_unchanged_frontends),
	cmocka_unit_test(credentials_change_under_their_ids),
	cmocka_unit_test(removing_what_is_not_there_is_fine),
	cmocka_unit_test(each_failed_allocation_is_survived))
