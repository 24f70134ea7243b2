// SPDX-License-Identifier: Apache-2.0
// Types that are known at run time only. What must come out was written by Google's protobuf for
// Python from the same JSON; for types that are compiled in, too, both must give the same bytes.
#include "google/protobuf/any.pb-c.h"
#include "lb/base/err.h"
#include "proto/descriptors.h"
#include "proto/json.h"
#include "proto/pool.h"
#include "proto/registry.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/support/kinds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER "envoy.config.cluster.v3.Cluster"

static struct proto_pool *new_pool(const uint8_t *bytes, size_t len)
{
	struct proto_pool *pool = NULL;
	struct lb_err err = {""};
	if (proto_pool_new(bytes, len, &pool, &err))
		fail_msg("%s", err.text);
	return pool;
}

static int setup(void **state)
{
	*state = new_pool(kinds_descriptors, kinds_descriptors_len);
	return 0;
}

static int teardown(void **state)
{
	proto_pool_free(*state);
	return 0;
}

struct told {
	char text[512];
};

static void left_out(void *ctx, const char *text)
{
	struct told *t = ctx;
	size_t n = strlen(t->text);
	snprintf(t->text + n, sizeof(t->text) - n, "%s\n", text);
}

// The bytes in hexadecimal, or the error.
static const char *encode(const struct proto_json_scope *scope, const char *type, const char *text)
{
	static char hex[1024];
	ProtobufCMessage *m = NULL;
	struct lb_err err = {""};
	const ProtobufCMessageDescriptor *desc = NULL;
	if (scope->pool)
		desc = proto_pool_find(scope->pool, str_from(type));
	if (!desc)
		desc = proto_registry_find(str_from(type));
	assert_non_null(desc);
	int r = proto_json_parse_in(scope, desc, text, strlen(text), &m, &err);
	if (r) {
		snprintf(hex, sizeof(hex), "%s", err.text);
		return hex;
	}
	uint8_t bytes[500];
	assert_true(protobuf_c_message_get_packed_size(m) <= sizeof(bytes));
	size_t n = protobuf_c_message_pack(m, bytes);
	ProtobufCMessage *again = protobuf_c_message_unpack(desc, NULL, n, bytes);
	assert_non_null(again);
	assert_int_equal(protobuf_c_message_get_packed_size(again), n);
	protobuf_c_message_free_unpacked(again, NULL);
	protobuf_c_message_free_unpacked(m, NULL);
	hex[0] = '\0';
	for (size_t i = 0; i < n; i++)
		sprintf(hex + 2 * i, "%02x", bytes[i]);
	return hex;
}

static void every_kind_of_field_is_encoded_as_protobuf_does_it(void **state)
{
	static const char *const rows[][2] = {
		{"{\"name\":\"a\",\"limit\":7,\"depth\":\"-2\",\"ratio\":0.5,\"blob\":\"AP8=\","
		 "\"mood\":\"FERAL\",\"last\":true}",
			"0a016188fa010790fa010399fa01000000000000e03fa2fa010200ffa8fa0107"
			"f8ffffff0f01"},
		{"{\"mood\":\"GLOOMY\"}", "a8fa01fdffffffffffffffff01"},
		{"{\"mood\":-3,\"fixed\":1}", "a8fa01fdffffffffffffffff01a5fb0101000000"},
		{"{\"inner\":{\"text\":\"t\",\"more\":{\"text\":\"u\"}}}",
			"b2fa01080a017412030a0175"},
		{"{\"maybe\":0,\"perhaps\":\"\"}", "b8fa0100c2fa0100"},
		{"{\"maybe\":null,\"limit\":0,\"flag\":false}", "d8fa0100"},
		{"{\"word\":\"\"}", "cafa0100"},
		{"{\"thing\":{}}", "d2fa0100"},
		{"{\"numbers\":[1,300],\"words\":[\"x\",\"\"],\"things\":[{},{\"text\":\"y\"}]}",
			"e2fa010301ac02eafa010178eafa0100f2fa0100f2fa01030a0179"},
		{"{\"byName\":{\"k\":{\"text\":\"v\"}}}", "fafa01080a016b12030a0176"},
		{"{\"wrapped\":0,\"wait\":\"1.5s\",\"open\":{\"a\":[true,null]}}",
			"82fb01008afb010808011080cab5ee019afb01110a0f0a0161120a32080a0220010a"
			"020800"},
		{"{\"any\":{\"@type\":\"t/envoy.config.cluster.v3.Secret\",\"name\":\"s\","
		 "\"text\":\"hush\"}}",
			"92fb012d0a20742f656e766f792e636f6e6669672e636c75737465722e76332e5365"
			"6372657412090a0173120468757368"},
		{"{\"any\":{\"@type\":\"t/google.protobuf.Duration\",\"value\":\"2s\"}}",
			"92fb01200a1a742f676f6f676c652e70726f746f6275662e4475726174696f6e1202"
			"0802"},
	};
	const struct proto_json_scope scope = {.pool = *state};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(encode(&scope, CLUSTER, rows[i][0]), rows[i][1]);
}

