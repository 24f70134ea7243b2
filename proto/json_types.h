// SPDX-License-Identifier: Apache-2.0
// Which form protobuf's JSON gives to a message, a field, an element: what reading and writing
// share.
// Thread: any.
#pragma once

#include <protobuf-c/protobuf-c.h>

#include <stdbool.h>
#include <stddef.h>

enum proto_json_type {
	PROTO_JSON_PLAIN, // an object of its fields
	PROTO_JSON_WRAPPER, // just the value
	PROTO_JSON_DURATION,
	PROTO_JSON_TIMESTAMP,
	PROTO_JSON_ANY,
	PROTO_JSON_STRUCT, // any object
	PROTO_JSON_LIST, // any list
	PROTO_JSON_VALUE, // any JSON
};

enum proto_json_type proto_json_type(const ProtobufCMessageDescriptor *);

// protobuf-c's descriptors do not say that a field is a map: it is one when its type is the entry
// that protoc makes for it, FooBarEntry{key 1, value 2} of the field foo_bar. Text keys only.
bool proto_json_is_map(const ProtobufCFieldDescriptor *);

// Of one element of a repeated field, in memory.
size_t proto_json_element_size(const ProtobufCFieldDescriptor *);
