// SPDX-License-Identifier: Apache-2.0
// Base64 with padding (RFC 4648 4). Strict: what decodes is what encoding gives, nothing else.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

#define BASE64_SIZE(n) (((n) + 2) / 3 * 4) // of n bytes, encoded

// Writes BASE64_SIZE(len) characters and returns how many; no terminator.
size_t base64_encode(const void *data, size_t len, char *out);
// At most text.len / 4 * 3 bytes go to out, which may be where the text is. False = not base64.
[[nodiscard]] bool base64_decode(struct str text, void *out, size_t *ret_len);