static void what_is_wrong_is_named(void **state)
{
	struct told told = {""};
	const struct proto_json_scope scope = {.pool = *state, .left_out = left_out, .ctx = &told};
	static const char *const rows[][2] = {
		{"{\"inner\":{\"txet\":\"t\"}}",
			"inner.txet: unknown field of envoy.config.cluster.v3.Cluster.Inner"},
		{"{\"mood\":\"ANGRY\"}", "mood: \"ANGRY\" is not a value of Mood"},
		{"{\"limit\":-1}", "limit: "},
		{"{\"word\":\"a\",\"flag\":true}", "flag: only one of this and word may be set"},
		{"{\"any\":{\"@type\":\"t/envoy.config.cluster.v3.Secret\",\"n\":1}}",
			"any.n: unknown field of envoy.config.cluster.v3.Secret"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *got = encode(&scope, CLUSTER, rows[i][0]);
		if (strncmp(got, rows[i][1], strlen(rows[i][1])) != 0)
			assert_string_equal(got, rows[i][1]);
	}
	assert_string_equal(told.text, "");
}

static void what_nobody_knows_is_left_out_and_told_if_it_may_be(void **state)
{
	struct told told = {""};
	const struct proto_json_scope scope = {.left_out = left_out, .ctx = &told};
	const struct proto_json_scope strict = {0};
	const char *text = "{\"name\":\"a\",\"limit\":7}";
	assert_string_equal(encode(&scope, CLUSTER, text), "0a0161"); // compiled in, without limit
	assert_string_equal(told.text, "limit: unknown field of " CLUSTER "\n");
	assert_string_equal(encode(&strict, CLUSTER, text), "limit: unknown field of " CLUSTER);
	told.text[0] = '\0';
	text = "{\"clusterType\":{\"typedConfig\":{\"@type\":\"t/x.Y\",\"z\":1}}}";
	assert_string_equal(encode(&scope, CLUSTER, text), "b202021200");
	assert_string_equal(told.text, "clusterType.typedConfig.@type: unknown type t/x.Y\n");
}

static void raw_bytes_are_taken_whatever_their_type_is(void **state)
{
	const struct proto_json_scope scope = {.pool = *state};
	const char *any = "google.protobuf.Any";
	const char *text = "{\"@type\":\"t/x.Y\",\"@raw\":\"CgFh\"}";
	assert_string_equal(encode(&scope, any, text), "0a05742f782e5912030a0161");
	text = "{\"@type\":\"t/" CLUSTER "\",\"@raw\":\"\"}";
	assert_string_equal(encode(&scope, any, text),
		"0a21742f656e766f792e636f6e6669672e636c75737465722e76332e436c7573746572");
	text = "{\"@type\":\"t/x.Y\",\"@raw\":\"CgFh\",\"name\":\"a\"}";
	assert_string_equal(encode(&scope, any, text), "\"@raw\" takes just \"@type\" beside it");
	assert_string_equal(encode(&scope, any, "{\"@type\":\"t/x.Y\",\"@raw\":\"?\"}"),
		"@raw: not text in base64");
	text = "{\"@type\":\"t/x.Y\",\"@raw\":\"CgFh\"}"; // as servers may send JSON
	struct lb_err err = {""};
	ProtobufCMessage *m = NULL;
	assert_int_equal(
		proto_json_parse(&google__protobuf__any__descriptor, text, strlen(text), &m, &err),
		-EINVAL);
	assert_string_equal(err.text, "@type: unknown type t/x.Y");
}

static void compiled_types_read_at_run_time_give_the_same_bytes(void **state)
{
	static const char *const rows[][2] = {
		{"envoy.config.cluster.v3.Cluster",
			"{\"name\":\"a\",\"type\":\"EDS\",\"connectTimeout\":\"1.5s\","
			"\"edsClusterConfig\":{\"serviceName\":\"s\",\"edsConfig\":{\"ads\":{}}},"
			"\"lbPolicy\":\"RING_HASH\",\"ringHashLbConfig\":{\"minimumRingSize\":5},"
			"\"metadata\":{\"filterMetadata\":{\"k\":{\"x\":[1,{\"y\":null}]}}}}"},
		{"envoy.config.route.v3.RouteConfiguration",
			"{\"name\":\"r\",\"virtualHosts\":[{\"name\":\"v\",\"domains\":[\"*\"],"
			"\"routes\":[{\"match\":{\"prefix\":\"\",\"runtimeFraction\":{"
			"\"defaultValue\":{\"numerator\":5}}},\"route\":{\"weightedClusters\":{"
			"\"clusters\":[{\"name\":\"a\",\"weight\":0},{\"name\":\"b\","
			"\"weight\":3}]}}},{\"match\":{\"path\":\"/x\",\"headers\":[{\"name\":"
			"\"h\",\"rangeMatch\":{\"start\":\"-5\",\"end\":5}}]},"
			"\"nonForwardingAction\":{}}]}]}"},
		{"google.protobuf.Any",
			"{\"@type\":\"t/envoy.extensions.filters.network.http_connection_manager."
			"v3.HttpConnectionManager\",\"rds\":{\"routeConfigName\":\"r\"},"
			"\"httpFilters\":[{\"name\":\"f\",\"typedConfig\":{\"@type\":"
			"\"t/envoy.extensions.filters.http.router.v3.Router\"}}]}"},
	};
	struct proto_pool *pool = new_pool(proto_descriptors, proto_descriptors_len);
	const struct proto_json_scope scope = {.pool = pool}, compiled = {0};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *want = strdup(encode(&compiled, rows[i][0], rows[i][1]));
		assert_true(strlen(want) > 40);
		assert_string_equal(encode(&scope, rows[i][0], rows[i][1]), want);
		free(want);
	}
	assert_true(proto_pool_n_messages(pool) > 200);
	proto_pool_free(pool);
}

