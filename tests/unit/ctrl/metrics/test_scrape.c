// SPDX-License-Identifier: Apache-2.0
// One reading of all metrics, step by step: that each sample is told once whatever changes
// meanwhile, what is asked for, and what histograms look like.
#include "ctrl/metrics/scrape.h"
#include "lb/route/vhost.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SAMPLES 8192

static const struct told_endpoint two_backends[] = {
	{{.port = 1, .ip = {{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}}, LB_LEAF_HEALTHY, 1},
	{{.port = 2, .ip = {{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}}, LB_LEAF_HEALTHY, 1},
};
static const struct told_locality locality = {"", "", "", 1, two_backends, 2};
static const struct told_priority priority = {&locality, 1};
static const struct res_vhost three = {"v", DOMAINS("*"),
	ROUTES({PREFIX("/b"), CLUSTERS({"b", 1})}, {PREFIX("/c"), CLUSTERS({"c", 1})},
		{PREFIX(""), CLUSTERS({"d", 1})})};
static const struct res_vhost others = {"v", DOMAINS("*"),
	ROUTES({PREFIX("/a"), CLUSTERS({"a", 1})}, {PREFIX("/c"), CLUSTERS({"c", 1})},
		{PREFIX(""), CLUSTERS({"e", 1})})};

// What was told, each as "name{label=value,…} number".
struct told {
	struct metric_sink sink;
	char *samples[MAX_SAMPLES];
	uint32_t n;
	const struct metric *head;
	bool was_told[N_METRICS];
};

static void head(struct metric_sink *sink, const struct metric *m)
{
	struct told *t = (struct told *)sink;
	assert_false(t->was_told[m - metrics]); // all of one stand together
	t->was_told[m - metrics] = true;
	t->head = m;
}

static void sample(struct metric_sink *sink, const struct metric *m, const struct metric_sample *s)
{
	struct told *t = (struct told *)sink;
	char text[512];
	int len = snprintf(text, sizeof(text), "%s%s{", m->name, s->suffix);
	assert_ptr_equal(t->head, m);
	for (uint32_t i = 0; i < s->n_labels; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s=%s,", s->labels[i].name,
			s->labels[i].value);
	for (uint32_t i = 0; i < t->n; i++) // with its labels, it is new
		assert_true(strncmp(t->samples[i], text, (size_t)len) != 0 ||
			    t->samples[i][len] != '}');
	snprintf(text + len, sizeof(text) - (size_t)len, "} %.9g", s->value);
	assert_true(t->n < MAX_SAMPLES);
	t->samples[t->n++] = strdup(text);
}

static struct told *told_new(void)
{
	struct told *t = calloc(1, sizeof(*t));
	t->sink = (struct metric_sink){head, sample};
	return t;
}

static void told_free(struct told *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free(t->samples[i]);
	free(t);
}

static bool has(const struct told *t, const char *text)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (strcmp(t->samples[i], text) == 0)
			return true;
	return false;
}

static uint32_t count_with(const struct told *t, const char *piece)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < t->n; i++)
		n += strstr(t->samples[i], piece) != NULL;
	return n;
}

static bool is_ready(void *ctx)
{
	return true;
}

static struct scrape *begin(struct world *w, const struct scrape_ask *ask, struct metric_sink *sink)
{
	const struct scrape_conf conf = {.config = &w->config,
		.workers = w->workers,
		.assembler = w->assembler,
		.wheel = w->wheel,
		.is_ready = is_ready};
	struct scrape *s = scrape_new(&conf, ask, sink);
	assert_non_null(s);
	return s;
}

static void finish(struct scrape *s)
{
	int more = 1;
	for (uint32_t n = 0; more > 0; n++) {
		assert_true(n < 100000);
		more = scrape_step(s);
	}
	assert_int_equal(more, 0);
	scrape_free(s);
}

static struct told *tell(struct world *w, const struct scrape_ask *ask)
{
	struct told *t = told_new();
	finish(begin(w, ask, &t->sink));
	return t;
}

