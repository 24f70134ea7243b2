// SPDX-License-Identifier: Apache-2.0
// From the workers' counters to the messages of load reports (LR-*), in virtual time.
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "lb/pick/drop.h"
#include "lb/pick/loads.h"
#include "lb/pick/metrics.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assemble/load_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct load_leaf *leaf_of(struct load_world *w, const char *cluster)
{
	struct load_leaf *leaf = load_leaf_new(w->report, w->f.bootstrap->servers, cluster, "");
	assert_non_null(leaf);
	return leaf;
}

// One update with the zones of region "r" that the words name; returns the last one's number.
static uint32_t update(struct load_leaf *leaf, const char *zones)
{
	char text[64], *rest = text;
	uint32_t index = 0;
	snprintf(text, sizeof(text), "%s", zones);
	load_leaf_begin(leaf);
	for (char *word; (word = strtok_r(rest, " ", &rest));)
		index = load_leaf_locality(leaf, word, "z", "s");
	load_leaf_end(leaf);
	return index;
}

static void count(struct load_world *w, uint32_t worker, uint32_t index, unsigned issued,
	unsigned ok, unsigned failed)
{
	for (unsigned i = 0; i < issued; i++)
		load_world_count(w, worker, index, ISSUED);
	for (unsigned i = 0; i < ok; i++)
		load_world_count(w, worker, index, OK);
	for (unsigned i = 0; i < failed; i++)
		load_world_count(w, worker, index, FAILED);
}

static struct load_report_info info_of(const struct load_world *w)
{
	struct load_report_info i;
	load_report_info(w->report, &i);
	return i;
}

// LR-06, LR-11
static void what_all_workers_count_is_told_once_and_what_is_in_flight_each_time(void **state)
{
	struct load_world w;
	load_world_init(&w);
	assert_int_equal(w.f.n_streams, 0); // LR-01
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	uint32_t index = update(leaf, "r");
	assert_true(index > 0);
	count(&w, 0, index, 5, 2, 1);
	count(&w, 1, index, 7, 3, 0);
	assert_string_equal(load_world_report(&w), "a/ 10s r/z/s 12 5 1 6");
	assert_string_equal(load_world_report(&w), "a/ 10s r/z/s 0 0 0 6");
	count(&w, 1, index, 0, 2, 2);
	count(&w, 0, index, 1, 0, 1);
	assert_string_equal(load_world_report(&w), "a/ 10s r/z/s 1 2 3 2");
	load_leaf_free(leaf);
	load_world_fini(&w);
}

// LR-12
static void what_workers_counted_last_is_told_when_the_process_ends(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	uint32_t index = update(leaf, "r");
	count(&w, 0, index, 5, 4, 1);
	count(&w, 1, index, 2, 2, 0);
	load_world_pass(&w, 3);
	assert_false(load_report_finish(w.report));
	assert_string_equal(lrs_sent(&w.f), "a/ 3s r/z/s 7 6 1 0");
	lrs_settle(&w.f);
	lrs_close(&w.f, "OK: ");
	assert_true(load_report_finish(w.report));
	load_leaf_free(leaf);
	load_world_fini(&w);
}

static void locality_keeps_its_number_over_updates_in_any_order(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	uint32_t x = update(leaf, "x"), y = update(leaf, "x y"), z = update(leaf, "x y z");
	assert_true(x != y && y != z && x != z);
	assert_int_equal(update(leaf, "y z x"), x);
	assert_int_equal(update(leaf, "x z y"), y);
	assert_int_equal(update(leaf, "x y x z x z"), z); // also in two priorities
	assert_int_equal(info_of(&w).n_counters, 3);
	assert_int_equal(info_of(&w).n_leaving, 0);
	load_leaf_begin(leaf); // names that would run into each other
	uint32_t a = load_leaf_locality(leaf, "ab", "c", "");
	assert_int_not_equal(load_leaf_locality(leaf, "a", "bc", ""), a);
	assert_int_not_equal(load_leaf_locality(leaf, "abc", "", ""), a);
	assert_int_not_equal(load_leaf_locality(leaf, "a", "b", "c"), a);
	load_leaf_end(leaf);
	assert_int_equal(info_of(&w).n_counters, 7);
	load_leaf_free(leaf);
	load_world_fini(&w);
}

