// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tests/support/faultlink/frame.h"

#include <string.h>

#define ETH 14
#define BODY 5 // odd

// What Linux sent: from 10.0.0.1:40000 to 10.0.0.2:80, with a correct checksum.
static const uint8_t tcp4[] = {
	2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet
	0x45, 0, 0, 45, 0, 0, 0x40, 0, 64, 6, 0x26, 0xc9, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
	0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0, // TCP
	'h', 'e', 'l', 'l', 'o', 0, // and a byte of padding
};
// The same from fd00::1 to fd00::2.
static const uint8_t tcp6[] = {
	2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, // Ethernet
	0x60, 0, 0, 0, 0, 25, 6, 64, // IPv6
	0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
	0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, //
	0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0, // TCP
	'h', 'e', 'l', 'l', 'o', //
};

// RFC 1071 by the book, over the pseudo-header and what follows: 0xffff is right.
static uint32_t verify(
	const uint8_t *addresses, size_t n, uint8_t protocol, const uint8_t *p, size_t len)
{
	uint32_t sum = protocol ? protocol + (uint32_t)len : 0;
	for (size_t i = 0; protocol && i < n; i++)
		sum += (uint32_t)addresses[i] << (i % 2 ? 0 : 8);
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static bool is_right4(const uint8_t *frame)
{
	const uint8_t *ip = frame + ETH;
	return verify(ip + 12, 8, 6, ip + 20, 20 + BODY) == 0xffff;
}

static bool is_right6(const uint8_t *frame)
{
	const uint8_t *ip = frame + ETH;
	return verify(ip + 8, 32, 6, ip + 40, 20 + BODY) == 0xffff;
}

static void the_length_is_that_of_the_packet_not_of_the_frame(void **state)
{
	uint8_t frame[sizeof(tcp6)];
	assert_int_equal(frame_ip_len(tcp4, sizeof(tcp4)), 45);
	assert_int_equal(frame_ip_len(tcp6, sizeof(tcp6)), 65);
	for (size_t len = 0; len < ETH + 45; len++)
		assert_int_equal(frame_ip_len(tcp4, len), 0);
	for (size_t len = 0; len < sizeof(tcp6); len++)
		assert_int_equal(frame_ip_len(tcp6, len), 0);
	memcpy(frame, tcp4, sizeof(tcp4));
	frame[13] = 6; // ARP
	assert_int_equal(frame_ip_len(frame, sizeof(tcp4)), 0);
	memcpy(frame, tcp6, sizeof(tcp6));
	frame[ETH + 6] = 58;
	for (unsigned type = 0; type < 256; type++) {
		frame[ETH + 40] = (uint8_t)type;
		assert_int_equal(
			frame_ip_len(frame, sizeof(frame)), type >= 133 && type <= 137 ? 0 : 65);
	}
	frame[ETH + 24] = 0xff; // to a group
	assert_int_equal(frame_ip_len(frame, sizeof(frame)), 0);
}

static void corruption_flips_one_bit_of_the_packet(void **state)
{
	for (uint64_t where = 0; where < 2000; where++) {
		uint8_t frame[sizeof(tcp4)];
		unsigned n = 0;
		memcpy(frame, tcp4, sizeof(frame));
		frame_corrupt(frame, sizeof(frame), where);
		for (size_t i = 0; i < sizeof(frame); i++)
			n += (unsigned)__builtin_popcount(frame[i] ^ tcp4[i]);
		assert_int_equal(n, 1);
		assert_memory_equal(frame, tcp4, ETH);
		assert_int_equal(frame[ETH + 45], 0);
	}
}

static void a_forged_segment_has_a_right_checksum(void **state)
{
	for (uint64_t where = 0; where < 2000; where++) {
		uint8_t v4[sizeof(tcp4)], v6[sizeof(tcp6)];
		memcpy(v4, tcp4, sizeof(v4));
		memcpy(v6, tcp6, sizeof(v6));
		assert_true(frame_forge(v4, sizeof(v4), where));
		assert_true(frame_forge(v6, sizeof(v6), where));
		assert_true(is_right4(v4));
		assert_true(is_right6(v6));
		assert_memory_equal(v4, tcp4, ETH + 20);
		assert_memory_equal(v6, tcp6, ETH + 40);
	}
	assert_false(is_right4(tcp4)); // which has none
}

static void what_has_no_checksum_that_is_known_is_not_forged(void **state)
{
	uint8_t frame[sizeof(tcp4)], before[sizeof(tcp4)];
	memcpy(frame, tcp4, sizeof(frame));
	frame[ETH + 9] = 17; // UDP
	memcpy(before, frame, sizeof(frame));
	assert_false(frame_forge(frame, sizeof(frame), 3));
	frame[ETH + 9] = before[ETH + 9] = 6;
	frame[ETH + 6] = before[ETH + 6] = 0x20; // more fragments
	assert_false(frame_forge(frame, sizeof(frame), 3));
	assert_memory_equal(frame, before, sizeof(frame));
}

static void too_big_is_told_by_ipv4(void **state)
{
	uint8_t answer[FRAME_MAX];
	const uint8_t *ip = answer + ETH;
	size_t len = frame_too_big(tcp4, sizeof(tcp4), 1300, answer);
	assert_int_equal(len, ETH + 20 + 8 + 45);
	assert_int_equal(frame_ip_len(answer, len), len - ETH);
	assert_memory_equal(answer, tcp4 + 6, 6);
	assert_memory_equal(answer + 6, tcp4, 6);
	assert_memory_equal(ip + 12, tcp4 + ETH + 16, 4); // from whom it was for
	assert_memory_equal(ip + 16, tcp4 + ETH + 12, 4);
	assert_int_equal(verify(NULL, 0, 0, ip, 20), 0xffff);
	assert_int_equal(verify(NULL, 0, 0, ip + 20, 8 + 45), 0xffff);
	assert_memory_equal(ip + 20, ((uint8_t[]){3, 4}), 2);
	assert_memory_equal(ip + 24, ((uint8_t[]){0, 0, 1300 >> 8, 1300 & 255}), 4);
	assert_memory_equal(ip + 28, tcp4 + ETH, 45);
}

static void too_big_is_told_by_ipv6(void **state)
{
	uint8_t answer[FRAME_MAX];
	const uint8_t *ip = answer + ETH;
	size_t len = frame_too_big(tcp6, sizeof(tcp6), 1300, answer);
	assert_int_equal(len, ETH + 40 + 8 + 65);
	assert_int_equal(frame_ip_len(answer, len), len - ETH);
	assert_memory_equal(ip + 8, tcp6 + ETH + 24, 16);
	assert_memory_equal(ip + 24, tcp6 + ETH + 8, 16);
	assert_int_equal(verify(ip + 8, 32, 58, ip + 40, 8 + 65), 0xffff);
	assert_memory_equal(ip + 40, ((uint8_t[]){2, 0}), 2);
	assert_memory_equal(ip + 44, ((uint8_t[]){0, 0, 1300 >> 8, 1300 & 255}), 4);
	assert_memory_equal(ip + 48, tcp6 + ETH, 65);
}

static void an_answer_is_short_and_errors_get_none(void **state)
{
	static uint8_t large[FRAME_MAX], answer[FRAME_MAX];
	memcpy(large, tcp4, sizeof(tcp4));
	large[ETH + 2] = 9000 >> 8;
	large[ETH + 3] = 9000 & 255;
	assert_int_equal(frame_too_big(large, ETH + 9000, 1300, answer), ETH + 576);
	large[ETH + 9] = 1;
	assert_int_equal(frame_too_big(large, ETH + 9000, 1300, answer), 0);
	memcpy(large, tcp6, sizeof(tcp6));
	large[ETH + 4] = 9000 >> 8;
	large[ETH + 5] = 100;
	assert_int_equal(frame_too_big(large, FRAME_MAX, 1300, answer), ETH + 1280);
	large[ETH + 6] = 58;
	large[ETH + 40] = 2;
	assert_int_equal(frame_too_big(large, FRAME_MAX, 1300, answer), 0);
	assert_int_equal(frame_too_big(tcp4, 20, 1300, answer), 0);
}

RUN_SUITE("faultlink/frame", cmocka_unit_test(the_length_is_that_of_the_packet_not_of_the_frame),
	cmocka_unit_test(corruption_flips_one_bit_of_the_packet),
	cmocka_unit_test(a_forged_segment_has_a_right_checksum),
	cmocka_unit_test(what_has_no_checksum_that_is_known_is_not_forged),
	cmocka_unit_test(too_big_is_told_by_ipv4), cmocka_unit_test(too_big_is_told_by_ipv6),
	cmocka_unit_test(an_answer_is_short_and_errors_get_none))
