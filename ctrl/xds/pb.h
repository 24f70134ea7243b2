// SPDX-License-Identifier: Apache-2.0
// Decoding of untrusted protobuf bytes: protobuf-c, behind a guard. protobuf-c itself neither
// bounds the nesting (a Struct in a Struct in a … would use up the stack) nor checks strings, which
// proto3 wants in UTF-8 and which C wants without NUL.
// Thread: any.
#pragma once

#include "lb/base/err.h"

#include <protobuf-c/protobuf-c.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_MAX_DEPTH 100 // as in C++ protobuf

// The message, the caller's (pb_free); NULL with the reason in reterr.
void *pb_unpack(const ProtobufCMessageDescriptor *, const uint8_t *bytes, size_t len,
	struct lb_err *reterr);
void pb_free(void *message); // NULL is fine

// Does the Any's type URL name this message? What stands before the last '/' does not count
// (WF-04). Both may be "".
bool pb_any_is(const char *type_url, const ProtobufCMessageDescriptor *);

// Length of the well-formed UTF-8 sequence that starts at p, 0 = malformed or a NUL.
size_t pb_utf8_len(const uint8_t *p, size_t left);
