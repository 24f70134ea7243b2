// SPDX-License-Identifier: Apache-2.0
// What a client status response says of an xDS client that lived with a scripted server, read back
// by protobuf-c.
#include "ctrl/status/csds_dump.h"
#include "ctrl/xds/bootstrap/node.h"
#include "envoy/service/status/v3/csds.pb-c.h"
#include "lb/base/twheel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALL_AT_0 (1700000000ll * (int64_t)S) // wall-clock time of the wheel's 0

typedef Envoy__Service__Status__V3__ClientStatusResponse Response;
typedef Envoy__Service__Status__V3__ClientConfig Config;
typedef Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig Entry;
typedef Google__Protobuf__Timestamp Timestamp;

struct world {
	struct fixture f;
	struct xds_node node;
	struct ear ears[8];
	unsigned n_ears;
};

static void world_init(struct world *w, const char *features)
{
	*w = (struct world){0};
	fixture_init(&w->f, features);
	assert_int_equal(xds_node_init(&w->node, w->f.bootstrap, "1.2.3"), 0);
}

static void world_fini(struct world *w)
{
	xds_node_fini(&w->node);
	fixture_fini(&w->f);
}

// A response of up to two texts, which is acknowledged.
static void say(struct world *w, const char *version, const char *a, const char *b)
{
	fake_ads_settle(&w->f.server);
	respond(&w->f, &toy_cluster, version, version, a, b, NULL);
	fake_ads_settle(&w->f.server);
}

static void watch(struct world *w, const struct xds_type *type, const char *name)
{
	listen_to(&w->f, type, name, &w->ears[w->n_ears++]);
}

// The response as one block (free).
static uint8_t *join(struct csds_dump *d, size_t *ret_len)
{
	const struct rpc_part *parts;
	size_t n = csds_dump_take(d, &parts, ret_len), at = 0;
	uint8_t *all = malloc(*ret_len);
	assert_non_null(all);
	for (size_t i = 0; i < n; i++) {
		assert_true(at + parts[i].len <= *ret_len);
		memcpy(all + at, parts[i].bytes, parts[i].len);
		at += parts[i].len;
		free(parts[i].bytes);
	}
	assert_int_equal(at, *ret_len);
	return all;
}

static Response *read_back(struct csds_dump *d)
{
	size_t len;
	uint8_t *bytes = join(d, &len);
	Response *m = envoy__service__status__v3__client_status_response__unpack(NULL, len, bytes);
	assert_non_null(m);
	free(bytes);
	return m;
}

static Response *dump(struct world *w, bool exclude_contents, size_t budget)
{
	struct csds_dump_conf conf = {&w->node.msg, exclude_contents, WALL_AT_0};
	struct csds_dump *d = csds_dump_new(&conf);
	assert_non_null(d);
	xds_client_each(w->f.client, csds_dump_add, d);
	int r;
	while ((r = csds_dump_step(d, budget)) == 0)
		;
	assert_int_equal(r, 1);
	Response *m = read_back(d);
	csds_dump_free(d);
	return m;
}

static void forget(Response *m)
{
	envoy__service__status__v3__client_status_response__free_unpacked(m, NULL);
}

static const Entry *entry_of(const Response *m, const char *name)
{
	for (size_t i = 0; i < m->config[0]->n_generic_xds_configs; i++)
		if (strcmp(m->config[0]->generic_xds_configs[i]->name, name) == 0)
			return m->config[0]->generic_xds_configs[i];
	return NULL;
}

// The wheel's time of a timestamp, in seconds.
static int64_t seconds_of(const Timestamp *t)
{
	assert_non_null(t);
	assert_int_equal(t->nanos, 0);
	return t->seconds - WALL_AT_0 / (int64_t)S;
}