static void give(struct world *w, const struct res_vhost *v, const char *const names[3])
{
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, v, names, (struct res_endpoints *[]){e, e, e}, 3);
	turns(w, 60);
	xds_res_put(&e->base);
}

static void give_three(struct world *w)
{
	give(w, &three, (const char *[]){"b", "c", "d"});
}

// OPS-10
static void ops_10_clusters_that_come_and_go_meanwhile_are_told_once(void **state)
{
	struct world *w = *state;
	give_three(w);
	for (int pause = 1; pause < 8; pause++) {
		struct told *t = told_new();
		struct scrape *s = begin(w, &(struct scrape_ask){0}, &t->sink);
		for (int i = 0; i < pause; i++)
			assert_int_equal(scrape_step(s), 1);
		give(w, &others, (const char *[]){"a", "c", "e"});
		finish(s);
		assert_int_equal(count_with(t, "shunt_cluster_up{cluster=c,"), 1);
		told_free(t);
		give_three(w);
	}
	struct told *t = told_new();
	struct scrape *s = begin(w, &(struct scrape_ask){0}, &t->sink);
	assert_int_equal(scrape_step(s), 1);
	scrape_free(s); // a reader that went away
	assert_int_equal(t->n, 0);
	told_free(t);
}

static void a_histogram_is_cumulative_up_to_its_count(void **state)
{
	struct world *w = *state;
	give_three(w);
	uint32_t b = route(w, "/b");
	counter_add(&w->link->clusters[b].started, 3);
	histogram_add(&w->link->times[b].attempt, histogram_place(1500), 1500);
	histogram_add(&w->link->times[b].attempt, histogram_place(1600), 1600);
	histogram_add(&w->link->times[b].attempt, histogram_place(90 * NS_PER_SECOND),
		90 * NS_PER_SECOND);
	struct told *t = tell(w, &(struct scrape_ask){0});
#define ATTEMPT "shunt_cluster_attempt_duration_seconds"
	assert_true(has(t, ATTEMPT "_bucket{cluster=b,le=1.024e-06,} 0"));
	assert_true(has(t, ATTEMPT "_bucket{cluster=b,le=1.536e-06,} 1"));
	assert_true(has(t, ATTEMPT "_bucket{cluster=b,le=2.048e-06,} 2"));
	assert_true(has(t, ATTEMPT "_bucket{cluster=b,le=68.7194767,} 2"));
	assert_true(has(t, ATTEMPT "_bucket{cluster=b,le=+Inf,} 3"));
	assert_true(has(t, ATTEMPT "_count{cluster=b,} 3"));
	assert_true(has(t, ATTEMPT "_sum{cluster=b,} 90.0000031"));
	assert_true(has(t, ATTEMPT "_count{cluster=c,} 0"));
	told_free(t);
}

// OPS-11
static void ops_11_what_is_asked_for_is_told_and_nothing_else(void **state)
{
	struct world *w = *state;
	give_three(w);
	struct told *t = tell(w, &(struct scrape_ask){.names = {"d", "b", "d", "z"}, .n_names = 4});
	assert_int_equal(count_with(t, "shunt_cluster_up{"), 2);
	assert_int_equal(
		count_with(t, "{cluster=") + count_with(t, "{grpc_lb_backend_service="), t->n);
	told_free(t);
	t = tell(w, &(struct scrape_ask){.endpoints = true});
	assert_int_equal(count_with(t, "shunt_endpoint_up{"), 6);
	assert_int_equal(count_with(t, "shunt_endpoint_") + 1, t->n);
	assert_true(has(t, "shunt_endpoint_up{cluster=b,leaf=b,endpoint=10.0.0.1:1,} 0"));
	assert_true(has(t, "shunt_metrics_left_out{what=endpoints,} 0"));
	told_free(t);
	t = tell(w, &(struct scrape_ask){.endpoints = true, .names = {"c"}, .n_names = 1});
	assert_int_equal(count_with(t, "shunt_endpoint_up{cluster=c,"), 2);
	assert_int_equal(count_with(t, "shunt_endpoint_up{"), 2);
	told_free(t);
}

