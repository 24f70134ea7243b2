// SPDX-License-Identifier: Apache-2.0
// How all nodes handle failures: error texts for requests (ERR-01) and requests for newer addresses
// (PF-05, PF-06).
// Thread: ctrl.
#pragma once

#include "lb/policy/node.h"

#include <stddef.h>

#define LB_NODE_ERROR_MAX 192

// "10.0.0.1:80: refused", for a member that counts as failing.
void lb_node_member_error(const struct lb_member *, char text[LB_NODE_ERROR_MAX]);
// Called when this member changed to a state other than READY: requests a resolution if that may
// help.
void lb_node_reresolve(const struct lb_node_env *, const struct lb_member *);
// Fails with a text that names the cluster, the state of its n members, and the note. NULL = out of
// memory.
struct lb_picker *lb_node_fail_picker(
	const struct lb_node_env *, uint32_t n_members, const char *last_error);