static void assert_value(const Entry *e, const char *version, const char *bytes, int64_t at)
{
	assert_string_equal(e->version_info, version);
	assert_non_null(e->xds_config);
	assert_string_equal(e->xds_config->type_url, e->type_url);
	assert_int_equal(e->xds_config->value.len, strlen(bytes));
	assert_memory_equal(e->xds_config->value.data, bytes, strlen(bytes));
	assert_int_equal(seconds_of(e->last_updated), at);
}

static void assert_no_value(const Entry *e)
{
	assert_string_equal(e->version_info, "");
	assert_null(e->xds_config);
	assert_null(e->last_updated);
}

static void CS_02_CS_03_one_client_config_with_the_node_and_generic_entries_only(void **state)
{
	struct world w;
	world_init(&w, "");
	watch(&w, &toy_cluster, "a");
	Response *m = dump(&w, false, 1);
	assert_int_equal(m->n_config, 1);
	const Config *c = m->config[0];
	assert_string_equal(c->node->id, "me");
	assert_string_equal(c->node->cluster, "here");
	assert_string_equal(c->node->user_agent_name, "shunt");
	assert_string_equal(c->node->user_agent_version, "1.2.3");
	assert_int_equal(c->node->n_client_features, w.node.msg.n_client_features);
	assert_int_equal(c->node->metadata->n_fields, 1);
	assert_int_equal(c->n_xds_config, 0);
	assert_string_equal(c->client_scope, "");
	assert_int_equal(c->n_generic_xds_configs, 1);
	forget(m);
	world_fini(&w);
}

static void CS_04_nothing_watched_is_one_config_without_entries(void **state)
{
	struct world w;
	world_init(&w, "");
	Response *m = dump(&w, false, 1);
	assert_int_equal(m->n_config, 1);
	assert_int_equal(m->config[0]->n_generic_xds_configs, 0);
	forget(m);
	world_fini(&w);
}

static void CS_04_CS_05_an_accepted_resource_shows_version_time_and_its_own_bytes(void **state)
{
	struct world w;
	world_init(&w, "");
	watch(&w, &toy_cluster, "a");
	pass_time(&w.f, 5 * S);
	say(&w, "v7", "a=one", NULL);
	Response *m = dump(&w, false, 1);
	const Entry *e = entry_of(m, "a");
	assert_string_equal(e->type_url, CLUSTER_URL);
	assert_int_equal(e->client_status, XDS_STATUS_ACKED);
	assert_int_equal(e->config_status, 0);
	assert_false(e->is_static_resource);
	assert_value(e, "v7", "a=one", 1005);
	assert_null(e->error_state);
	forget(m);
	world_fini(&w);
}

static void CS_05_a_resource_that_was_asked_for_is_requested(void **state)
{
	struct world w;
	world_init(&w, "");
	watch(&w, &toy_endpoints, "a");
	Response *m = dump(&w, false, 1);
	const Entry *e = entry_of(m, "a");
	assert_string_equal(e->type_url, ENDPOINTS_URL);
	assert_int_equal(e->client_status, XDS_STATUS_REQUESTED);
	assert_no_value(e);
	assert_null(e->error_state);
	forget(m);
	world_fini(&w);
}

static void CS_04_names_are_whole(void **state)
{
	static const char name[] = "xdstp://authority/toy.Toy/a/b?x=1&y=2";
	struct world w;
	world_init(&w, "");
	struct csds_dump_conf conf = {&w.node.msg, false, WALL_AT_0};
	struct csds_dump *d = csds_dump_new(&conf);
	assert_non_null(d);
	csds_dump_add(d, &(struct xds_entry_info){.type = &toy_cluster,
				 .name = name,
				 .status = XDS_STATUS_RECEIVED_ERROR,
				 .version = "",
				 .error = "no",
				 .error_version = ""});
	assert_int_equal(csds_dump_step(d, 1), 1);
	Response *m = read_back(d);
	csds_dump_free(d);
	assert_non_null(entry_of(m, name));
	assert_int_equal(entry_of(m, name)->client_status, XDS_STATUS_RECEIVED_ERROR); // CS-05
	assert_null(entry_of(m, name)->error_state->last_update_attempt);
	forget(m);
	world_fini(&w);
}

