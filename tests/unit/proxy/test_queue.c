// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/queue.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/cluster.h"
#include "lb/pick/link.h"
#include "lb/pick/picker.h"
#include "lb/route/req.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

#define N 6
#define SCRATCH 4096

static char picked[64]; // names of the requests, in the order of their picks
static struct pool chunks;
static struct proxy proxy;
static struct lb_shared shared; // of pickers that count nothing
static struct lb_snapshot *snapshot;
static struct proxy_request requests[N]; // "a", "b", …
static const struct proxy_frontend frontends[1];
static struct proxy_client client;

static const struct lb_cell *not_yet(const struct lb_picker *p, struct lb_pick_ctx *ctx)
{
	strncat(picked, ctx->req->path.p, ctx->req->path.len);
	return lb_pick_other(ctx, (struct lb_pick){.kind = LB_PICK_QUEUE});
}

static void not_owned(struct lb_picker *p)
{
}

static struct lb_picker picker = {1, not_yet, not_owned};

static void make_request(struct proxy_request *r, char name, uint32_t cluster_id)
{
	*r = (struct proxy_request){.proxy = &proxy,
		.owner = &client,
		.cluster_id = cluster_id,
		.state = PROXY_REQUEST_PICKING,
		.listed = true,
		.n_running = 1}; // never freed
	struct h2_message m = {.kind = H2_REQUEST, .path = {&name, 1}};
	assert_true(proxy_replay_put_head(&proxy, &r->replay, &m));
}

static int setup(void **state)
{
	picked[0] = '\0';
	proxy = (struct proxy){.chunks = &chunks, .max_fields = 8, .scratch_size = SCRATCH};
	proxy.conf.frontends = frontends;
	proxy.shared = &shared;
	proxy.scratch = malloc(SCRATCH);
	proxy.fields = calloc(9, sizeof(*proxy.fields));
	proxy.positions = calloc(LB_MAX_CLUSTERS, sizeof(*proxy.positions));
	snapshot = lb_snapshot_new(1, "");
	if (!proxy.scratch || !proxy.fields || !proxy.positions || !snapshot ||
		proxy_queues_init(&proxy.queues) || buf_pool_init(&chunks, 32))
		return -1;
	for (uint32_t id = 0; id < 2; id++) {
		struct lb_cluster *c = lb_cluster_new(id, "c", LB_CONNECTING, &picker);
		if (!c || lb_snapshot_set_cluster(snapshot, id, c))
			return -1;
		lb_cluster_put(c);
	}
	proxy.snapshot = snapshot;
	for (int i = 0; i < N; i++)
		make_request(&requests[i], (char)('a' + i), 0);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < N; i++)
		proxy_replay_drop(&proxy, &requests[i].replay);
	assert_int_equal(chunks.n_used, 0);
	proxy_queues_fini(&proxy.queues);
	lb_snapshot_free(snapshot);
	free(proxy.scratch);
	free(proxy.fields);
	free(proxy.positions);
	pool_fini(&chunks);
	return 0;
}

static void append(int from, int to)
{
	for (int i = from; i < to; i++)
		proxy_queue_append(&proxy, &requests[i]);
}

static void walk(uint32_t budget)
{
	proxy_queue_walk(&proxy, &budget);
}

// MC-17
static void a_change_picks_all_again_in_order(void **state)
{
	append(0, 4);
	walk(100);
	assert_string_equal(picked, "");
	proxy_queue_changed(&proxy);
	walk(100);
	assert_string_equal(picked, "abcd");
	walk(100);
	assert_string_equal(picked, "abcd");
}

static void a_walk_goes_on_where_the_budget_ended(void **state)
{
	append(0, 5);
	proxy_queue_changed(&proxy);
	walk(2);
	assert_string_equal(picked, "ab");
	walk(2);
	assert_string_equal(picked, "abcd");
	walk(100);
	assert_string_equal(picked, "abcde");
}

static void a_change_during_a_walk_makes_another_one(void **state)
{
	append(0, 3);
	proxy_queue_changed(&proxy);
	walk(2);
	proxy_queue_changed(&proxy);
	walk(100);
	assert_string_equal(picked, "abcabc");
}

// it waits at the front, and is picked though nothing else has changed.
static void those_that_come_back_go_first(void **state)
{
	append(0, 2);
	for (int i = 4; i >= 2; i--) // as a backend gives them up, the last one first
		proxy_queue_prepend(&proxy, &requests[i]);
	walk(100);
	assert_string_equal(picked, "cdeab");
}

static void one_that_comes_back_during_a_walk_is_not_missed(void **state)
{
	append(0, 3);
	proxy_queue_changed(&proxy);
	walk(2);
	proxy_queue_prepend(&proxy, &requests[5]);
	walk(100);
	assert_string_equal(picked, "abcfabc");
}

static void a_walk_survives_the_removal_of_its_next(void **state)
{
	append(0, 4);
	proxy_queue_changed(&proxy);
	walk(1);
	proxy_queue_remove(&proxy, &requests[1]);
	proxy_queue_remove(&proxy, &requests[0]);
	walk(100);
	assert_string_equal(picked, "acd");
	proxy_queue_remove(&proxy, &requests[2]);
	proxy_queue_remove(&proxy, &requests[3]);
	proxy_queue_changed(&proxy);
	walk(100);
	assert_string_equal(picked, "acd");
	assert_null(proxy.queues.used);
}

static void clusters_are_walked_one_after_the_other(void **state)
{
	append(0, 2);
	proxy_replay_drop(&proxy, &requests[2].replay);
	make_request(&requests[2], 'x', 1);
	append(2, 3);
	proxy_queue_changed(&proxy);
	walk(100);
	assert_int_equal(strlen(picked), 3);
	assert_non_null(strstr(picked, "ab"));
	assert_non_null(strchr(picked, 'x'));
}

//
static void newcomers_wait_behind_those_about_to_be_picked(void **state)
{
	assert_false(proxy_queue_must_wait(&proxy, 0));
	append(0, 2);
	assert_false(proxy_queue_must_wait(&proxy, 0));
	proxy_queue_changed(&proxy);
	assert_true(proxy_queue_must_wait(&proxy, 0));
	assert_false(proxy_queue_must_wait(&proxy, 1));
	walk(100);
	assert_false(proxy_queue_must_wait(&proxy, 0));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("proxy/queue", CASE(a_change_picks_all_again_in_order),
	CASE(a_walk_goes_on_where_the_budget_ended), CASE(a_change_during_a_walk_makes_another_one),
	CASE(those_that_come_back_go_first), CASE(one_that_comes_back_during_a_walk_is_not_missed),
	CASE(a_walk_survives_the_removal_of_its_next),
	CASE(clusters_are_walked_one_after_the_other),
	CASE(newcomers_wait_behind_those_about_to_be_picked))
