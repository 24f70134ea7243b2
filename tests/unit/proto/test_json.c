// SPDX-License-Identifier: Apache-2.0
// protobuf's JSON form: what is read, what is refused and where, and that writing gives it back.
#include "envoy/config/cluster/v3/cluster.pb-c.h"
#include "envoy/config/core/v3/base.pb-c.h"
#include "envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "envoy/config/listener/v3/listener.pb-c.h"
#include "envoy/config/route/v3/route.pb-c.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb-c.h"
#include "envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3/client_side_weighted_round_robin.pb-c.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "google/protobuf/wrappers.pb-c.h"
#include "lb/base/err.h"
#include "proto/json.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "xds/type/v3/typed_struct.pb-c.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef Envoy__Config__Cluster__V3__Cluster cluster_message;
typedef Envoy__Config__Endpoint__V3__ClusterLoadAssignment assignment_message;

static const ProtobufCMessageDescriptor *const cluster_desc =
	&envoy__config__cluster__v3__cluster__descriptor;
static const ProtobufCMessageDescriptor *const assignment_desc =
	&envoy__config__endpoint__v3__cluster_load_assignment__descriptor;

static void *parse(const ProtobufCMessageDescriptor *desc, const char *text)
{
	ProtobufCMessage *m = NULL;
	struct lb_err err = {""};
	int r = proto_json_parse(desc, text, strlen(text), &m, &err);
	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
	return m;
}

static void drop(void *m)
{
	protobuf_c_message_free_unpacked(m, NULL);
}

// Reads, writes, and compares with what is expected (JSON, so that spacing does not count).
static void check_gives(
	const ProtobufCMessageDescriptor *desc, const char *text, const char *expected)
{
	ProtobufCMessage *m = parse(desc, text);
	json_t *got = proto_json_encode(m);
	json_t *want = json_loads(expected, JSON_DECODE_ANY, NULL);
	assert_non_null(got);
	assert_non_null(want);
	if (!json_equal(got, want)) {
		char *dump = json_dumps(got, JSON_ENCODE_ANY);
		print_error("got      %s\nexpected %s\n", dump, expected);
		free(dump);
		fail();
	}
	json_decref(got);
	json_decref(want);
	drop(m);
}

static void check_same(const ProtobufCMessageDescriptor *desc, const char *text)
{
	check_gives(desc, text, text);
}

static void check_refused(
	const ProtobufCMessageDescriptor *desc, const char *text, const char *expected)
{
	ProtobufCMessage *m = NULL;
	struct lb_err err = {""};
	assert_int_equal(proto_json_parse(desc, text, strlen(text), &m, &err), -EINVAL);
	assert_null(m);
	assert_string_equal(err.text, expected);
}

static void names_are_taken_in_both_spellings(void **state)
{
	cluster_message *c = parse(cluster_desc, "{\"name\":\"a\",\"connectTimeout\":\"1.5s\","
						 "\"eds_cluster_config\":{\"serviceName\":\"s\"}}");
	assert_string_equal(c->name, "a");
	assert_int_equal(c->connect_timeout->seconds, 1);
	assert_int_equal(c->connect_timeout->nanos, 500000000);
	assert_string_equal(c->eds_cluster_config->service_name, "s");
	drop(c);
}

static void one_field_in_both_spellings_is_refused(void **state)
{
	check_refused(cluster_desc, "{\"lb_policy\":0,\"lbPolicy\":0}",
		"lbPolicy: given twice, also as lb_policy");
}

static void unknown_field_names_its_path(void **state)
{
	check_refused(assignment_desc,
		"{\"endpoints\":[{},{\"lbEndpoints\":[{\"endpoint\":{\"adress\":{}}}]}]}",
		"endpoints[1].lbEndpoints[0].endpoint.adress: unknown field of "
		"envoy.config.endpoint.v3.Endpoint");
}

