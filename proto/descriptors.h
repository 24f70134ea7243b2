// SPDX-License-Identifier: Apache-2.0
// The .proto files of this folder as protobuf's own descriptors: a serialized
// google.protobuf.FileDescriptorSet, each file after those that it imports.
// Thread: any; constant.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern const uint8_t proto_descriptors[];
extern const size_t proto_descriptors_len;