static void CS_05_a_resource_that_did_not_come_does_not_exist(void **state)
{
	struct world w;
	world_init(&w, "");
	watch(&w, &toy_cluster, "a");
	fake_ads_settle(&w.f.server);
	pass_time(&w.f, 16 * S);
	Response *m = dump(&w, false, 1);
	const Entry *e = entry_of(m, "a");
	assert_int_equal(e->client_status, XDS_STATUS_DOES_NOT_EXIST);
	assert_no_value(e);
	assert_non_null(strstr(e->error_state->details, "no answer"));
	forget(m);
	world_fini(&w);
}

static void CS_05_a_server_that_may_be_slow_makes_it_a_timeout(void **state)
{
	struct world w;
	world_init(&w, "\"resource_timer_is_transient_error\"");
	watch(&w, &toy_cluster, "a");
	fake_ads_settle(&w.f.server);
	pass_time(&w.f, 31 * S);
	Response *m = dump(&w, false, 1);
	assert_int_equal(entry_of(m, "a")->client_status, XDS_STATUS_TIMEOUT);
	forget(m);
	world_fini(&w);
}

static void CS_06_a_refused_update_keeps_the_value_and_says_what_was_wrong(void **state)
{
	struct world w;
	world_init(&w, "");
	watch(&w, &toy_cluster, "a");
	say(&w, "v1", "a=one", NULL);
	pass_time(&w.f, 3 * S);
	say(&w, "v2", "a=BADLY made", NULL);
	pass_time(&w.f, 3 * S);
	Response *m = dump(&w, false, 1);
	const Entry *e = entry_of(m, "a");
	assert_int_equal(e->client_status, XDS_STATUS_NACKED);
	assert_value(e, "v1", "a=one", 1000);
	assert_non_null(strstr(e->error_state->details, "BADLY made"));
	assert_string_equal(e->error_state->version_info, "v2");
	assert_int_equal(seconds_of(e->error_state->last_update_attempt), 1003);
	const Google__Protobuf__Any *refused = e->error_state->failed_configuration;
	assert_non_null(refused);
	assert_string_equal(refused->type_url, CLUSTER_URL);
	assert_int_equal(refused->value.len, strlen("a=BADLY made"));
	assert_memory_equal(refused->value.data, "a=BADLY made", refused->value.len);
	forget(m);
	m = dump(&w, true, 1);
	assert_null(entry_of(m, "a")->error_state->failed_configuration);
	assert_non_null(strstr(entry_of(m, "a")->error_state->details, "BADLY made"));
	forget(m);

	say(&w, "v3", "a=two", NULL);
	m = dump(&w, false, 1);
	e = entry_of(m, "a");
	assert_int_equal(e->client_status, XDS_STATUS_ACKED);
	assert_value(e, "v3", "a=two", 1006);
	assert_null(e->error_state);
	forget(m);
	world_fini(&w);
}

static void CS_07_the_good_ones_of_a_refused_response_are_acked(void **state)
{
	struct world w;
	world_init(&w, "");
	watch(&w, &toy_cluster, "a");
	watch(&w, &toy_cluster, "b");
	say(&w, "v1", "a=one", "b=BADLY made");
	Response *m = dump(&w, false, 1);
	assert_int_equal(entry_of(m, "a")->client_status, XDS_STATUS_ACKED);
	assert_value(entry_of(m, "a"), "v1", "a=one", 1000);
	assert_int_equal(entry_of(m, "b")->client_status, XDS_STATUS_NACKED);
	assert_no_value(entry_of(m, "b"));
	forget(m);
	world_fini(&w);
}

