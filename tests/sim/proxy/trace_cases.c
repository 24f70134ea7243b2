// SPDX-License-Identifier: Apache-2.0
// What the exporter of traces is told of requests whose listener asks for tags (OPS-220).
#include "lb/base/pool.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

#define N_MANY 3000 // more than the ring holds

static struct world *traced_world(const struct lb_trace_tag *tags, uint32_t n)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.traces = true;
	struct world *w = ready_world(&conf);
	w->control.tracing = (struct lb_tracing){.on = true,
		.path_max = LB_TRACE_PATH_MAX,
		.random = LB_TRACE_ALL,
		.overall = LB_TRACE_ALL,
		.tags = tags,
		.n_tags = n};
	control_set_filters(&w->control, 0, NULL, 0, LB_NO_TIMEOUT, 1);
	world_run(w, SECOND);
	return w;
}

static uint32_t n_taken(const struct world *w, const char *pool)
{
	struct pool_list pools = {0};
	proxy_list_pools(w->proxy, &pools);
	for (uint32_t i = 0; i < pools.n; i++)
		if (strcmp(pools.views[i].name, pool) == 0)
			return *pools.views[i].n_used;
	fail_msg("there is no pool %s", pool);
	return 0;
}

static void assert_tag(
	const struct lb_trace_tags *t, uint16_t *at, const char *key, const char *value)
{
	struct str got_key, got_value;
	assert_true(lb_trace_tags_next(t, at, &got_key, &got_value));
	if (!str_eq(got_key, str_from(key)) || !str_eq(got_value, str_from(value)))
		fail_msg("%s: %.*s", key, (int)got_value.len, got_value.p);
}

static void ops_220_tags_are_those_of_the_request_however_late_it_ends(void **state)
{
	const struct lb_trace_tag tags[] = {
		{STR("zone"), STR(""), STR("a")}, {STR("tenant"), STR("x-tenant"), STR("nobody")}};
	struct world *w = traced_world(tags, 2);
	struct lb_trace_record r;
	// Its head is gone from the replay long before its end.
	struct ask *a = world_ask(w, "one", KIND_ECHO, 200000);
	a->extra[0] = (struct field){.name = STR("x-tenant"), .value = STR("blue")};
	client_ask(&w->clients[0], a);
	finish(w);
	assert_ok(w, a);
	ask(w, KIND_ECHO, 10);
	finish(w);
	world_run(w, SECOND);
	for (int i = 0; i < 2; i++) {
		uint16_t at = 0;
		assert_true(spsc_read(&w->link->trace->ring, &r));
		assert_tag(&r.tags, &at, "zone", "a");
		assert_tag(&r.tags, &at, "tenant", i ? "nobody" : "blue");
		assert_int_equal(at, r.tags.n_bytes);
	}
	assert_true(spsc_is_empty(&w->link->trace->ring));
	assert_int_equal(n_taken(w, "trace_tags"), 0);
	world_free(w);
}

static void ops_220_without_tags_a_record_has_none(void **state)
{
	struct world *w = traced_world(NULL, 0);
	struct lb_trace_record r;
	ask(w, KIND_ECHO, 10);
	finish(w);
	world_run(w, SECOND);
	assert_true(spsc_read(&w->link->trace->ring, &r));
	assert_int_equal(r.tags.n_bytes, 0);
	world_free(w);
}

static void ops_169_a_ring_that_is_full_keeps_no_tags(void **state)
{
	const struct lb_trace_tag tags[] = {{STR("zone"), STR(""), STR("a")}};
	struct world *w = traced_world(tags, 1);
	for (int i = 0; i < N_MANY; i++) {
		ask(w, KIND_ECHO, 10);
		if (i % 20 == 0)
			finish(w);
	}
	finish(w);
	world_run(w, SECOND);
	assert_int_equal(counter_read(&w->link->trace->n_dropped), N_MANY - LB_TRACE_RECORDS);
	assert_int_equal(n_taken(w, "trace_tags"), 0);
	world_free(w);
}

RUN_SUITE("sim/proxy_trace",
	cmocka_unit_test(ops_220_tags_are_those_of_the_request_however_late_it_ends),
	cmocka_unit_test(ops_220_without_tags_a_record_has_none),
	cmocka_unit_test(ops_169_a_ring_that_is_full_keeps_no_tags))