// LR-09
static void locality_that_left_is_told_until_its_last_request_has_ended(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	uint32_t x = update(leaf, "x");
	count(&w, 0, x, 3, 1, 0);
	uint32_t y = update(leaf, "y");
	count(&w, 1, y, 1, 1, 0);
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 3 1 0 2 y/z/s 1 1 0 0");
	count(&w, 1, x, 1, 1, 0); // by a snapshot that is a little older
	count(&w, 0, x, 0, 1, 0);
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 1 2 0 1 y/z/s 0 0 0 0");
	assert_int_equal(info_of(&w).n_leaving, 1);
	count(&w, 0, x, 0, 0, 1);
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 0 0 1 0 y/z/s 0 0 0 0");
	assert_int_equal(info_of(&w).n_counters, 1);
	assert_int_equal(info_of(&w).n_leaving, 0);
	count(&w, 0, y, 1, 0, 0);
	assert_string_equal(load_world_report(&w), "a/ 10s y/z/s 1 0 0 1");
	load_leaf_free(leaf);
	load_world_fini(&w);
}

static void locality_that_comes_back_is_the_same(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	uint32_t x = update(leaf, "x");
	count(&w, 0, x, 2, 0, 0);
	update(leaf, "y");
	load_world_pass(&w, 5);
	assert_int_equal(info_of(&w).n_leaving, 1);
	assert_int_equal(update(leaf, "y x"), x);
	assert_int_equal(info_of(&w).n_leaving, 0);
	count(&w, 0, x, 1, 3, 0);
	load_world_pass(&w, 5);
	assert_string_equal(lrs_sent(&w.f), "a/ 10s x/z/s 3 3 0 0 y/z/s 0 0 0 0");
	lrs_settle(&w.f);
	assert_int_equal(info_of(&w).n_counters, 2); // not for being idle
	load_leaf_free(leaf);
	load_world_fini(&w);
}

static void update_that_was_given_up_takes_nothing_away(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	uint32_t x = update(leaf, "x");
	load_leaf_begin(leaf);
	assert_true(load_leaf_locality(leaf, "y", "z", "s") > 0);
	load_world_pass(&w, 5);
	assert_int_equal(info_of(&w).n_counters, 2);
	assert_int_equal(update(leaf, "x"), x);
	load_world_pass(&w, 5);
	assert_int_equal(info_of(&w).n_counters, 1);
	load_leaf_free(leaf);
	load_world_fini(&w);
}

// LR-09, LR-01
static void cluster_that_left_is_told_to_its_last_request_and_then_the_stream_ends(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	uint32_t x = update(leaf, "x");
	count(&w, 0, x, 4, 1, 0);
	load_leaf_free(leaf);
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 4 1 0 3");
	count(&w, 0, x, 0, 3, 0);
	assert_non_null(w.f.stream);
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 0 3 0 0");
	load_world_pass(&w, 1);
	assert_null(w.f.stream);
	assert_int_equal(info_of(&w).n_counters, 0);
	assert_true(twheel_next_ns(w.f.wheel) == UINT64_MAX);
	load_world_fini(&w);
}

static void leaf_without_localities_goes_at_once(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	update(leaf, "");
	assert_non_null(w.f.stream);
	load_leaf_free(leaf);
	assert_null(w.f.stream);
	load_leaf_free(NULL);
	load_world_fini(&w);
}

static void leaves_of_the_same_names_add_up(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *a = leaf_of(&w, "a"), *b = leaf_of(&w, "a");
	struct load_leaf *other =
		load_leaf_new(w.report, w.f.bootstrap->servers, "a", "eds"); // LR-05
	assert_non_null(other);
	load_world_begin(&w);
	uint32_t in_a = update(a, "x"), in_b = update(b, "x"), in_other = update(other, "x");
	assert_true(in_a != in_b && in_b != in_other);
	count(&w, 0, in_a, 1, 1, 0);
	count(&w, 0, in_b, 2, 0, 1);
	count(&w, 0, in_other, 5, 5, 0);
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 3 1 1 1; a/eds 10s x/z/s 5 5 0 0");
	load_leaf_free(a);
	load_leaf_free(b);
	load_leaf_free(other);
	load_world_fini(&w);
}

static int connect_by_uri(void *ctx, const struct xds_server_conf *conf, struct xds_transport **ret,
	struct lb_err *err)
{
	struct lrs_fixture *const *servers = ctx;
	struct xds_transport_factory f = lrs_factory(servers[strcmp(conf->uri, "second") == 0]);
	return f.connect(f.ctx, conf, ret, err);
}

