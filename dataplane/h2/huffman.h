// SPDX-License-Identifier: Apache-2.0
// The Huffman code of HPACK strings (RFC 7541 5.2, Appendix B).
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes that n coded ones may decode to, at most, and what decoding writes behind them.
#define HUFFMAN_ROOM(n) ((n)*8 / 5 + 4)

// Into out, which has HUFFMAN_ROOM(len). Returns the length, or -1 for what is no such code: EOS,
// or padding that is longer than 7 bits or not EOS's beginning.
ptrdiff_t huffman_decode(const uint8_t *, size_t len, char *out);
// Returns the length of the text coded, which is less than len, or 0 where coding makes it no
// shorter. Writes up to HUFFMAN_SLACK bytes more than len.
#define HUFFMAN_SLACK 8
size_t huffman_encode(const char *, size_t len, uint8_t *out);
