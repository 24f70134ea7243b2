// SPDX-License-Identifier: Apache-2.0
// Decoding of foreign bytes: the bound on nesting, and that cut or changed bytes do no harm.
#include "envoy/config/core/v3/base.pb-c.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "lb/base/rand.h"
#include "proto/wire.h"
#include "tests/support/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const ProtobufCMessageDescriptor *const constraints =
	&envoy__service__discovery__v3__dynamic_parameter_constraints__descriptor;

// `depth` messages in each other, the outermost counted, through not_constraints (4). The bytes are
// built from the innermost outwards, so they stand at the end of `room`.
static const uint8_t *nested(uint8_t *room, size_t size, unsigned depth, size_t *ret_len)
{
	size_t len = 0;
	for (unsigned i = 1; i < depth; i++) {
		const struct proto_head head = proto_head_of(4, len);
		len += head.len;
		memcpy(room + size - len, head.bytes, head.len);
	}
	*ret_len = len;
	return room + size - len;
}

static bool is_accepted(unsigned depth)
{
	static uint8_t room[1 << 21];
	size_t len;
	const uint8_t *bytes = nested(room, sizeof(room), depth, &len);
	ProtobufCMessage *m = proto_unpack(constraints, bytes, len, NULL);
	if (!m)
		return false;
	protobuf_c_message_free_unpacked(m, NULL);
	return true;
}

static void nesting_is_bounded(void **state)
{
	assert_true(is_accepted(1));
	assert_true(is_accepted(PROTO_DEPTH_MAX));
	assert_false(is_accepted(PROTO_DEPTH_MAX + 1));
	assert_false(is_accepted(300000)); // would need far more than the stack
}

static void empty_bytes_are_an_empty_message(void **state)
{
	ProtobufCMessage *m = proto_unpack(constraints, NULL, 0, NULL);
	assert_non_null(m);
	protobuf_c_message_free_unpacked(m, NULL);
}

// WF-01.
static void later_values_win_and_unknown_fields_are_kept(void **state)
{
	static const uint8_t bytes[] = {0x0a, 1, 'a', 0x0a, 1, 'b', // id, twice
		0x22, 3, 0x0a, 1, 'r', 0x22, 3, 0x12, 1, 'z', // locality in two parts
		0xfa, 0x3e, 1, 'x', // field 1007
		0x3a, 1, 'v', 0x42, 0}; // user_agent_version, then user_agent_build_version
	Envoy__Config__Core__V3__Node *n = (Envoy__Config__Core__V3__Node *)proto_unpack(
		&envoy__config__core__v3__node__descriptor, bytes, sizeof(bytes), NULL);
	assert_non_null(n);
	assert_string_equal(n->id, "b");
	assert_string_equal(n->locality->region, "r");
	assert_string_equal(n->locality->zone, "z");
	assert_int_equal(n->base.n_unknown_fields, 1);
	assert_int_equal(n->user_agent_version_type_case,
		ENVOY__CONFIG__CORE__V3__NODE__USER_AGENT_VERSION_TYPE_USER_AGENT_BUILD_VERSION);
	protobuf_c_message_free_unpacked(&n->base, NULL);
}

static size_t sample(uint8_t *bytes)
{
	static const uint8_t response[] = {0x0a, 1, '7', 0x12, 9, 0x0a, 3, 'a', '/', 'b', 0x12, 2,
		0x08, 1, 0x18, 1, 0x22, 1, 't', 0x2a, 1, 'n', 0x32, 3, 0x0a, 1, 'c', 0x3a, 13, 0x0a,
		7, 0x0a, 1, 'x', 0x12, 2, 0x22, 0, 0x12, 2, 0x08, 5};
	memcpy(bytes, response, sizeof(response));
	return sizeof(response);
}

static void cut_and_changed_bytes_do_no_harm(void **state)
{
	struct rand rand;
	rand_init(&rand, 1);
	unsigned n_accepted = 0;
	for (int round = 0; round < 20000; round++) {
		uint8_t room[128];
		size_t len = sample(room);
		for (uint64_t n = round ? rand_below(&rand, 4) : 0; n > 0; n--)
			room[rand_below(&rand, len)] = (uint8_t)rand_u64(&rand);
		len -= round % 4 == 3 ? rand_below(&rand, len) : 0;
		uint8_t *bytes =
			malloc(len); // its own block, so that a sanitizer sees a read beyond
		assert_non_null(bytes);
		memcpy(bytes, room, len);
		ProtobufCMessage *m =
			proto_unpack(&envoy__service__discovery__v3__discovery_response__descriptor,
				bytes, len, NULL);
		free(bytes);
		n_accepted += m != NULL;
		assert_true(m || round > 0);
		if (m)
			protobuf_c_message_free_unpacked(m, NULL);
	}
	assert_in_range(n_accepted, 1000, 19999);
}