// A cluster that comes from another server is reported there; what was counted before goes to the
// first one.
static void fe_09_each_server_hears_of_the_clusters_that_it_sent(void **state)
{
	static const struct xds_server_conf second = {.uri = (char *)(uintptr_t) "second"};
	struct lrs_fixture other;
	struct load_world w;
	lrs_init(&other);
	load_world_init(&w);
	load_report_free(w.report);
	w.report = load_report_new(&(struct load_report_conf){
		.bootstrap = w.f.bootstrap,
		.transport = {connect_by_uri, (struct lrs_fixture *[]){&w.f, &other}},
		.workers = w.workers,
		.wheel = w.f.wheel,
		.rand = &w.f.rand,
		.user_agent_version = "1.2.3",
	});
	assert_string_equal(info_of(&w).stream.uri, w.f.bootstrap->servers[0].uri);
	struct load_leaf *a = leaf_of(&w, "a");
	struct load_leaf *b = load_leaf_new(w.report, &second, "b", "");
	load_world_begin(&w);
	assert_string_equal(lrs_sent(&other), "hello");
	lrs_settle(&other);
	lrs_settings(&other, NULL, 10 * S);
	count(&w, 0, update(a, "x"), 1, 1, 0);
	count(&w, 0, update(b, "y"), 2, 2, 0);
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 1 1 0 0");
	assert_string_equal(lrs_sent(&other), "b/ 10s y/z/s 2 2 0 0");
	lrs_settle(&other);
	assert_int_equal(info_of(&w).stream.n_clusters, 2);
	assert_int_equal(info_of(&w).stream.n_reports, 2);
	// "a" comes from the second one now.
	count(&w, 0, update(a, "x"), 1, 1, 0);
	load_leaf_free(a);
	a = load_leaf_new(w.report, &second, "a", "");
	count(&w, 0, update(a, "x"), 5, 5, 0);
	load_world_pass(&w, 10);
	assert_string_equal(lrs_sent(&w.f), "a/ 10s x/z/s 1 1 0 0");
	assert_non_null(strstr(lrs_sent(&other), "a/ 10s x/z/s 5 5 0 0"));
	lrs_settle(&w.f);
	lrs_settle(&other);
	load_world_pass(&w, 1);
	assert_null(w.f.stream); // LR-01
	assert_string_equal(info_of(&w).stream.uri, "second");
	load_leaf_free(a);
	load_leaf_free(b);
	load_world_fini(&w);
	lrs_fini(&other);
}

// LR-07
static void drops_are_told_by_category_and_those_of_the_breaker_in_the_sum_alone(void **state)
{
	static const struct lb_drop_category both[] = {{"lb", 1}, {"throttle", 2}};
	static const struct lb_drop_category other[] = {{"throttle", 7}};
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	load_leaf_begin(leaf);
	struct lb_loads *first = lb_loads_get(load_leaf_drops(leaf, both, 2));
	load_leaf_end(leaf);
	assert_int_equal(first->n_drops, 2);
	count(&w, 0, first->drops[0], 3, 0, 0);
	count(&w, 1, first->drops[1], 4, 0, 0);
	count(&w, 1, first->breaker, 2, 0, 0);
	const char *text = load_world_report(&w);
	assert_non_null(strstr(text, "a/ 10s drops 9"));
	assert_non_null(strstr(text, " lb=3"));
	assert_non_null(strstr(text, " throttle=4"));
	assert_string_equal(load_world_report(&w), "a/ 10s");
	load_leaf_begin(leaf);
	struct lb_loads *second = load_leaf_drops(leaf, other, 1);
	load_leaf_end(leaf);
	assert_int_equal(second->n_drops, 1);
	assert_int_equal(second->drops[0], first->drops[1]); // goes on
	assert_int_equal(second->breaker, first->breaker);
	count(&w, 0, first->drops[0], 1, 0, 0); // LR-09, by an older snapshot
	assert_string_equal(load_world_report(&w), "a/ 10s drops 1 lb=1");
	assert_int_equal(info_of(&w).n_counters, 2);
	lb_loads_put(first);
	load_leaf_free(leaf);
	load_world_fini(&w);
}