static void a_response_that_lists_a_name_twice_leaves_version_and_value_as_they_were(void **state)
{
	struct world w;
	world_init(&w, "");
	watch(&w, &toy_cluster, "a");
	say(&w, "v1", "a=one", NULL);
	pass_time(&w.f, 3 * S);
	say(&w, "v2", "a=two", "a=three");
	Response *m = dump(&w, false, 1);
	const Entry *e = entry_of(m, "a");
	assert_int_equal(e->client_status, XDS_STATUS_NACKED);
	assert_value(e, "v1", "a=one", 1000);
	assert_non_null(strstr(e->error_state->details, "lists cluster \"a\" more than once"));
	assert_string_equal(e->error_state->version_info, "v2");
	assert_int_equal(seconds_of(e->error_state->last_update_attempt), 1003);
	forget(m);
	world_fini(&w);
}

static void CS_08_a_dropped_value_and_an_unwatched_resource_are_not_shown(void **state)
{
	struct world w;
	world_init(&w, "\"fail_on_data_errors\"");
	watch(&w, &toy_cluster, "a");
	watch(&w, &toy_cluster, "b");
	say(&w, "v1", "a=one", "b=one");
	say(&w, "v2", "b=two", NULL); // a is gone
	xds_client_cancel(w.f.client, &w.ears[1].watcher);
	Response *m = dump(&w, false, 1);
	assert_int_equal(m->config[0]->n_generic_xds_configs, 1);
	assert_int_equal(entry_of(m, "a")->client_status, XDS_STATUS_DOES_NOT_EXIST);
	assert_no_value(entry_of(m, "a"));
	forget(m);
	world_fini(&w);
}

static void CS_08_a_deleted_resource_that_still_serves_shows_its_value(void **state)
{
	struct world w;
	world_init(&w, "");
	watch(&w, &toy_cluster, "a");
	watch(&w, &toy_cluster, "b");
	say(&w, "v1", "a=one", "b=one");
	say(&w, "v2", "b=two", NULL);
	Response *m = dump(&w, false, 1);
	const Entry *e = entry_of(m, "a");
	assert_int_equal(e->client_status, XDS_STATUS_DOES_NOT_EXIST);
	assert_value(e, "v1", "a=one", 1000);
	assert_non_null(strstr(e->error_state->details, "deleted"));
	assert_null(e->error_state->failed_configuration);
	forget(m);
	world_fini(&w);
}

static void CS_08_contents_are_left_out_when_asked(void **state)
{
	struct world w;
	world_init(&w, "");
	watch(&w, &toy_cluster, "a");
	say(&w, "v1", "a=one", NULL);
	Response *m = dump(&w, true, 1);
	const Entry *e = entry_of(m, "a");
	assert_null(e->xds_config);
	assert_string_equal(e->version_info, "v1");
	assert_int_equal(seconds_of(e->last_updated), 1000);
	assert_int_equal(e->client_status, XDS_STATUS_ACKED);
	forget(m);
	world_fini(&w);
}

// It is the picture of the instant at which it was taken, whatever happens while it is encoded.
static void changes_while_it_is_encoded_are_not_in_it(void **state)
{
	struct world w;
	world_init(&w, "");
	watch(&w, &toy_cluster, "a");
	watch(&w, &toy_cluster, "b");
	say(&w, "v1", "a=one", "b=one");
	struct csds_dump_conf conf = {&w.node.msg, false, WALL_AT_0};
	struct csds_dump *d = csds_dump_new(&conf);
	assert_non_null(d);
	xds_client_each(w.f.client, csds_dump_add, d);
	assert_int_equal(csds_dump_step(d, 1), 0);
	say(&w, "v2", "a=two", "b=two");
	xds_client_cancel(w.f.client, &w.ears[0].watcher);
	xds_client_cancel(w.f.client, &w.ears[1].watcher);
	fake_ads_settle(&w.f.server);
	assert_int_equal(csds_dump_step(d, 1), 1);
	Response *m = read_back(d);
	csds_dump_free(d);
	assert_value(entry_of(m, "a"), "v1", "a=one", 1000);
	assert_value(entry_of(m, "b"), "v1", "b=one", 1000);
	forget(m);
	world_fini(&w);
}

