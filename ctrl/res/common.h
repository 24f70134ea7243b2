// SPDX-License-Identifier: Apache-2.0
// Helpers of the decoders of several resource types. Not for users of the decoded resources.
// Thread: ctrl.
#pragma once

#include "ctrl/base/strmap.h"
#include "ctrl/res/warnings.h"
#include "envoy/config/core/v3/config_source.pb-c.h"
#include "envoy/type/v3/percent.pb-c.h"
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "lb/base/arena.h"
#include "lb/base/err.h"
#include "lb/base/str.h"
#include "proto/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xds_bootstrap;

// Fields of a message that is unpacked and read without a pause (TH-136): as many as 30,000 routes
// have.
#define RES_FIELDS_MAX 262144

// The state that all decoders of parts of one resource share.
struct res_reader {
	struct lb_arena *arena; // the resource's
	struct lb_err *err;
	const struct xds_bootstrap *bootstrap; // as struct xds_decoded has it
	// The current position, for warnings.
	const char *vhost; // NULL = outside of virtual hosts
	size_t route;
	bool in_route;
	struct res_warning *warnings; // in the arena; NULL = none yet
	uint32_t n_warnings, n_unsaid;
	bool no_memory; // out of memory for a warning: decoding fails in the end
};

// Of what is read now. The text says nothing of the place, so that equal ones are found to be so.
void res_warn(struct res_reader *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Nothing more will be told. 0 or -ENOMEM.
int res_warnings_finish(struct res_reader *, struct res_warnings *ret);

// Returns the name (field 1) of a resource that is not decoded as a whole, for its error text. The
// caller frees it; NULL = none.
char *res_name_in(const uint8_t *bytes, size_t len);

// A copy in the arena. 0 or -ENOMEM.
int res_copy(struct res_reader *, const char *text, struct str *ret);
int res_copy_folded(struct res_reader *, const char *text, struct str *ret); // ASCII lower case

// The message in an Any; a TypedStruct stands for the message that it names (FLT-04). Borrows from
// the Any.
struct res_any {
	const char *type_url;
	const ProtobufCBinaryData *bytes; // of the message itself
	void *typed_struct; // owned; NULL = the Any is no TypedStruct
	const Google__Protobuf__Struct *json; // of the TypedStruct; NULL = an empty one
};
// 0 or -EINVAL.
int res_any_open(const Google__Protobuf__Any *, struct res_any *ret, struct lb_err *reterr);
void res_any_close(struct res_any *);
// Returns the message, which the caller frees (proto_free); NULL = reterr says why ("" = out of
// memory).
void *res_any_decode(
	const struct res_any *, const ProtobufCMessageDescriptor *, struct lb_err *reterr);

// True if the Any contains this message, or a TypedStruct that stands for it (FLT-04).
bool res_any_stands_for(const Google__Protobuf__Any *, const ProtobufCMessageDescriptor *);
// The message that it then contains or that the TypedStruct stands for, as res_any_decode().
void *res_any_unpack(
	const Google__Protobuf__Any *, const ProtobufCMessageDescriptor *, struct lb_err *reterr);

// The name in the .proto file; "unknown" for an unknown number.
const char *res_enum_name(const ProtobufCEnumDescriptor *, int value);

// ads and self both mean the stream that sent the resource (FE-09).
bool res_is_ads(const Envoy__Config__Core__V3__ConfigSource *);

// Returns 0, or -EINVAL with "<field>: …" (A28-V08). NULL is fine.
int res_check_duration(
	const Google__Protobuf__Duration *, const char *field, struct lb_err *reterr);
// For a checked duration; UINT64_MAX if it does not fit (584 years).
uint64_t res_duration_ns(const Google__Protobuf__Duration *);
// Of an idle timeout: 0 if it is not configured (NULL), LB_NO_TIMEOUT if it is 0.
uint64_t res_idle_ns(const Google__Protobuf__Duration *);

// What the numerator counts: parts of 100, 10^4 or 10^6 (A28-O02). 0 or -EINVAL.
int res_denominator(
	const Envoy__Type__V3__FractionalPercent *, uint32_t *ret, struct lb_err *reterr);

// Adds a name to a set in the arena. Returns 0, -EEXIST or -ENOMEM. Call strmap_fini() on the set.
int res_name_set_add(struct strmap *, struct lb_arena *, const char *name);