static void drops_are_the_same_object_while_their_categories_are_the_same(void **state)
{
	static const struct lb_drop_category both[] = {{"lb", 1}, {"throttle", 2}};
	static const struct lb_drop_category turned[] = {{"throttle", 2}, {"lb", 1}};
	static const struct lb_drop_category rarer[] = {{"lb", 1}, {"throttle", 1}};
	static const struct lb_drop_category twice[] = {{"lb", 1}, {"lb", 2}};
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	struct lb_loads *first = lb_loads_get(load_leaf_drops(leaf, both, 2));
	assert_ptr_equal(load_leaf_drops(leaf, both, 2), first);
	assert_ptr_equal(load_leaf_drops(leaf, rarer, 2), first);
	assert_ptr_not_equal(load_leaf_drops(leaf, turned, 2), first);
	struct lb_loads *l = load_leaf_drops(leaf, twice, 2);
	assert_int_equal(l->drops[0], l->drops[1]);
	assert_int_equal(load_leaf_drops(leaf, NULL, 0)->n_drops, 0);
	lb_loads_put(first);
	load_leaf_free(leaf);
	load_world_fini(&w);
}

// A27-I10
static void a_cluster_of_one_name_has_the_empty_locality(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "dns");
	load_world_begin(&w);
	load_leaf_begin(leaf);
	uint32_t index = load_leaf_locality(leaf, "", "", "");
	assert_non_null(load_leaf_drops(leaf, NULL, 0));
	load_leaf_end(leaf);
	count(&w, 1, index, 3, 2, 0);
	assert_string_equal(load_world_report(&w), "dns/ 10s // 3 2 0 1");
	load_leaf_free(leaf);
	load_world_fini(&w);
}

static void nothing_is_lost_or_told_twice_when_the_stream_breaks(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	uint32_t x = update(leaf, "x");
	count(&w, 0, x, 2, 2, 0);
	load_world_pass(&w, 10);
	assert_string_equal(lrs_sent(&w.f), "a/ 10s x/z/s 2 2 0 0");
	lrs_close(&w.f, "reset"); // before it has left
	count(&w, 1, x, 1, 0, 0);
	load_world_pass(&w, 2);
	load_world_begin(&w);
	assert_string_equal(load_world_report(&w), "a/ 22s x/z/s 3 2 0 1");
	lrs_close(&w.f, "reset"); // afterwards
	assert_string_equal(info_of(&w).stream.error, "reset");
	load_world_pass(&w, 2);
	load_world_begin(&w);
	assert_string_equal(load_world_report(&w), "a/ 12s x/z/s 0 0 0 1");
	load_leaf_free(leaf);
	load_world_fini(&w);
}

// As a worker tells it.
static void metric(struct load_world *w, const struct load_leaf *leaf, uint32_t index,
	const char *name, double value)
{
	static const char *const own[] = {
		"cpu_utilization", "mem_utilization", "application_utilization"};
	const struct lb_metrics *m = load_leaf_metrics(leaf);
	struct lb_event e = {.kind = LB_EVENT_METRIC, .load = index};
	if (!m)
		return;
	e.metric.value = value;
	e.metric.list = m->list;
	e.metric.index = LB_METRIC_NONE;
	for (uint32_t i = 0; i < LB_METRIC_NAMED; i++)
		if (strcmp(name, own[i]) == 0)
			e.metric.index = lb_metrics_has(m, (enum lb_metric)i) ? i : 99;
	if (e.metric.index == LB_METRIC_NONE) {
		name += strlen("named_metrics.");
		e.metric.index = lb_metrics_find(m, str_from(name));
		snprintf(e.metric.name, sizeof(e.metric.name), "%s", name);
	}
	if (e.metric.index != 99 && (e.metric.index != LB_METRIC_NONE || m->all_named))
		load_report_event(w->report, &e);
}

static void set_metrics(struct load_leaf *leaf, const char *words)
{
	char text[128], *rest = text;
	const char *names[8];
	uint32_t n = 0;
	snprintf(text, sizeof(text), "%s", words);
	for (char *word; (word = strtok_r(rest, " ", &rest));)
		names[n++] = word;
	assert_int_equal(load_leaf_set_metrics(leaf, names, n), 0);
}

static void all_metrics(struct load_world *w, const struct load_leaf *leaf, uint32_t index)
{
	static const char *const names[] = {"cpu_utilization", "mem_utilization",
		"application_utilization", "named_metrics.k", "named_metrics.cpu_utilization"};
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		metric(w, leaf, index, names[i], 0.25 * (i + 1));
}

