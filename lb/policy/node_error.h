// SPDX-License-Identifier: Apache-2.0
// What nodes make of failures, alike for all: texts for requests (ERR-01) and connect requests for
// newer addresses (PF-05, PF-06).
// Thread: ctrl.
#pragma once

#include "lb/policy/node.h"

#include <stddef.h>

#define LB_NODE_ERROR_MAX 192

// "10.0.0.1:80: refused" of a member that counts as failing.
void lb_node_member_error(const struct lb_member *, char text[LB_NODE_ERROR_MAX]);
// Of a change of this member, after which it is not READY: asks for a resolution where that may
// help.
void lb_node_reresolve(const struct lb_node_env *, const struct lb_member *);
// Fails with the cluster, what became of its n members, and the note. NULL = out of memory.
struct lb_picker *lb_node_fail_picker(
	const struct lb_node_env *, uint32_t n_members, const char *last_error);
