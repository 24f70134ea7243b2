// SPDX-License-Identifier: Apache-2.0
// The message types that may stand in a google.protobuf.Any, by type URL.
// Thread: any; the table is constant.
#pragma once

#include "lb/base/str.h"

#include <protobuf-c/protobuf-c.h>

#define PROTO_TYPE_PREFIX "type.googleapis.com/"

// What follows the last "/" of a type URL; the whole text when there is none (WF-04).
struct str proto_type_name(struct str type_url);

// By the name in the type URL; the part before it is not looked at. NULL = a type that Shunt does
// not know.
const ProtobufCMessageDescriptor *proto_registry_find(struct str type_url);