// LR-10, A85
static void metrics_are_told_as_the_cluster_asks(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	uint32_t x = update(leaf, "x");
	all_metrics(&w, leaf, x);
	assert_null(load_leaf_metrics(leaf)); // nothing unless it asks
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 0 0 0 0");
	set_metrics(leaf, "utilization.x request_cost.* eps *");
	assert_null(load_leaf_metrics(leaf)); // nothing that is known
	set_metrics(leaf, "named_metrics.k mem_utilization");
	assert_non_null(load_leaf_metrics(leaf));
	all_metrics(&w, leaf, x);
	all_metrics(&w, leaf, x);
	assert_string_equal(
		load_world_report(&w), "a/ 10s x/z/s 0 0 0 0 mem=2:1 named_metrics.k=2:2");
	set_metrics(leaf, "cpu_utilization eps named_metrics.*");
	all_metrics(&w, leaf, x);
	const char *text = load_world_report(&w);
	assert_non_null(strstr(text, " cpu=1:0.25 "));
	assert_non_null(strstr(text, " named_metrics.k=1:1"));
	assert_non_null(strstr(text, " named_metrics.cpu_utilization=1:1.25"));
	assert_null(strstr(text, "mem"));
	set_metrics(leaf, "");
	assert_null(load_leaf_metrics(leaf));
	all_metrics(&w, leaf, x);
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 0 0 0 0");
	assert_int_equal(info_of(&w).n_stray_metrics, 0);
	load_leaf_free(leaf);
	load_world_fini(&w);
}

static void metrics_that_no_report_can_carry_are_left_out(void **state)
{
	struct load_world w;
	load_world_init(&w);
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	uint32_t x = update(leaf, "x");
	set_metrics(leaf, "named_metrics.* cpu_utilization");
	metric(&w, leaf, x, "cpu_utilization", NAN);
	metric(&w, leaf, x, "cpu_utilization", INFINITY);
	metric(&w, leaf, x, "cpu_utilization", -INFINITY);
	metric(&w, leaf, x, "named_metrics.\xff", 1);
	metric(&w, leaf, x, "named_metrics.\xc3", 1); // cut
	assert_int_equal(info_of(&w).n_stray_metrics, 5);
	metric(&w, leaf, x, "named_metrics.\xc3\xa4", -2.5);
	assert_string_equal(
		load_world_report(&w), "a/ 10s x/z/s 0 0 0 0 named_metrics.\xc3\xa4=1:-2.5");
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 0 0 0 0");
	for (unsigned i = 0; i < XDS_LOAD_MAX_METRICS + 3; i++) {
		char name[32];
		snprintf(name, sizeof(name), "named_metrics.%u", i);
		metric(&w, leaf, x, name, 1);
	}
	assert_int_equal(info_of(&w).n_stray_metrics, 8);
	metric(&w, leaf, 0, "named_metrics.none", 1);
	metric(&w, leaf, LB_MAX_LOADS - 1, "named_metrics.none", 1);
	struct lb_event late = {.kind = LB_EVENT_METRIC, .load = x};
	late.metric.list = load_leaf_metrics(leaf)->list - 1; // wanted before
	load_report_event(w.report, &late);
	late.metric.list++;
	late.metric.index = LB_METRIC_NAMED; // there is none
	load_report_event(w.report, &late);
	load_leaf_free(leaf);
	load_world_report(&w);
	late.metric.index = LB_METRIC_CPU;
	load_report_event(w.report, &late); // nobody's any more
	assert_int_equal(info_of(&w).n_stray_metrics, 13);
	load_world_fini(&w);
}

static void numbers_rest_and_what_they_counted_before_is_not_told_again(void **state)
{
	static const struct lb_drop_category one[] = {{"lb", 1}};
	struct load_world w;
	load_world_init_small(&w, 3);
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	uint32_t x = update(leaf, "x");
	load_leaf_begin(leaf);
	struct lb_loads *drops = lb_loads_get(load_leaf_drops(leaf, one, 1));
	load_leaf_end(leaf); // x leaves
	count(&w, 0, x, 4, 3, 1);
	count(&w, 0, drops->drops[0], 9, 0, 0);
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 4 3 1 0 drops 9 lb=9");
	update(leaf, ""); // and so do the drops
	load_world_pass(&w, 5);
	load_world_pass(&w, 5);
	assert_string_equal(lrs_sent(&w.f), "a/ 10s");
	lrs_settle(&w.f);
	assert_int_equal(info_of(&w).n_counters, 0);
	assert_int_equal(update(leaf, "p"), x); // the one that rested longest
	update(leaf, "p q s"); // s has had drops
	count(&w, 1, drops->drops[0], 1, 1, 0);
	assert_string_equal(load_world_report(&w),
		drops->drops[0] < drops->breaker
			? "a/ 10s p/z/s 0 0 0 0 q/z/s 1 1 0 0 s/z/s 0 0 0 0"
			: "a/ 10s p/z/s 0 0 0 0 q/z/s 0 0 0 0 s/z/s 1 1 0 0");
	lb_loads_put(drops);
	load_leaf_free(leaf);
	load_world_fini(&w);
}

