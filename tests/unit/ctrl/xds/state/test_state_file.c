// SPDX-License-Identifier: Apache-2.0
// The file of what serves: whatever was done to it, it is read whole or not at all.
#include "ctrl/xds/state/state_file.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LISTENER "type.googleapis.com/envoy.config.listener.v3.Listener"
#define CLUSTER "type.googleapis.com/envoy.config.cluster.v3.Cluster"
#define TEXT(s)                                                                                    \
	{                                                                                          \
		s, sizeof(s) - 1                                                                   \
	}

static const struct xds_state_item LISTENERS[] = {
	{.name = TEXT("web"), .version = TEXT("7"), .bytes = TEXT("\x0a\x03web")},
	{.name = TEXT("api"),
		.version = TEXT("8"),
		.constraints = TEXT("\x0a\x00"),
		.bytes = TEXT("b")},
};
static const struct str WILDCARDS[] = {TEXT("\x0a\x01*")};
static const struct xds_state_part PARTS[] = {
	{.server = "ads:1",
		.type_url = LISTENER,
		.items = LISTENERS,
		.n_items = 2,
		.wildcards = WILDCARDS,
		.n_wildcards = 1},
	{.server = "ads:2", .type_url = CLUSTER},
};
static const struct xds_state EMPTY;

static uint8_t *encode(size_t *ret_len)
{
	struct xds_state_image image = {"me", 1700000000, PARTS, 2};
	uint8_t *bytes;
	assert_int_equal(xds_state_encode(&image, &EMPTY, &bytes, ret_len), 0);
	return bytes;
}

static void assert_text(struct str s, const char *text)
{
	assert_true(str_eq(s, str_from(text)));
}

static void ops_91_what_was_written_is_read_again(void **state)
{
	struct xds_state s;
	struct lb_err err;
	size_t len;
	uint8_t *bytes = encode(&len);
	assert_int_equal(xds_state_parse(bytes, len, &s, &err), 0);
	assert_text(s.node_id, "me");
	assert_int_equal(s.written_s, 1700000000);
	assert_int_equal(s.n_sections, 2);
	assert_text(s.sections[0].server, "ads:1");
	assert_text(s.sections[0].type_url, LISTENER);
	assert_text(s.sections[1].server, "ads:2");
	assert_true(xds_state_lists_all(&s.sections[0], (struct str)TEXT("\x0a\x01*")));
	assert_false(xds_state_lists_all(&s.sections[0], (struct str)TEXT("\x0a\x01+")));
	assert_false(xds_state_lists_all(&s.sections[1], (struct str)TEXT("\x0a\x01*")));
	xds_state_fini(&s);
}

static void ops_282_names_that_were_absent_are_read_again(void **state)
{
	const struct str absent[] = {TEXT("\x0a\x02zz"), TEXT("\x0a\x01y"), TEXT("\x0a\x01z")};
	const struct xds_state_part parts[] = {
		{.server = "ads:1", .type_url = LISTENER, .absent = absent, .n_absent = 1},
		{.server = "ads:1", .type_url = CLUSTER, .absent = absent, .n_absent = 3},
	};
	struct xds_state_image image = {"me", 1700000000, parts, 2};
	struct xds_state s, again;
	struct lb_err err;
	uint8_t *bytes;
	size_t len;
	assert_int_equal(xds_state_encode(&image, &EMPTY, &bytes, &len), 0);
	assert_int_equal(bytes[8], 1); // who does not know of them reads the rest
	assert_int_equal(xds_state_parse(bytes, len, &s, &err), 0);
	assert_int_equal(s.n_absent, 4);
	for (int i = 0; i < 3; i++)
		assert_true(xds_state_lacks(&s.sections[1], absent[i]));
	assert_true(xds_state_lacks(&s.sections[0], absent[0]));
	assert_false(xds_state_lacks(&s.sections[0], absent[1]));
	assert_false(xds_state_lacks(&s.sections[1], (struct str)TEXT("\x0a\x01x")));
	assert_false(xds_state_lacks(&s.sections[1], (struct str)TEXT("")));
	const struct xds_state_part silent = {.server = "ads:1"};
	image = (struct xds_state_image){"me", 1700000001, &silent, 1};
	assert_int_equal(xds_state_encode(&image, &s, &bytes, &len), 0);
	assert_int_equal(xds_state_parse(bytes, len, &again, &err), 0);
	assert_true(xds_state_lacks(&again.sections[1], absent[2]));
	xds_state_fini(&s);
	xds_state_fini(&again);
}

static void ops_282_a_file_without_such_names_lacks_nothing(void **state)
{
	struct xds_state s;
	struct lb_err err;
	size_t len;
	uint8_t *bytes = encode(&len);
	assert_int_equal(xds_state_parse(bytes, len, &s, &err), 0);
	assert_int_equal(s.n_absent, 0);
	assert_false(xds_state_lacks(&s.sections[0], (struct str)TEXT("\x0a\x01*")));
	xds_state_fini(&s);
}