static void of_two_sets_the_first_counts(void **state)
{
	size_t len = proto_descriptors_len + kinds_descriptors_len;
	uint8_t *both = malloc(len);
	assert_non_null(both);
	memcpy(both, proto_descriptors, proto_descriptors_len);
	memcpy(both + proto_descriptors_len, kinds_descriptors, kinds_descriptors_len);
	struct proto_pool *pool = new_pool(both, len);
	free(both);
	const struct proto_json_scope scope = {.pool = pool};
	assert_string_equal(
		encode(&scope, CLUSTER, "{\"limit\":7}"), "limit: unknown field of " CLUSTER);
	const char *secret = "envoy.config.cluster.v3.Secret";
	assert_string_equal(encode(&scope, secret, "{\"name\":\"a\"}"), "0a0161");
	proto_pool_free(pool);
}

// Cut off anywhere, and with any byte altered, a set is read or refused.
static void broken_sets_do_no_harm(void **state)
{
	struct lb_err err;
	uint8_t *bytes = malloc(kinds_descriptors_len);
	assert_non_null(bytes);
	size_t n_read = 0, n_refused = 0;
	for (size_t i = 0; i < 2 * kinds_descriptors_len; i++) {
		size_t at = i / 2, len = i % 2 ? at : kinds_descriptors_len;
		memcpy(bytes, kinds_descriptors, kinds_descriptors_len);
		bytes[at] ^= 0x55;
		struct proto_pool *pool = NULL;
		int r = proto_pool_new(bytes, len, &pool, &err);
		n_read += r == 0;
		n_refused += r == -EINVAL;
		assert_true(r == 0 || (r == -EINVAL && *err.text));
		proto_pool_free(pool);
	}
	assert_true(n_read > 100 && n_refused > 100);
	free(bytes);
}

static void without_memory_there_is_no_pool_and_no_leak(void **state)
{
	struct proto_pool *pool = NULL;
	int r;
	ALLOC_FAIL_EACH(r = proto_pool_new(kinds_descriptors, kinds_descriptors_len, &pool, NULL),
		r < 0, proto_pool_free(pool));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_field_is_encoded_as_protobuf_does_it),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(what_nobody_knows_is_left_out_and_told_if_it_may_be),
		cmocka_unit_test(raw_bytes_are_taken_whatever_their_type_is),
		cmocka_unit_test(compiled_types_read_at_run_time_give_the_same_bytes),
		cmocka_unit_test(of_two_sets_the_first_counts),
		cmocka_unit_test(broken_sets_do_no_harm),
		cmocka_unit_test(without_memory_there_is_no_pool_and_no_leak),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
