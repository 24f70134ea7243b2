// SPDX-License-Identifier: Apache-2.0
// kinds.proto as a serialized google.protobuf.FileDescriptorSet, without the well-known types.
// Thread: any; constant.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern const uint8_t kinds_descriptors[];
extern const size_t kinds_descriptors_len;
