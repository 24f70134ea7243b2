// SPDX-License-Identifier: Apache-2.0
// The Huffman code of HPACK strings (RFC 7541 5.2, Appendix B).
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes to reserve for decoding n coded bytes: the most that they decode to, and slack for writes.
#define HUFFMAN_ROOM(n) ((n)*8 / 5 + 4)

// Decodes into out, which has HUFFMAN_ROOM(len) bytes. Returns the length, or -1 for an invalid
// code: EOS, or padding that is longer than 7 bits or not a prefix of EOS.
ptrdiff_t huffman_decode(const uint8_t *, size_t len, char *out);
// Encodes. Returns the coded length, which is less than len, or 0 if coding makes the text no
// shorter. May write HUFFMAN_SLACK bytes more than len.
#define HUFFMAN_SLACK 8
size_t huffman_encode(const char *, size_t len, uint8_t *out);