static void number_rests_on_while_a_late_request_is_under_way(void **state)
{
	struct load_world w;
	load_world_init_small(&w, 1);
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	uint32_t x = update(leaf, "x");
	update(leaf, "");
	load_world_pass(&w, 5);
	assert_int_equal(info_of(&w).n_counters, 0);
	count(&w, 0, x, 1, 0, 0); // a worker that stood still all the while
	assert_int_equal(update(leaf, "y"), 0);
	assert_int_equal(info_of(&w).n_refused, 1);
	count(&w, 0, x, 0, 1, 0);
	assert_int_equal(update(leaf, "y"), x);
	load_world_pass(&w, 5);
	assert_string_equal(lrs_sent(&w.f), "a/ 10s y/z/s 0 0 0 0");
	load_leaf_free(leaf);
	load_world_fini(&w);
}

static void without_a_number_nothing_is_counted_and_the_rest_goes_on(void **state)
{
	static const struct lb_drop_category one[] = {{"lb", 1}};
	struct load_world w;
	load_world_init_small(&w, 2);
	struct load_leaf *leaf = leaf_of(&w, "a");
	load_world_begin(&w);
	load_leaf_begin(leaf);
	uint32_t x = load_leaf_locality(leaf, "x", "z", "s");
	struct lb_loads *drops = load_leaf_drops(leaf, one, 1);
	assert_int_equal(load_leaf_locality(leaf, "y", "z", "s"), 0);
	load_leaf_end(leaf);
	assert_true(drops->breaker > 0);
	assert_int_equal(drops->drops[0], 0);
	count(&w, 0, x, 1, 1, 0);
	assert_string_equal(load_world_report(&w), "a/ 10s x/z/s 1 1 0 0");
	assert_int_equal(info_of(&w).n_refused, 2);
	load_leaf_begin(leaf);
	assert_int_equal(load_leaf_locality(leaf, "x", "z", "s"), x);
	load_leaf_end(leaf);
	load_world_pass(&w, 5);
	load_leaf_begin(leaf); // one is free again
	assert_int_equal(load_leaf_locality(leaf, "x", "z", "s"), x);
	assert_true(load_leaf_locality(leaf, "y", "z", "s") > 0);
	load_leaf_end(leaf);
	load_leaf_free(leaf);
	load_world_fini(&w);
}

RUN_SUITE("ctrl/load_report",
	cmocka_unit_test(what_all_workers_count_is_told_once_and_what_is_in_flight_each_time),
	cmocka_unit_test(what_workers_counted_last_is_told_when_the_process_ends),
	cmocka_unit_test(locality_keeps_its_number_over_updates_in_any_order),
	cmocka_unit_test(locality_that_left_is_told_until_its_last_request_has_ended),
	cmocka_unit_test(locality_that_comes_back_is_the_same),
	cmocka_unit_test(update_that_was_given_up_takes_nothing_away),
	cmocka_unit_test(cluster_that_left_is_told_to_its_last_request_and_then_the_stream_ends),
	cmocka_unit_test(leaf_without_localities_goes_at_once),
	cmocka_unit_test(leaves_of_the_same_names_add_up),
	cmocka_unit_test(fe_09_each_server_hears_of_the_clusters_that_it_sent),
	cmocka_unit_test(drops_are_told_by_category_and_those_of_the_breaker_in_the_sum_alone),
	cmocka_unit_test(drops_are_the_same_object_while_their_categories_are_the_same),
	cmocka_unit_test(a_cluster_of_one_name_has_the_empty_locality),
	cmocka_unit_test(nothing_is_lost_or_told_twice_when_the_stream_breaks),
	cmocka_unit_test(metrics_are_told_as_the_cluster_asks),
	cmocka_unit_test(metrics_that_no_report_can_carry_are_left_out),
	cmocka_unit_test(numbers_rest_and_what_they_counted_before_is_not_told_again),
	cmocka_unit_test(number_rests_on_while_a_late_request_is_under_way),
	cmocka_unit_test(without_a_number_nothing_is_counted_and_the_rest_goes_on))
