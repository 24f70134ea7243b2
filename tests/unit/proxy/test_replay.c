// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/hpack_names.h"
#include "dataplane/proxy/replay.h"
#include "dataplane/proxy/state.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FIELDS 64
#define SCRATCH 32768

static struct pool chunks;
static struct proxy proxy;
static uint64_t sum;

static int setup(void **state)
{
	proxy = (struct proxy){
		.chunks = &chunks, .scratch.max_fields = MAX_FIELDS, .scratch.size = SCRATCH};
	proxy.scratch.bytes = malloc(SCRATCH);
	proxy.scratch.fields = calloc(MAX_FIELDS + 1, sizeof(*proxy.scratch.fields));
	return proxy.scratch.bytes && proxy.scratch.fields && !buf_pool_init(&chunks, 64) ? 0 : -1;
}

static int teardown(void **state)
{
	assert_int_equal(chunks.n_used, 0);
	assert_int_equal(sum, 0);
	free(proxy.scratch.bytes);
	free(proxy.scratch.fields);
	pool_fini(&chunks);
	return 0;
}

static void assert_str(struct str a, struct str b)
{
	assert_int_equal(a.len, b.len);
	if (a.len)
		assert_memory_equal(a.p, b.p, a.len);
}

static void assert_same(const struct h2_message *a, const struct h2_message *b)
{
	assert_str(a->method, b->method);
	assert_str(a->scheme, b->scheme);
	assert_str(a->authority, b->authority);
	assert_str(a->path, b->path);
	assert_int_equal(a->n_fields, b->n_fields);
	for (size_t i = 0; i < a->n_fields; i++) {
		assert_str(a->fields[i].name, b->fields[i].name);
		assert_str(a->fields[i].value, b->fields[i].value);
		assert_int_equal(a->fields[i].never_index, b->fields[i].never_index);
		assert_int_equal(a->fields[i].name_id, b->fields[i].name_id);
	}
}

static char letters[4096];

static struct str any_str(struct rand *r, size_t most)
{
	return (struct str){letters + rand_below(r, 1000), rand_below(r, most + 1)};
}

// HX-10, HX-11: order, duplicates, empty values and the never-indexed mark survive.
static void what_was_stored_comes_back_field_by_field(void **state)
{
	struct rand r;
	rand_init(&r, 1);
	for (size_t i = 0; i < sizeof(letters); i++)
		letters[i] = (char)rand_u64(&r);
	for (int round = 0; round < 2000; round++) {
		struct field fields[MAX_FIELDS];
		struct h2_message m = {.kind = H2_REQUEST,
			.method = any_str(&r, 10),
			.scheme = any_str(&r, 5),
			.authority = any_str(&r, 100),
			.path = any_str(&r, 500),
			.fields = fields,
			.n_fields = rand_below(&r, 20)};
		for (size_t i = 0; i < m.n_fields; i++) {
			fields[i] = (struct field){any_str(&r, 30),
				any_str(&r, round % 50 ? 100 : 1000), rand_below(&r, 2)};
			if (rand_below(&r, 2)) {
				fields[i].name = STR("user-agent");
				fields[i].name_id = HPACK_USER_AGENT;
			}
		}
		struct proxy_replay replay = {.sum = &sum};
		assert_true(proxy_replay_put_head(&proxy, &replay, &m));
		size_t body_len = rand_below(&r, 3000);
		assert_true(
			proxy_replay_put_body(&proxy, &replay, (const uint8_t *)letters, body_len));
		struct h2_message trailers = {.kind = H2_TRAILERS, .fields = fields, .n_fields = 2};
		if (m.n_fields >= 2)
			assert_true(proxy_replay_put_trailers(&proxy, &replay, &trailers));
		assert_int_equal(proxy_replay_body_len(&replay), body_len);
		struct h2_message got;
		proxy_replay_head(&proxy, &replay, &got);
		assert_same(&got, &m);
		if (m.n_fields >= 2) {
			proxy_replay_trailers(&proxy, &replay, &got);
			assert_same(&got, &trailers);
			assert_int_equal(got.kind, H2_TRAILERS);
			assert_true(got.end_stream);
		}
		proxy_replay_drop(&proxy, &replay);
		assert_false(proxy_replay_stored(&replay));
		assert_int_equal(chunks.n_used, 0);
	}
}

static void a_request_that_does_not_fit_is_not_stored(void **state)
{
	static char big[SCRATCH];
	struct field f = {.name = STR("x"), .value = {big, sizeof(big)}};
	struct h2_message m = {.kind = H2_REQUEST, .fields = &f, .n_fields = 1};
	struct proxy_replay replay = {.sum = &sum};
	assert_false(proxy_replay_put_head(&proxy, &replay, &m));
	assert_false(proxy_replay_stored(&replay));
	f.value.len = 3000;
	void *taken[64];
	for (int i = 0; i < 63; i++)
		taken[i] = pool_take(&chunks);
	assert_false(proxy_replay_put_head(&proxy, &replay, &m));
	for (int i = 0; i < 63; i++)
		pool_put(&chunks, taken[i]);
	assert_false(proxy_replay_stored(&replay));
}

RUN_SUITE("proxy/replay",
	cmocka_unit_test_setup_teardown(what_was_stored_comes_back_field_by_field, setup, teardown),
	cmocka_unit_test_setup_teardown(a_request_that_does_not_fit_is_not_stored, setup, teardown))
