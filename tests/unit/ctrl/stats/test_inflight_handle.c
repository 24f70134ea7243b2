// SPDX-License-Identifier: Apache-2.0
// How requests and connections are named (OPS-191).
#include "ctrl/stats/inflight_handle.h"
#include "tests/support/check.h"

static void what_is_printed_is_read_again(void **state)
{
	static const struct {
		enum lb_inflight_kind kind;
		struct lb_inflight_handle handle;
		const char *text;
	} rows[] = {
		{LB_INFLIGHT_REQUESTS, {0x1c3a5e7b9d0, 0x2f, 0, false}, "0-r2f-1c3a5e7b9d0"},
		{LB_INFLIGHT_CONNS, {1, 0, 12, false}, "12-c0-1"},
		{LB_INFLIGHT_CONNS, {UINT64_MAX, UINT32_MAX, UINT16_MAX, true},
			"65535-bffffffff-ffffffffffffffff"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[INFLIGHT_HANDLE_MAX];
		struct lb_inflight_handle h;
		assert_string_equal(
			inflight_handle_print(rows[i].kind, &rows[i].handle, text), rows[i].text);
		assert_true(inflight_handle_parse(rows[i].kind, text, &h));
		assert_true(h.began_ns == rows[i].handle.began_ns);
		assert_int_equal(h.slot, rows[i].handle.slot);
		assert_int_equal(h.worker, rows[i].handle.worker);
		assert_int_equal(h.is_backend, rows[i].handle.is_backend);
	}
}

static void anything_else_is_no_handle(void **state)
{
	static const char *const texts[] = {"", "0", "0-r2f", "0-c2f-1", "0-b2f-1", "00-r2f-1",
		"0-r02f-1", "0-r2F-1", "0-r2f-1 ", " 0-r2f-1", "0-r2f-1x", "-1-r2f-1",
		"65536-r2f-1", "0-r100000000-1", "0-r2f-10000000000000000",
		"6ec8a7ec-2a55-4b8f-8e3e-2c4b1d0a9f11"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct lb_inflight_handle h = {.slot = 7};
		if (inflight_handle_parse(LB_INFLIGHT_REQUESTS, texts[i], &h))
			fail_msg("'%s' is taken for a handle", texts[i]);
		assert_int_equal(h.slot, 7);
	}
	struct lb_inflight_handle h;
	assert_false(inflight_handle_parse(LB_INFLIGHT_CONNS, "0-r2f-1", &h));
}

RUN_SUITE("ctrl/inflight_handle", cmocka_unit_test(what_is_printed_is_read_again),
	cmocka_unit_test(anything_else_is_no_handle))
