// SPDX-License-Identifier: Apache-2.0
// Base64 with padding (RFC 4648 4). Strict: accepts only what encoding produces.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

#define BASE64_SIZE(n) (((n) + 2) / 3 * 4) // of n bytes, encoded

// Writes BASE64_SIZE(len) characters and returns how many; no terminator.
size_t base64_encode(const void *data, size_t len, char *out);
// Writes at most text.len / 4 * 3 bytes to out, which may overlap the text. Returns false if the
// text is not base64.
[[nodiscard]] bool base64_decode(struct str text, void *out, size_t *ret_len);