// TH-136: 5 fields, one of them in an Any, and what is in that.
static void th_136_fields_are_counted_wherever_they_are(void **state)
{
	static const uint8_t bytes[] = {0x0a, 1, '7', // version_info
		0x12, 21, 0x12, 19, '1', '2', '3', '4', '5', '6', '7', '8', '9', '0', '1', '2', '3',
		'4', '5', '6', '7', '8', '9', // resources[0], which is an Any of 19 bytes
		0xf8, 0x3e, 1, // field 1007
		0x2a, 1, 'n'}; // nonce
	for (size_t most = 0; most < 10; most++) {
		struct lb_err err = {""};
		size_t left = most;
		void *m = proto_unpack_within(
			&envoy__service__discovery__v3__discovery_response__descriptor, bytes,
			sizeof(bytes), &left, &err);
		assert_int_equal(m != NULL, most >= 7);
		if (m)
			assert_int_equal(left, most - 7);
		else
			assert_non_null(strstr(err.text, "fields"));
		if (most == 3)
			assert_string_equal(err.text, "resources[0]: value: more than 3 fields");
		proto_free(m);
	}
}

static void fields_come_one_by_one_as_they_stand_in_the_bytes(void **state)
{
	static const uint8_t bytes[] = {0x08, 0x96, 0x01, // 1: varint
		0x12, 2, 'a', 'b', // 2: text
		0xfd, 0x3e, 1, 2, 3, 4, // 1007: four bytes
		0x1a, 0, // 3: empty
		0x21, 1, 2, 3, 4, 5, 6, 7, 8}; // 4: eight bytes
	static const struct {
		uint32_t number;
		unsigned type;
		size_t at, len;
	} wanted[] = {{1, 0, 1, 2}, {2, 2, 5, 2}, {1007, 5, 9, 4}, {3, 2, 15, 0}, {4, 1, 16, 8}};
	const uint8_t *p = bytes, *end = bytes + sizeof(bytes);
	struct proto_field f;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		assert_true(proto_field_next(&p, end, &f));
		assert_int_equal(f.number, wanted[i].number);
		assert_int_equal(f.type, wanted[i].type);
		assert_ptr_equal(f.bytes, bytes + wanted[i].at);
		assert_int_equal(f.len, wanted[i].len);
	}
	assert_ptr_equal(p, end);
	assert_false(proto_field_next(&p, end, &f));
	// One byte less, and each last field is none.
	for (size_t len = 1; len < sizeof(bytes); len++) {
		p = bytes;
		while (proto_field_next(&p, bytes + len, &f))
			assert_true(f.bytes + f.len <= bytes + len);
		assert_true(p <= bytes + len);
	}
	static const uint8_t groups[] = {0x0b};
	p = groups;
	assert_false(proto_field_next(&p, groups + 1, &f));
}

static void what_is_no_text_is_named_with_its_path(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} rows[] = {
		{"\x0a\x02"
		 "a",
			4, "id: holds a NUL"},
		{"\x0a\x02\xc3\x28", 4, "id: not UTF-8 text"},
		{"\x22\x03\x12\x01\xff", 5, "locality: zone: not UTF-8 text"},
		{"\x52\x01x\x52\x01y\x52\x01\xff", 9, "client_features[2]: not UTF-8 text"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {""};
		assert_null(proto_unpack(&envoy__config__core__v3__node__descriptor,
			(const uint8_t *)rows[i].bytes, rows[i].len, &err));
		assert_string_equal(err.text, rows[i].text);
	}
}

static void a_head_is_read_as_it_was_written(void **state)
{
	static const uint32_t numbers[] = {1, 15, 16, 2047, 2048, (1U << 29) - 1};
	static const size_t lens[] = {0, 1, 127, 128, 16383, 16384, 70000};
	static const uint8_t room[PROTO_HEAD_MAX + 70000];
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
			uint8_t bytes[sizeof(room)];
			const struct proto_head head = proto_head_of(numbers[i], lens[k]);
			struct proto_field f;
			const uint8_t *p = bytes;
			assert_true(head.len <= PROTO_HEAD_MAX);
			memcpy(bytes, room, sizeof(room));
			memcpy(bytes, head.bytes, head.len);
			assert_true(proto_field_next(&p, bytes + head.len + lens[k], &f));
			assert_int_equal(f.number, numbers[i]);
			assert_int_equal(f.len, lens[k]);
			assert_ptr_equal(f.bytes, bytes + head.len);
		}
	uint8_t longest[PROTO_VARINT_MAX];
	assert_int_equal(proto_varint_write(UINT64_MAX, longest), PROTO_VARINT_MAX);
}

RUN_SUITE("proto/wire", cmocka_unit_test(nesting_is_bounded),
	cmocka_unit_test(empty_bytes_are_an_empty_message),
	cmocka_unit_test(later_values_win_and_unknown_fields_are_kept),
	cmocka_unit_test(cut_and_changed_bytes_do_no_harm),
	cmocka_unit_test(th_136_fields_are_counted_wherever_they_are),
	cmocka_unit_test(fields_come_one_by_one_as_they_stand_in_the_bytes),
	cmocka_unit_test(what_is_no_text_is_named_with_its_path),
	cmocka_unit_test(a_head_is_read_as_it_was_written))