// OPS-227 to OPS-229
static void ops_229_connections_of_a_cluster_count_from_its_beginning(void **state)
{
	struct world *w = *state;
	struct lb_command c;
	give_three(w);
	struct told *t = tell(w, &(struct scrape_ask){0});
#define OF_D "{grpc_lb_backend_service=d,} "
	assert_true(has(t, "grpc_subchannel_connection_attempts_succeeded_total" OF_D "0"));
	assert_true(has(t, "grpc_subchannel_disconnections_total" OF_D "0"));
	assert_int_equal(count_with(t, "grpc_lb_wrr_"), 0); // no policy weighs
	assert_int_equal(count_with(t, "grpc_lb_outlier_"), 0); // nobody looks for them
	told_free(t);
	while (spsc_read(&w->link->commands, &c)) {
		struct lb_event up = {.kind = LB_EVENT_CONNECTED, .endpoint_id = c.endpoint->id};
		if (c.kind == LB_COMMAND_CONNECT)
			assert_true(spsc_write(&w->link->events, &up));
	}
	turns(w, 1);
	t = tell(w, &(struct scrape_ask){0});
	assert_true(has(t, "grpc_subchannel_connection_attempts_succeeded_total" OF_D "2"));
	assert_true(has(t, "grpc_subchannel_connection_attempts_failed_total" OF_D "0"));
	told_free(t);
}

// OPS-15: else nobody hears of a worker that is one configuration behind.
static void ops_15_the_newest_snapshot_has_the_number_that_workers_tell(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 3; i++) {
		char text[64];
		give(w, i % 2 ? &others : &three,
			(const char *[]){i % 2 ? "a" : "b", "c", i % 2 ? "e" : "d"});
		uint64_t version = lb_slot_current(w->slot)->version;
		snprintf(text, sizeof(text), "shunt_snapshot_version{} %" PRIu64, version);
		struct told *t = tell(w, &(struct scrape_ask){0});
		assert_true(version > 1 && has(t, text));
		told_free(t);
	}
}

static uint16_t number_of(struct world *w)
{
	const struct lb_snapshot *s = lb_slot_current(w->slot);
	return lb_route_table_vhost(lb_snapshot_frontend(s, 0)->routes, 0)->number;
}

// OPS-270
static void ops_270_virtual_hosts_are_told_by_name_through_their_changes(void **state)
{
	struct world *w = *state;
	give_three(w);
	uint16_t number = number_of(w);
	assert_true(number > 0);
	struct lb_vhost_counters *v = &w->link->vhosts[number];
	counter_add(&v->started, 3);
	counter_add(&v->ended[LB_CAUSE_OK], 1);
	counter_add(&v->ended[LB_CAUSE_TIMEOUT], 1);
	counter_add(&v->answers[LB_ANSWER_GRPC + 4], 1);
	histogram_add(&v->request, histogram_place(1500), 1500);
	give(w, &others, (const char *[]){"a", "c", "e"}); // other routes of the same name
	assert_int_equal(number_of(w), number);
	struct told *t = tell(w, &(struct scrape_ask){0});
#define VHOST "shunt_virtual_host_"
	assert_true(has(t, VHOST "requests_total{virtual_host=v,} 3"));
	assert_true(has(t, VHOST "requests_in_flight{virtual_host=v,} 1"));
	assert_true(has(t, VHOST "requests_ended_total{virtual_host=v,cause=ok,} 1"));
	assert_true(has(t, VHOST "requests_ended_total{virtual_host=v,cause=timeout,} 1"));
	assert_int_equal(count_with(t, VHOST "requests_ended_total"), 2);
	assert_true(has(t, VHOST "answers_total{virtual_host=v,protocol=grpc,status=4,} 1"));
	assert_true(has(t, VHOST "request_duration_seconds_count{virtual_host=v,} 1"));
	assert_true(has(t, "shunt_metrics_left_out{what=virtual_hosts,} 0"));
	told_free(t);
	const struct res_vhost renamed = {
		"n", DOMAINS("*"), ROUTES({PREFIX(""), CLUSTERS({"a", 1})})};
	give(w, &renamed, (const char *[]){"a", "c", "e"});
	t = tell(w, &(struct scrape_ask){0});
	assert_int_equal(count_with(t, "{virtual_host=v,"), 0);
	assert_true(has(t, VHOST "requests_total{virtual_host=n,} 0"));
	told_free(t);
	t = tell(w, &(struct scrape_ask){.names = {"a"}, .n_names = 1});
	assert_int_equal(count_with(t, VHOST), 0);
	told_free(t);
}

