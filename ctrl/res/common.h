// SPDX-License-Identifier: Apache-2.0
// What the decoders of several resource types need. Not for users of the decoded resources.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/arena.h"
#include "ctrl/xds/strmap.h"
#include "envoy/config/core/v3/config_source.pb-c.h"
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "lb/base/err.h"
#include "proto/wire.h"

#include <stdbool.h>
#include <stdint.h>

// Does the Any hold this message, or a TypedStruct that stands for it (FLT-04)?
bool res_any_stands_for(const Google__Protobuf__Any *, const ProtobufCMessageDescriptor *);
// The message in the Any; `field` opens the error. NULL = reterr says why.
void *res_any_unpack(const Google__Protobuf__Any *, const ProtobufCMessageDescriptor *,
	const char *field, struct lb_err *reterr);

// ads and self mean the same: the stream this came from (FE-09).
bool res_is_ads(const Envoy__Config__Core__V3__ConfigSource *);

// 0 or -EINVAL with "<field>: …" (routing.md V08). NULL is fine.
int res_check_duration(
	const Google__Protobuf__Duration *, const char *field, struct lb_err *reterr);
// Of a checked one; UINT64_MAX when it does not fit (584 years).
uint64_t res_duration_ns(const Google__Protobuf__Duration *);

// Puts a name into a set that lives in the arena. 0, -EEXIST or -ENOMEM. strmap_fini() ends the
// set.
int res_name_set_add(struct strmap *, struct xds_arena *, const char *name);
