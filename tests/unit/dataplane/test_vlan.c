// SPDX-License-Identifier: Apache-2.0
#include "dataplane/vlan.h"
#include "tests/support/check.h"

#define LEN 60

static void fill(uint8_t *frame)
{
	for (unsigned i = 0; i < LEN; i++)
		frame[i] = (uint8_t)(i + 1);
}

// NET-37
static void a_tag_is_put_behind_the_addresses_and_taken_out_again(void **state)
{
	uint8_t room[VLAN_TAG + LEN], frame[LEN];
	fill(frame);
	for (uint16_t vlan = 1; vlan <= VLAN_MAX; vlan++) {
		memcpy(room + VLAN_TAG, frame, LEN);
		uint8_t *tagged = vlan_insert(room + VLAN_TAG, vlan);
		assert_ptr_equal(tagged, room);
		assert_memory_equal(tagged, frame, VLAN_MACS);
		assert_memory_equal(tagged + VLAN_MACS + VLAN_TAG, frame + VLAN_MACS, LEN - 12);
		assert_int_equal(vlan_of(tagged, LEN + VLAN_TAG), vlan);
		uint8_t *plain = vlan_strip(tagged);
		assert_ptr_equal(plain, room + VLAN_TAG);
		assert_memory_equal(plain, frame, LEN);
	}
}

// NET-37
static void only_a_whole_tag_of_802_1q_names_a_vlan(void **state)
{
	uint8_t frame[LEN] = {[12] = 0x81, [14] = 0xf0, [15] = 7}; // priority and DEI are no part
	assert_int_equal(vlan_of(frame, VLAN_HEADER), 7);
	for (uint32_t len = 0; len < VLAN_HEADER; len++)
		assert_int_equal(vlan_of(frame, len), VLAN_NONE);
	frame[15] = 0;
	assert_int_equal(vlan_of(frame, LEN), 0);
	frame[12] = 0x88, frame[13] = 0xa8;
	assert_int_equal(vlan_of(frame, LEN), VLAN_NONE);
}

RUN_SUITE("dataplane/vlan", cmocka_unit_test(a_tag_is_put_behind_the_addresses_and_taken_out_again),
	cmocka_unit_test(only_a_whole_tag_of_802_1q_names_a_vlan))