static void wrong_type_names_its_path(void **state)
{
	check_refused(assignment_desc,
		"{\"endpoints\":[{\"lbEndpoints\":[{},{},{\"endpoint\":{\"address\":"
		"{\"socketAddress\":{\"portValue\":\"http\"}}}}]}]}",
		"endpoints[0].lbEndpoints[2].endpoint.address.socketAddress.portValue: "
		"not a number");
	check_refused(assignment_desc, "{\"endpoints\":{}}", "endpoints: not a list");
	check_refused(assignment_desc, "{\"policy\":[]}", "policy: not an object");
	check_refused(assignment_desc, "{\"clusterName\":7}", "clusterName: not text");
	check_refused(assignment_desc, "{\"endpoints\":[null]}", "endpoints[0]: null in a list");
	check_refused(assignment_desc, "[]", "not an object");
	check_refused(&envoy__config__route__v3__route_configuration__descriptor,
		"{\"ignorePortInHostMatching\":1}", "ignorePortInHostMatching: not true or false");
	check_refused(cluster_desc, "{\"typedExtensionProtocolOptions\":{\"a\":null}}",
		"typedExtensionProtocolOptions.a: null in a map");
	check_refused(cluster_desc, "{\"typedExtensionProtocolOptions\":[]}",
		"typedExtensionProtocolOptions: not an object");
}

static void syntax_error_names_line_and_column(void **state)
{
	check_refused(cluster_desc, "{\n  \"name\": \"a\"\n  \"type\": \"EDS\"\n}",
		"line 3, column 8: '}' expected near '\"type\"'");
	check_refused(cluster_desc, "{\"name\":\"a\",\"name\":\"b\"}",
		"line 1, column 18: duplicate object key near '\"name\"'");
	struct lb_err err;
	ProtobufCMessage *m;
	assert_int_equal(proto_json_parse(cluster_desc, "", 0, &m, &err), -EINVAL);
}

static void null_is_unset(void **state)
{
	cluster_message *c = parse(cluster_desc,
		"{\"name\":null,\"circuitBreakers\":null,\"healthChecks\":null,\"type\":null}");
	assert_string_equal(c->name, "");
	assert_null(c->circuit_breakers);
	assert_int_equal(c->cluster_discovery_type_case, 0);
	drop(c);
}

static void enums_are_taken_by_name_and_number(void **state)
{
	check_gives(cluster_desc, "{\"type\":3,\"lbPolicy\":\"RING_HASH\"}",
		"{\"type\":\"EDS\",\"lbPolicy\":\"RING_HASH\"}");
	check_same(cluster_desc, "{\"lbPolicy\":77}"); // proto3 enums are open
	check_refused(cluster_desc, "{\"lbPolicy\":\"BEST\"}",
		"lbPolicy: \"BEST\" is not a value of LbPolicy");
	check_refused(cluster_desc, "{\"lbPolicy\":2147483648}", "lbPolicy: out of range");
}

static void numbers_are_taken_as_number_and_text(void **state)
{
	const ProtobufCMessageDescriptor *u32 = &google__protobuf__uint32_value__descriptor;
	const ProtobufCMessageDescriptor *i32 = &google__protobuf__int32_value__descriptor;
	check_gives(u32, "\"4294967295\"", "4294967295");
	check_gives(u32, "1e3", "1000");
	check_gives(u32, "\"1.0e1\"", "10");
	check_gives(u32, "-0", "0");
	check_gives(i32, "-2147483648", "-2147483648");
	check_refused(u32, "4294967296", "out of range");
	check_refused(u32, "-1", "out of range");
	check_refused(u32, "1e300", "out of range");
	check_refused(u32, "1.5", "not a whole number");
	check_refused(u32, "\"NaN\"", "not a whole number");
	check_refused(u32, "\"\"", "not a number");
	check_refused(u32, "\" 1\"", "not a number");
	check_refused(u32, "\"0x10\"", "not a number");
	check_refused(u32, "\"1-1\"", "not a number");
	check_refused(u32, "true", "not a number");
	check_refused(i32, "2147483648", "out of range");
	check_refused(i32, "-2147483649", "out of range");
}

static void wide_numbers_are_written_as_text(void **state)
{
	const ProtobufCMessageDescriptor *u64 = &google__protobuf__uint64_value__descriptor;
	const ProtobufCMessageDescriptor *i64 = &google__protobuf__int64_value__descriptor;
	check_same(u64, "\"18446744073709551615\"");
	check_gives(u64, "5", "\"5\"");
	check_same(i64, "\"-9223372036854775808\"");
	check_refused(u64, "\"18446744073709551616\"", "out of range");
	check_refused(i64, "\"9223372036854775808\"", "out of range");
	check_refused(i64, "\"-9223372036854775809\"", "out of range");
}