static void times_before_1970_have_nanos_that_are_not_negative(void **state)
{
	struct world w;
	world_init(&w, "");
	watch(&w, &toy_cluster, "a");
	say(&w, "v1", "a=one", NULL);
	struct csds_dump_conf conf = {&w.node.msg, false, -1000 * (int64_t)S - 1};
	struct csds_dump *d = csds_dump_new(&conf);
	assert_non_null(d);
	xds_client_each(w.f.client, csds_dump_add, d);
	assert_int_equal(csds_dump_step(d, 1), 1);
	Response *m = read_back(d);
	csds_dump_free(d);
	assert_int_equal(entry_of(m, "a")->last_updated->seconds, -1);
	assert_int_equal(entry_of(m, "a")->last_updated->nanos, 999999999);
	forget(m);
	world_fini(&w);
}

static void texts_are_utf8_whatever_servers_and_names_are(void **state)
{
	struct world w;
	world_init(&w, "");
	struct csds_dump_conf conf = {&w.node.msg, false, WALL_AT_0};
	struct csds_dump *d = csds_dump_new(&conf);
	assert_non_null(d);
	struct xds_res *res = xds_res_new(&toy_cluster, sizeof(*res), "a", NULL, 0);
	assert_non_null(res);
	csds_dump_add(d, &(struct xds_entry_info){.type = &toy_cluster,
				 .name = "n\xffme \xc3\xa4",
				 .status = XDS_STATUS_NACKED,
				 .res = res,
				 .version = "\xe2\x82v1",
				 .updated_ns = S,
				 .error = "cluster \"\xe2\x82\xac\xe2\x82\": cut",
				 .error_version = "v2\xc3",
				 .error_ns = 2 * S});
	assert_int_equal(csds_dump_step(d, 1), 1);
	Response *m = read_back(d);
	const Entry *e = entry_of(m, "n?me \xc3\xa4");
	assert_non_null(e);
	assert_string_equal(e->version_info, "??v1");
	assert_string_equal(e->error_state->details, "cluster \"\xe2\x82\xac??\": cut");
	assert_string_equal(e->error_state->version_info, "v2?");
	forget(m);
	csds_dump_free(d);
	xds_res_put(res);
	world_fini(&w);
}

// Many entries of many lengths, made by hand.

struct crowd {
	struct xds_res *res[300];
	char names[300][16];
};

static void each_of_crowd(struct crowd *c, struct csds_dump *d)
{
	for (unsigned i = 0; i < 300; i++)
		csds_dump_add(d, &(struct xds_entry_info){.type = &toy_cluster,
					 .name = c->names[i],
					 .status = XDS_STATUS_ACKED,
					 .res = c->res[i],
					 .version = "1",
					 .updated_ns = S,
					 .error = "",
					 .error_version = ""});
}

static size_t length_of(unsigned i)
{
	static const size_t edges[] = {0, 1, 100, 127, 128, 129, 16000, 16384, 20000};
	return edges[i % 9] + i / 9;
}

