// SPDX-License-Identifier: Apache-2.0
// Queries on a set of protobuf file descriptors: by file name and by symbol. The set is trusted;
// the queries are not.
// Thread: any; immutable once made.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct descriptors;

// The bytes are a serialized google.protobuf.FileDescriptorSet, each file after its imports; they
// outlive the result. NULL = out of memory.
struct descriptors *descriptors_new(const uint8_t *set, size_t len);
void descriptors_free(struct descriptors *); // NULL is fine

uint32_t descriptors_n_files(const struct descriptors *);
// A serialized google.protobuf.FileDescriptorProto.
struct str descriptors_file(const struct descriptors *, uint32_t file);
// The files that it imports.
const uint32_t *descriptors_imports(const struct descriptors *, uint32_t file, uint32_t *ret_n);

#define DESCRIPTORS_NONE UINT32_MAX
// By path: "google/protobuf/any.proto".
uint32_t descriptors_find_file(const struct descriptors *, struct str path);
// The file that declares a message, field, oneof, enum, enum value, service or method by its full
// name: "google.protobuf.Any.type_url".
uint32_t descriptors_find_symbol(const struct descriptors *, struct str name);
bool descriptors_has_message(const struct descriptors *, struct str name);