static void floats_come_back_as_they_were_written(void **state)
{
	const ProtobufCMessageDescriptor *f64 = &google__protobuf__double_value__descriptor;
	const ProtobufCMessageDescriptor *f32 = &google__protobuf__float_value__descriptor;
	check_same(f64, "0.1");
	check_same(f32, "0.1");
	check_same(f64, "\"NaN\"");
	check_same(f64, "\"-Infinity\"");
	check_same(f32, "\"Infinity\"");
	check_gives(f64, "\"2.5e-3\"", "0.0025");
	check_refused(f32, "1e39", "out of range");
	check_refused(f64, "\"1e999\"", "out of range");
	check_refused(f64, "\"inf\"", "not a number");
}

static void unset_wrapper_differs_from_zero(void **state)
{
	const char *zero = "{\"endpoints\":[{\"loadBalancingWeight\":0},{}]}";
	assignment_message *a = parse(assignment_desc, zero);
	assert_non_null(a->endpoints[0]->load_balancing_weight);
	assert_int_equal(a->endpoints[0]->load_balancing_weight->value, 0);
	assert_null(a->endpoints[1]->load_balancing_weight);
	drop(a);
	check_same(assignment_desc, zero);
	check_refused(assignment_desc, "{\"endpoints\":[{\"loadBalancingWeight\":{\"value\":1}}]}",
		"endpoints[0].loadBalancingWeight: not a number");
}

static void bytes_are_base64(void **state)
{
	const ProtobufCMessageDescriptor *bytes = &google__protobuf__bytes_value__descriptor;
	check_same(bytes, "\"\"");
	check_same(bytes, "\"AA==\"");
	check_same(bytes, "\"AAE=\"");
	check_same(bytes, "\"+/8A\"");
	check_gives(bytes, "\"-_8A\"", "\"+/8A\"");
	check_gives(bytes, "\"AAE\"", "\"AAE=\"");
	check_refused(bytes, "\"A\"", "not text in base64");
	check_refused(bytes, "\"A=\"", "not text in base64");
	check_refused(bytes, "\"AA=\"", "not text in base64");
	check_refused(bytes, "\"A*==\"", "not text in base64");
}

static void durations_have_their_own_form(void **state)
{
	const ProtobufCMessageDescriptor *d = &google__protobuf__duration__descriptor;
	check_same(d, "\"0s\"");
	check_same(d, "\"1.500s\"");
	check_same(d, "\"-0.000001s\"");
	check_same(d, "\"315576000000s\"");
	check_gives(d, "\"1.5s\"", "\"1.500s\"");
	check_gives(d, "\"-2.000000001s\"", "\"-2.000000001s\"");
	static const char *const bad[] = {"\"1\"", "\"s\"", "\"1.s\"", "\".5s\"",
		"\"1.0000000001s\"", "\"315576000001s\"", "\"315576000000.1s\"", "\"+1s\"",
		"\"1s \"", "1", "\"1ms\"", "\"9999999999999999999999s\""};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_refused(d, bad[i], "not a duration like \"1.5s\"");
}

