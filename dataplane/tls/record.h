// SPDX-License-Identifier: Apache-2.0
// The header of a record, in the clear (RFC 8446 5.1, RFC 5246 6.2.1).
// Thread: any. Pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TLS_HEADER 5 // bytes of type, version, and how long the body is

static inline size_t tls_body_len(const uint8_t *head)
{
	return (size_t)head[3] << 8 | head[4];
}