static void slices_of_any_size_give_the_same_bytes(void **state)
{
	static const size_t budgets[] = {1, 100, 4096, 100000, SIZE_MAX};
	static uint8_t content[30000];
	struct world w;
	struct crowd c;
	uint8_t *first = NULL;
	size_t first_len = 0, most_steps = 0;
	world_init(&w, "");
	for (unsigned i = 0; i < 300; i++) {
		snprintf(c.names[i], sizeof(c.names[i]), "n%u", i);
		memset(content, (int)i, sizeof(content));
		c.res[i] = xds_res_new(
			&toy_cluster, sizeof(struct xds_res), c.names[i], content, length_of(i));
		assert_non_null(c.res[i]);
	}
	for (size_t b = 0; b < sizeof(budgets) / sizeof(budgets[0]); b++) {
		struct csds_dump_conf conf = {&w.node.msg, false, WALL_AT_0};
		struct csds_dump *d = csds_dump_new(&conf);
		assert_non_null(d);
		each_of_crowd(&c, d);
		size_t n_steps = 1, len;
		while (csds_dump_step(d, budgets[b]) == 0)
			n_steps++;
		most_steps = n_steps > most_steps ? n_steps : most_steps;
		uint8_t *bytes = join(d, &len);
		csds_dump_free(d);
		if (first) {
			assert_int_equal(len, first_len);
			assert_memory_equal(bytes, first, len);
			free(bytes);
		} else {
			first = bytes;
			first_len = len;
		}
	}
	assert_int_equal(most_steps, 300);
	Response *m =
		envoy__service__status__v3__client_status_response__unpack(NULL, first_len, first);
	assert_non_null(m);
	assert_int_equal(m->config[0]->n_generic_xds_configs, 300);
	for (unsigned i = 0; i < 300; i++) {
		const Entry *e = m->config[0]->generic_xds_configs[i];
		assert_string_equal(e->name, c.names[i]);
		assert_int_equal(e->xds_config->value.len, length_of(i));
		assert_int_equal(c.res[i]->n_refs, 1); // it was given back
		xds_res_put(c.res[i]);
	}
	forget(m);
	free(first);
	world_fini(&w);
}

static int dump_tightly(struct world *w, struct csds_dump **ret)
{
	struct csds_dump_conf conf = {&w->node.msg, false, WALL_AT_0};
	int r;
	*ret = csds_dump_new(&conf);
	if (!*ret)
		return -ENOMEM;
	xds_client_each(w->f.client, csds_dump_add, *ret);
	while ((r = csds_dump_step(*ret, 1)) == 0)
		;
	if (r < 0) {
		csds_dump_free(*ret);
		*ret = NULL;
	}
	return r;
}

static void without_memory_there_is_no_response_and_no_leak(void **state)
{
	struct world w;
	struct csds_dump *d = NULL;
	int r = 0;
	world_init(&w, "");
	watch(&w, &toy_cluster, "a");
	watch(&w, &toy_cluster, "b");
	say(&w, "v1", "a=one", "b=BADLY made");
	ALLOC_FAIL_EACH(r = dump_tightly(&w, &d), r == -ENOMEM, csds_dump_free(d));
	world_fini(&w);
}

RUN_SUITE("status/csds_dump",
	cmocka_unit_test(CS_02_CS_03_one_client_config_with_the_node_and_generic_entries_only),
	cmocka_unit_test(CS_04_nothing_watched_is_one_config_without_entries),
	cmocka_unit_test(CS_04_CS_05_an_accepted_resource_shows_version_time_and_its_own_bytes),
	cmocka_unit_test(CS_05_a_resource_that_was_asked_for_is_requested),
	cmocka_unit_test(CS_04_names_are_whole),
	cmocka_unit_test(CS_05_a_resource_that_did_not_come_does_not_exist),
	cmocka_unit_test(CS_05_a_server_that_may_be_slow_makes_it_a_timeout),
	cmocka_unit_test(CS_06_a_refused_update_keeps_the_value_and_says_what_was_wrong),
	cmocka_unit_test(CS_07_the_good_ones_of_a_refused_response_are_acked),
	cmocka_unit_test(a_response_that_lists_a_name_twice_leaves_version_and_value_as_they_were),
	cmocka_unit_test(CS_08_a_dropped_value_and_an_unwatched_resource_are_not_shown),
	cmocka_unit_test(CS_08_a_deleted_resource_that_still_serves_shows_its_value),
	cmocka_unit_test(CS_08_contents_are_left_out_when_asked),
	cmocka_unit_test(changes_while_it_is_encoded_are_not_in_it),
	cmocka_unit_test(times_before_1970_have_nanos_that_are_not_negative),
	cmocka_unit_test(texts_are_utf8_whatever_servers_and_names_are),
	cmocka_unit_test(slices_of_any_size_give_the_same_bytes),
	cmocka_unit_test(without_memory_there_is_no_response_and_no_leak))