static void times_have_their_own_form(void **state)
{
	const ProtobufCMessageDescriptor *t = &google__protobuf__timestamp__descriptor;
	check_same(t, "\"1970-01-01T00:00:00Z\"");
	check_same(t, "\"2024-02-29T23:59:59.123Z\"");
	check_same(t, "\"0001-01-01T00:00:00Z\"");
	check_same(t, "\"9999-12-31T23:59:59.999999999Z\"");
	check_gives(t, "\"2026-01-01T01:30:00+02:00\"", "\"2025-12-31T23:30:00Z\"");
	Google__Protobuf__Timestamp *known = parse(t, "\"2026-01-29T17:48:45Z\"");
	assert_int_equal(known->seconds, 1769708925);
	drop(known);
	static const char *const bad[] = {"\"2026-02-29T00:00:00Z\"", "\"2026-01-01T24:00:00Z\"",
		"\"2026-01-01 00:00:00Z\"", "\"2026-01-01T00:00:00\"", "\"0000-01-01T00:00:00Z\"",
		"\"0001-01-01T00:00:00+01:00\"", "\"2026-01-01T00:00:00Zx\"", "7"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_refused(t, bad[i], "not a time like \"2026-01-29T17:48:45Z\"");
}

static void any_json_is_a_value(void **state)
{
	check_same(&google__protobuf__struct__descriptor,
		"{\"a\":1.5,\"b\":[true,null,\"x\",{}],\"c\":{\"d\":[[]]},\"e\":null}");
	check_same(&google__protobuf__value__descriptor, "null");
	check_same(&google__protobuf__list_value__descriptor, "[[],{},\"\"]");
	check_refused(&google__protobuf__struct__descriptor, "[]", "not an object");
}

static void null_of_a_value_field_is_a_value(void **state)
{
	Google__Protobuf__Struct *s = parse(&google__protobuf__struct__descriptor, "{\"a\":null}");
	assert_int_equal(s->n_fields, 1);
	assert_int_equal(s->fields[0]->value->kind_case, GOOGLE__PROTOBUF__VALUE__KIND_NULL_VALUE);
	drop(s);
}

static void maps_are_objects(void **state)
{
	check_same(&envoy__config__core__v3__metadata__descriptor,
		"{\"filterMetadata\":{\"envoy.lb\":{\"canary\":true},\"\":{}}}");
}

static void two_members_of_a_oneof_are_refused(void **state)
{
	check_refused(&envoy__config__route__v3__route_configuration__descriptor,
		"{\"virtualHosts\":[{\"routes\":[{\"match\":{\"prefix\":\"/\",\"path\":\"/"
		"a\"}}]}]}",
		"virtualHosts[0].routes[0].match.path: only one of this and prefix may be set");
	check_same(&envoy__config__route__v3__route_match__descriptor, "{\"prefix\":\"\"}");
}

// TP2-C09: "" is set, and is kept apart from unset.
static void empty_text_in_a_oneof_is_set(void **state)
{
	const ProtobufCMessageDescriptor *desc =
		&envoy__service__discovery__v3__dynamic_parameter_constraints__descriptor;
	const char *text = "{\"constraint\":{\"key\":\"env\",\"value\":\"\"}}";
	ProtobufCMessage *m = parse(desc, text);
	uint8_t bytes[64];
	size_t len = protobuf_c_message_pack(m, bytes);
	assert_int_equal(len, 9);
	assert_memory_equal(bytes + 7, "\x12\x00", 2);
	drop(m);
	check_same(desc, text);
}

static void any_is_written_out_by_its_type(void **state)
{
	static const char text[] =
		"{\"name\":\"web\",\"apiListener\":{\"apiListener\":{"
		"\"@type\":\"type.googleapis.com/envoy.extensions.filters.network."
		"http_connection_manager.v3.HttpConnectionManager\","
		"\"rds\":{\"configSource\":{\"ads\":{}},\"routeConfigName\":\"r\"},"
		"\"httpFilters\":[{\"name\":\"router\",\"typedConfig\":{\"@type\":"
		"\"type.googleapis.com/envoy.extensions.filters.http.router.v3.Router\"}}]}}}";
	check_same(&envoy__config__listener__v3__listener__descriptor, text);
	Envoy__Config__Listener__V3__Listener *l =
		parse(&envoy__config__listener__v3__listener__descriptor, text);
	Google__Protobuf__Any *any = l->api_listener->api_listener;
	Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__HttpConnectionManager *hcm =
		envoy__extensions__filters__network__http_connection_manager__v3__http_connection_manager__unpack(
			NULL, any->value.len, any->value.data);
	assert_non_null(hcm);
	assert_string_equal(hcm->rds->route_config_name, "r");
	drop(hcm);
	drop(l);
}

static void any_of_a_well_known_type_has_a_value(void **state)
{
	const ProtobufCMessageDescriptor *any = &google__protobuf__any__descriptor;
	check_same(any, "{\"@type\":\"type.googleapis.com/google.protobuf.Duration\","
			"\"value\":\"3s\"}");
	check_same(any, "{\"@type\":\"a/google.protobuf.Any\",\"value\":{\"@type\":"
			"\"b/google.protobuf.Struct\",\"value\":{\"x\":[1.0]}}}");
	check_same(any, "{}");
	check_refused(any, "{\"@type\":\"a/google.protobuf.Duration\",\"seconds\":3}",
		"google.protobuf.Duration takes just \"@type\" and \"value\"");
}

static void any_without_a_known_type_is_refused(void **state)
{
	const ProtobufCMessageDescriptor *any = &google__protobuf__any__descriptor;
	check_refused(any, "{\"name\":\"x\"}", "@type: missing, or not text");
	check_refused(any, "{\"@type\":1}", "@type: missing, or not text");
	check_refused(any, "{\"@type\":\"a/b.C\"}", "@type: unknown type a/b.C");
	check_refused(cluster_desc,
		"{\"clusterType\":{\"typedConfig\":{\"@type\":"
		"\"x/envoy.extensions.clusters.aggregate.v3.ClusterConfig\",\"clusters\":[1]}}}",
		"clusterType.typedConfig.clusters[0]: not text");
}

static void any_that_is_not_understood_shows_its_bytes(void **state)
{
	Google__Protobuf__Any any;
	google__protobuf__any__init(&any);
	static char unknown[] = "a/b.C", broken[] = "a/envoy.config.cluster.v3.Cluster";
	static uint8_t bytes[] = {0x0a, 0xff};
	any.value = (ProtobufCBinaryData){sizeof(bytes), bytes};
	static char *const urls[] = {unknown, broken};
	for (size_t i = 0; i < 2; i++) {
		any.type_url = urls[i];
		json_t *got = proto_json_encode(&any.base);
		assert_string_equal(json_string_value(json_object_get(got, "value")), "Cv8=");
		json_decref(got);
	}
}

static void text_that_is_not_utf8_is_shown(void **state)
{
	cluster_message c;
	envoy__config__cluster__v3__cluster__init(&c);
	static char name[] = "a\xff\xc3z";
	c.name = name;
	json_t *got = proto_json_encode(&c.base);
	assert_string_equal(json_string_value(json_object_get(got, "name")), "a??z");
	json_decref(got);
}

static void typed_struct_keeps_its_json(void **state)
{
	check_same(&xds__type__v3__typed_struct__descriptor,
		"{\"typeUrl\":\"x/y.Z\",\"value\":{\"choice_count\":3.0}}");
}

static void float_field_is_not_widened(void **state)
{
	check_same(
		&envoy__extensions__load_balancing_policies__client_side_weighted_round_robin__v3__client_side_weighted_round_robin__descriptor,
		"{\"errorUtilizationPenalty\":0.3,\"blackoutPeriod\":\"10s\"}");
}

static const char rich[] =
	"{\"name\":\"c\",\"connectTimeout\":\"1s\",\"typedExtensionProtocolOptions\":{\"é\":{\"@"
	"type\":"
	"\"type.googleapis.com/google.protobuf.Struct\",\"value\":{\"a\":[\"b\",{}]}}},"
	"\"loadAssignment\":{\"endpoints\":[{\"priority\":1},{\"loadBalancingWeight\":2}]},"
	"\"lrsReportEndpointMetrics\":[\"x\",\"y\"]}";

// From JSON that is parsed: jansson's own reader aborts when some of its allocations fail.
static void reading_gives_up_without_memory(void **state)
{
	json_t *json = json_loads(rich, 0, NULL);
	ProtobufCMessage *m = NULL;
	struct lb_err err;
	int r;
	ALLOC_FAIL_EACH(r = proto_json_decode(cluster_desc, json, &m, &err), r == -ENOMEM, drop(m));
	json_decref(json);
}

// Without an Any: one that cannot be decoded, for whatever reason, is shown as bytes.
static void writing_gives_up_without_memory(void **state)
{
	ProtobufCMessage *m = parse(cluster_desc,
		"{\"name\":\"é\",\"connectTimeout\":\"1s\",\"lbPolicy\":\"RANDOM\","
		"\"metadata\":{\"filterMetadata\":{\"a\":{\"b\":[1,\"c\",{}]}}},"
		"\"lrsReportEndpointMetrics\":[\"x\",\"y\"]}");
	json_t *json;
	ALLOC_FAIL_EACH(json = proto_json_encode(m), !json, json_decref(json));
	drop(m);
}

// n lists or objects in each other, as text.
static void nest(char *text, size_t room, const char *open, const char *close, int n)
{
	text[0] = '\0';
	for (int i = 0; i < n; i++)
		strncat(text, open, room - strlen(text) - 1);
	strncat(text, "{}", room - strlen(text) - 1);
	for (int i = 0; i < n; i++)
		strncat(text, close, room - strlen(text) - 1);
}

static void deep_nesting_is_refused(void **state)
{
	const ProtobufCMessageDescriptor *desc =
		&envoy__service__discovery__v3__dynamic_parameter_constraints__descriptor;
	static char text[1 << 16];
	struct lb_err err;
	ProtobufCMessage *m = NULL;
	nest(text, sizeof(text), "{\"notConstraints\":", "}", 99);
	drop(parse(desc, text));
	nest(text, sizeof(text), "{\"notConstraints\":", "}", 100);
	assert_int_equal(proto_json_parse(desc, text, strlen(text), &m, &err), -EINVAL);
	assert_non_null(strstr(err.text, "nested too deeply"));
	nest(text, sizeof(text), "[", "]", 1500);
	assert_int_equal(proto_json_parse(&google__protobuf__value__descriptor, text, strlen(text),
				 &m, &err),
		-EINVAL);
	assert_non_null(strstr(err.text, "nested too deeply"));
}

// What is set in the middle of a list is freed when a later element is wrong (for the sanitizers).
static void half_built_messages_are_freed(void **state)
{
	check_refused(assignment_desc,
		"{\"clusterName\":\"c\",\"endpoints\":[{\"locality\":{\"region\":\"r\"},"
		"\"lbEndpoints\":[{\"endpoint\":{\"hostname\":\"h\"}},{\"endpointName\":\"n\"},"
		"{\"metadata\":{\"filterMetadata\":{\"a\":{\"b\":\"c\"},\"d\":7}}}]}]}",
		"endpoints[0].lbEndpoints[2].metadata.filterMetadata.d: not an object");
	check_refused(&envoy__config__core__v3__node__descriptor,
		"{\"clientFeatures\":[\"a\",\"b\",3]}", "clientFeatures[2]: not text");
}

RUN_SUITE("proto/json", cmocka_unit_test(names_are_taken_in_both_spellings),
	cmocka_unit_test(one_field_in_both_spellings_is_refused),
	cmocka_unit_test(unknown_field_names_its_path), cmocka_unit_test(wrong_type_names_its_path),
	cmocka_unit_test(syntax_error_names_line_and_column), cmocka_unit_test(null_is_unset),
	cmocka_unit_test(enums_are_taken_by_name_and_number),
	cmocka_unit_test(numbers_are_taken_as_number_and_text),
	cmocka_unit_test(wide_numbers_are_written_as_text),
	cmocka_unit_test(floats_come_back_as_they_were_written),
	cmocka_unit_test(unset_wrapper_differs_from_zero), cmocka_unit_test(bytes_are_base64),
	cmocka_unit_test(durations_have_their_own_form),
	cmocka_unit_test(times_have_their_own_form), cmocka_unit_test(any_json_is_a_value),
	cmocka_unit_test(null_of_a_value_field_is_a_value), cmocka_unit_test(maps_are_objects),
	cmocka_unit_test(two_members_of_a_oneof_are_refused),
	cmocka_unit_test(empty_text_in_a_oneof_is_set),
	cmocka_unit_test(any_is_written_out_by_its_type),
	cmocka_unit_test(any_of_a_well_known_type_has_a_value),
	cmocka_unit_test(any_without_a_known_type_is_refused),
	cmocka_unit_test(any_that_is_not_understood_shows_its_bytes),
	cmocka_unit_test(text_that_is_not_utf8_is_shown),
	cmocka_unit_test(typed_struct_keeps_its_json), cmocka_unit_test(float_field_is_not_widened),
	cmocka_unit_test(reading_gives_up_without_memory),
	cmocka_unit_test(writing_gives_up_without_memory),
	cmocka_unit_test(deep_nesting_is_refused), cmocka_unit_test(half_built_messages_are_freed))