static void ops_282_no_more_names_are_read_than_the_bound(void **state)
{
	size_t n = XDS_STATE_MAX_ABSENT + 1, len;
	struct str *names = calloc(n, sizeof(*names));
	assert_non_null(names);
	for (size_t i = 0; i < n; i++)
		names[i] = (struct str)TEXT("\x0a\x01y");
	const struct xds_state_part parts[] = {
		{.server = "ads:1", .type_url = LISTENER, .absent = names, .n_absent = 2},
		{.server = "ads:1", .type_url = CLUSTER, .absent = names, .n_absent = n},
		{.server = "ads:2", .type_url = CLUSTER, .absent = names, .n_absent = 1},
	};
	struct xds_state_image image = {"me", 1700000000, parts, 3};
	struct xds_state s;
	struct lb_err err;
	uint8_t *bytes;
	assert_int_equal(xds_state_encode(&image, &EMPTY, &bytes, &len), 0);
	assert_int_equal(xds_state_parse(bytes, len, &s, &err), 0);
	assert_int_equal(s.n_absent, XDS_STATE_MAX_ABSENT);
	assert_int_equal(s.sections[1].n_absent, XDS_STATE_MAX_ABSENT - 2);
	assert_int_equal(s.sections[2].n_absent, 0);
	xds_state_fini(&s);
	free(names);
}

static void sections_of_a_silent_server_are_taken_over_as_they_are(void **state)
{
	struct xds_state before, after;
	struct lb_err err;
	size_t len;
	uint8_t *bytes = encode(&len);
	assert_int_equal(xds_state_parse(bytes, len, &before, &err), 0);
	const struct xds_state_part parts[] = {{.server = "ads:1"},
		{.server = "ads:2", .type_url = LISTENER}, {.server = "ads:3"}};
	struct xds_state_image image = {"me", 1700000001, parts, 3};
	assert_int_equal(xds_state_encode(&image, &before, &bytes, &len), 0);
	assert_int_equal(xds_state_parse(bytes, len, &after, &err), 0);
	assert_int_equal(after.n_sections, 2);
	assert_true(str_eq(after.sections[0].all, before.sections[0].all));
	assert_text(after.sections[1].type_url, LISTENER);
	xds_state_fini(&before);
	xds_state_fini(&after);
}

static int parse_copy(const uint8_t *bytes, size_t len, struct lb_err *err)
{
	struct xds_state s;
	uint8_t *copy = malloc(len + 1); // so that a sanitizer sees whoever reads beyond
	assert_non_null(copy);
	memcpy(copy, bytes, len);
	copy = realloc(copy, len ? len : 1);
	assert_non_null(copy);
	err->text[0] = '\0';
	int rc = xds_state_parse(copy, len, &s, err);
	if (rc)
		assert_true(!s.bytes && s.n_sections == 0);
	xds_state_fini(&s);
	return rc;
}

static void ops_92_each_truncation_is_refused(void **state)
{
	struct lb_err err;
	size_t len;
	uint8_t *bytes = encode(&len);
	assert_int_equal(parse_copy(bytes, len, &err), 0);
	for (size_t n = 0; n < len; n++) {
		assert_int_equal(parse_copy(bytes, n, &err), -EINVAL);
		assert_true(err.text[0]);
	}
	free(bytes);
}

static void ops_92_each_flipped_bit_is_noticed(void **state)
{
	struct lb_err err;
	size_t len;
	uint8_t *bytes = encode(&len);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(parse_copy(bytes, len, &err), -EINVAL);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(parse_copy(bytes, len, &err), 0);
	free(bytes);
}

static void ops_92_another_version_is_refused_by_its_number(void **state)
{
	struct lb_err err;
	size_t len;
	uint8_t *bytes = encode(&len);
	bytes[8] = XDS_STATE_VERSION + 1;
	assert_int_equal(parse_copy(bytes, len, &err), -EINVAL);
	assert_non_null(strstr(err.text, "version 2"));
	free(bytes);
}

// Only lengths are looked at: nothing of that size is made.
static void ops_93_what_is_too_large_is_not_made(void **state)
{
	const struct xds_state_item large = {
		.name = TEXT("web"), .bytes = {NULL, XDS_STATE_MAX_LEN}};
	const struct xds_state_part part = {
		.server = "ads:1", .type_url = LISTENER, .items = &large, .n_items = 1};
	struct xds_state_image image = {"me", 1700000000, &part, 1};
	uint8_t *bytes = NULL;
	size_t len;
	assert_int_equal(xds_state_encode(&image, &EMPTY, &bytes, &len), -EFBIG);
	assert_true(!bytes && len > XDS_STATE_MAX_LEN);
}

RUN_SUITE("xds/state_file", cmocka_unit_test(ops_91_what_was_written_is_read_again),
	cmocka_unit_test(ops_282_names_that_were_absent_are_read_again),
	cmocka_unit_test(ops_282_a_file_without_such_names_lacks_nothing),
	cmocka_unit_test(ops_282_no_more_names_are_read_than_the_bound),
	cmocka_unit_test(sections_of_a_silent_server_are_taken_over_as_they_are),
	cmocka_unit_test(ops_92_each_truncation_is_refused),
	cmocka_unit_test(ops_92_each_flipped_bit_is_noticed),
	cmocka_unit_test(ops_92_another_version_is_refused_by_its_number),
	cmocka_unit_test(ops_93_what_is_too_large_is_not_made))