// OPS-270
static void ops_270_they_are_not_counted_unless_asked_for(void **state)
{
	struct world *w = *state;
	give_three(w);
	assert_int_equal(number_of(w), 0);
	struct told *t = tell(w, &(struct scrape_ask){0});
	assert_int_equal(count_with(t, "virtual_host="), 0);
	told_free(t);
}

struct counted {
	struct metric_sink sink;
	uint32_t n; // frontends with histograms
};

static void no_head(struct metric_sink *sink, const struct metric *m)
{
}

static void count(struct metric_sink *sink, const struct metric *m, const struct metric_sample *s)
{
	struct counted *c = (struct counted *)sink;
	c->n += m == &metrics[METRIC_ID_REQUEST_TIME] && strcmp(s->suffix, "_count") == 0;
}

// OPS-11: one that a reload brought, or that of Listeners' addresses, stands behind all places that
// nobody has.
static void ops_11_frontends_with_histograms_are_those_that_serve(void **state)
{
#define N_PLACES (SCRAPE_MAX_FRONTEND_TIMES + 2)
	struct world *w = *state;
	static struct config_frontend places[N_PLACES];
	static char name[N_PLACES][8];
	for (uint32_t i = 0; i < N_PLACES; i++)
		places[i] = (struct config_frontend){.name = name[i], .row = CONFIG_ROW_SPARE};
	places[0] = w->frontends[0];
	places[N_PLACES - 1] = w->frontends[1];
	lb_slot_free(w->slot);
	assembler_free(w->assembler);
	w->config.frontends = places;
	w->config.n_frontends = N_PLACES;
	w->slot = lb_slot_new(lb_snapshot_new(N_PLACES, "nothing yet"));
	const struct assembler_conf conf = {&w->config, w->slot, w->workers, w->wheel, 7};
	w->assembler = assembler_new(&conf);
	assert_non_null(w->assembler);
	struct told *t = tell(w, &(struct scrape_ask){0});
	assert_true(has(t, "shunt_metrics_left_out{what=frontend_durations,} 0"));
	assert_true(has(t, "shunt_frontend_request_duration_seconds_count{frontend=web,} 0"));
	assert_true(has(t, "shunt_frontend_request_duration_seconds_count{frontend=api,} 0"));
	told_free(t);
	for (uint32_t i = 1; i < N_PLACES - 1; i++) {
		snprintf(name[i], sizeof(name[i]), "f%u", i);
		places[i].row = CONFIG_ROW_SERVES;
	}
	struct counted c = {.sink = {no_head, count}};
	finish(begin(w, &(struct scrape_ask){0}, &c.sink));
	assert_int_equal(c.n, SCRAPE_MAX_FRONTEND_TIMES);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)
RUN_SUITE("ctrl/scrape", CASE(ops_10_clusters_that_come_and_go_meanwhile_are_told_once),
	CASE(a_histogram_is_cumulative_up_to_its_count),
	CASE(ops_11_what_is_asked_for_is_told_and_nothing_else),
	CASE(ops_229_connections_of_a_cluster_count_from_its_beginning),
	CASE(ops_15_the_newest_snapshot_has_the_number_that_workers_tell),
	cmocka_unit_test_setup_teardown(
		ops_270_virtual_hosts_are_told_by_name_through_their_changes, world_set_up_counting,
		world_tear_down),
	CASE(ops_270_they_are_not_counted_unless_asked_for),
	CASE(ops_11_frontends_with_histograms_are_those_that_serve))
