// SPDX-License-Identifier: Apache-2.0
// A place for a node whose kind may change (A52-T12): a node of another kind is made beside the
// current one, which keeps serving until the new one reports a state other than CONNECTING or the
// current one leaves READY. With the same kind it is a plain update.
// Thread: ctrl.
#pragma once

#include "lb/policy/node.h"

struct lb_dump;
struct lb_graceful_pending;

struct lb_graceful {
	// Told of the serving node's state; as a node's parent.
	int (*publish)(struct lb_graceful *, enum lb_state, struct lb_picker *);
	struct lb_node *node; // owned; NULL before the first update
	struct lb_graceful_pending *pending; // owned; the node about to take over; NULL = none
	enum lb_state state; // the node's last reported state
};

// Calls the parent only after the first update.
void lb_graceful_init(struct lb_graceful *,
	int (*publish)(struct lb_graceful *, enum lb_state, struct lb_picker *));
void lb_graceful_fini(struct lb_graceful *);
// As for a node. The environment stays the same.
int lb_graceful_update(struct lb_graceful *, struct lb_node_env *, const struct lb_node_config *);
void lb_graceful_exit_idle(struct lb_graceful *);
void lb_graceful_dump(const struct lb_graceful *, struct lb_dump *);
