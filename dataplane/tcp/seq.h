// SPDX-License-Identifier: Apache-2.0
// Sequence numbers, which wrap (RFC 9293 3.4).
// Thread: any; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline int32_t seq_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

static inline bool seq_lt(uint32_t a, uint32_t b)
{
	return seq_diff(a, b) < 0;
}

static inline bool seq_le(uint32_t a, uint32_t b)
{
	return seq_diff(a, b) <= 0;
}
