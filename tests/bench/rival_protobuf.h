// SPDX-License-Identifier: Apache-2.0
// What C++'s libprotobuf does with the bytes of a ClusterLoadAssignment: parses them onto the heap.
// Thread: one.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void *rival_protobuf_parse(const uint8_t *bytes, size_t len); // NULL = it can't
void rival_protobuf_free(void *);

#ifdef __cplusplus
}
#endif
