// SPDX-License-Identifier: Apache-2.0
// What the decoders of several resource types need. Not for users of the decoded resources.
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

// What everything that reads a part of one resource shares.
struct res_reader {
	struct lb_arena *arena; // the resource's
	struct lb_err *err;
	// Where the reader stands, for warnings.
	const char *vhost; // NULL = in none
	size_t route;
	bool in_route;
	struct res_warning *warnings; // in the arena; NULL = none yet
	uint32_t n_warnings, n_unsaid;
	bool no_memory; // for a warning: who reads the resource fails in the end
};

// Of what is read now. The text says nothing of the place, so that equal ones are found to be so.
void res_warn(struct res_reader *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Nothing more will be told. 0 or -ENOMEM.
int res_warnings_finish(struct res_reader *, struct res_warnings *ret);

// The name (field 1) of a resource that is not to be decoded as a whole, so that its refusal says
// which one it is. The caller's (free); NULL = it has none.
char *res_name_in(const uint8_t *bytes, size_t len);

// A copy in the arena. 0 or -ENOMEM.
int res_copy(struct res_reader *, const char *text, struct str *ret);
int res_copy_folded(struct res_reader *, const char *text, struct str *ret); // ASCII lower case

// An Any, opened: a TypedStruct in it stands for the message that it names (FLT-04). Borrows from
// the Any.
struct res_any {
	const char *type_url;
	const ProtobufCBinaryData *bytes; // of the message itself
	void *typed_struct; // owned; NULL = it is none
	const Google__Protobuf__Struct *json; // of the TypedStruct; NULL = an empty one
};
// 0 or -EINVAL.
int res_any_open(const Google__Protobuf__Any *, struct res_any *ret, struct lb_err *reterr);
void res_any_close(struct res_any *);
// The message, the caller's (proto_free); NULL = reterr says why ("" = out of memory).
void *res_any_decode(
	const struct res_any *, const ProtobufCMessageDescriptor *, struct lb_err *reterr);

// Does the Any hold this message, or a TypedStruct that stands for it (FLT-04)?
bool res_any_stands_for(const Google__Protobuf__Any *, const ProtobufCMessageDescriptor *);
// The message in the Any; `field` opens the error. NULL = reterr says why.
void *res_any_unpack(const Google__Protobuf__Any *, const ProtobufCMessageDescriptor *,
	const char *field, struct lb_err *reterr);

// As the .proto file has it; "unknown" for a number that it does not have.
const char *res_enum_name(const ProtobufCEnumDescriptor *, int value);

// ads and self mean the same: the stream this came from (FE-09).
bool res_is_ads(const Envoy__Config__Core__V3__ConfigSource *);

// 0 or -EINVAL with "<field>: …" (A28-V08). NULL is fine.
int res_check_duration(
	const Google__Protobuf__Duration *, const char *field, struct lb_err *reterr);
// Of a checked one; UINT64_MAX when it does not fit (584 years).
uint64_t res_duration_ns(const Google__Protobuf__Duration *);

// What the numerator counts: parts of 100, 10^4 or 10^6 (A28-O02). 0 or -EINVAL.
int res_denominator(
	const Envoy__Type__V3__FractionalPercent *, uint32_t *ret, struct lb_err *reterr);

// Puts a name into a set that lives in the arena. 0, -EEXIST or -ENOMEM. strmap_fini() ends the
// set.
int res_name_set_add(struct strmap *, struct lb_arena *, const char *name);
