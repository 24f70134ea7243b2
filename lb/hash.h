// SPDX-License-Identifier: Apache-2.0
// One fast hash for tables whose keys come from the configuration: a client can only look up, never
// insert, so collisions cannot be forced and no secret is needed. Not for keys that peers choose
// (those take siphash24).
// Thread: any. Pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t lb_hash(const void *data, size_t len);
// XXH64 with seed 0: what gRPC and Envoy hash requests and ring entries with (gRFC A42).
uint64_t lb_xxh64(const void *data, size_t len);
