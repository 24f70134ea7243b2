// SPDX-License-Identifier: Apache-2.0
// What the readers of one cluster's policies share (policy.c: messages of the API; policy_json.c:
// gRPC's own JSON). Not for users of the decoded policy.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "lb/policy/policy_spec.h"

#include <jansson.h>

#define RES_POLICY_MAX_DEPTH 16 // of lists of policies in each other (gRFC A52)

struct res_policy_reader {
	struct res_reader *rd;
	unsigned depth; // of the list that is being read, from 1
	// space for the next specs, before they are copied to the arena
	struct lb_policy_spec *room;
	uint32_t n_room;
};

// Reads a policy's parameters from its API message, which has no children. Returns 0, -EINVAL or
// -ENOMEM.
int res_policy_read_message(struct res_policy_reader *, enum lb_policy_kind, const void *message,
	struct lb_policy_spec *);
const ProtobufCMessageDescriptor *res_policy_message_of(enum lb_policy_kind);
struct lb_policy_spec *res_policy_new_child( // NULL = out of memory
	struct res_policy_reader *, struct lb_policy_spec *parent);
// Of the policy's endpoints; 0 is refused. Returns 0 or -EINVAL.
int res_policy_set_subset(struct res_policy_reader *, uint32_t size, struct lb_policy_spec *);

// Reads a policy by its name and JSON in a gRPC service config. Returns 1 for an unknown name; else
// 0, -EINVAL or -ENOMEM.
int res_policy_read_json(
	struct res_policy_reader *, const char *name, const json_t *, struct lb_policy_spec *);
