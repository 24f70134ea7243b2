// SPDX-License-Identifier: Apache-2.0
// The texts that protobuf's JSON form gives to names, times and bytes.
// Thread: any.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

#define PROTO_SECONDS_MAX 315576000000 // of a Duration, either sign (WF-02)
#define PROTO_TIME_TEXT_MAX 40
#define PROTO_NAME_MAX 128

// "load_balancing_weight" → "loadBalancingWeight"; returns text. Names longer than the room are
// cut.
const char *proto_camel_name(const char *name, char text[PROTO_NAME_MAX]);

// Text without overlong forms, surrogates and numbers beyond Unicode (RFC 3629).
[[nodiscard]] bool proto_is_utf8(const char *text);

// "1.5s". False = not of that form, or out of range.
[[nodiscard]] bool proto_duration_parse(const char *text, int64_t *ret_seconds, int32_t *ret_nanos);
const char *proto_duration_print(int64_t seconds, int32_t nanos, char text[PROTO_TIME_TEXT_MAX]);

// RFC 3339, years 1 to 9999: "2026-01-29T17:48:45.5Z", or with an offset instead of Z.
[[nodiscard]] bool proto_timestamp_parse(
	const char *text, int64_t *ret_seconds, int32_t *ret_nanos);
// seconds outside of those years are shown as the nearest that is inside.
const char *proto_timestamp_print(int64_t seconds, int32_t nanos, char text[PROTO_TIME_TEXT_MAX]);

// RFC 4648, both alphabets, padding optional. ret has room for len / 4 * 3 + 3 bytes.
[[nodiscard]] bool proto_base64_decode(const char *text, size_t len, uint8_t *ret, size_t *ret_len);
// text has room for (len + 2) / 3 * 4 + 1 characters.
void proto_base64_encode(const uint8_t *bytes, size_t len, char *text);
