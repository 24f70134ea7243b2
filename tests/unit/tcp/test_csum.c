// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/csum.h"
#include "lb/base/ip.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"

#include <string.h>

// RFC 1071 as it stands: 16-bit big-endian words, one after the other.
static uint32_t naive_sum(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)(i % 2 ? p[i] : p[i] << 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static uint16_t naive(
	const struct ip_addr *src, const struct ip_addr *dst, const uint8_t *p, size_t len)
{
	size_t skip = ip_is_v4(src) ? 12 : 0;
	uint8_t tail[4] = {0, 6, (uint8_t)(len >> 8), (uint8_t)len};
	uint32_t sum = naive_sum(0, src->b + skip, 16 - skip);
	sum = naive_sum(sum, dst->b + skip, 16 - skip);
	sum = naive_sum(sum, tail, 4);
	return (uint16_t)~naive_sum(sum, p, len);
}

static void every_length_and_alignment_agrees_with_the_plain_sum(void **state)
{
	static uint8_t bytes[70000];
	struct rand r;
	rand_init(&r, 1);
	for (unsigned round = 0; round < 4000; round++) {
		size_t at = rand_below(&r, 16);
		size_t len = rand_below(&r, round % 10 ? 200 : 65536);
		struct ip_addr src = ip_from_v4((uint32_t)rand_u64(&r));
		struct ip_addr dst = ip_from_v4((uint32_t)rand_u64(&r));
		for (size_t i = 0; i < len; i++) // many 0xff bytes make many carries
			bytes[at + i] = round % 2 ? 0xff : (uint8_t)rand_u64(&r);
		if (round % 3 == 0)
			for (unsigned i = 0; i < 16; i++)
				src.b[i] = dst.b[15 - i] = (uint8_t)rand_u64(&r);
		uint16_t sum = tcp_csum_segment(tcp_csum_flow(&src, &dst), bytes + at, len);
		assert_int_equal(__builtin_bswap16(sum), naive(&src, &dst, bytes + at, len));
	}
}

// TCP-02
static void a_filled_checksum_verifies_to_zero_and_any_flipped_bit_does_not(void **state)
{
	uint8_t segment[61];
	struct ip_addr src = ip_from_v4(0x0a090001), dst = ip_from_v4(0x0a090002);
	for (unsigned i = 0; i < sizeof(segment); i++)
		segment[i] = (uint8_t)(i * 37);
	segment[16] = segment[17] = 0;
	uint16_t sum = tcp_csum_segment(tcp_csum_flow(&src, &dst), segment, sizeof(segment));
	memcpy(segment + 16, &sum, 2);
	assert_int_equal(tcp_csum_segment(tcp_csum_flow(&src, &dst), segment, sizeof(segment)), 0);
	for (unsigned bit = 0; bit < sizeof(segment) * 8; bit++) {
		segment[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_not_equal(
			tcp_csum_segment(tcp_csum_flow(&src, &dst), segment, sizeof(segment)), 0);
		segment[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

RUN_SUITE("tcp/csum", cmocka_unit_test(every_length_and_alignment_agrees_with_the_plain_sum),
	cmocka_unit_test(a_filled_checksum_verifies_to_zero_and_any_flipped_bit_does_not))
