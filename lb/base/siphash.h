// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 (Aumasson and Bernstein): keyed hash for table keys and sequence numbers that a
// remote host must not be able to choose or predict. Own code, since OpenSSL's EVP_MAC costs
// several allocations and about a microsecond a call, and this runs for every segment; tested
// against it.
// Thread: any.
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t siphash24(const uint8_t key[16], const void *data, size_t len);
