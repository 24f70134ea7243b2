// SPDX-License-Identifier: Apache-2.0
// The place of a node whose kind may change (A52-T12): another kind is made beside the
// node that serves, which goes on until the new one has something better to say than CONNECTING or
// it leaves READY itself. The same kind is a plain update.
// Thread: ctrl.
#pragma once

#include "lb/policy/node.h"

struct lb_dump;
struct lb_graceful_pending;

struct lb_graceful {
	// Hears of whichever node serves; as a node's parent.
	int (*publish)(struct lb_graceful *, enum lb_state, struct lb_picker *);
	struct lb_node *node; // owned; NULL before the first update
	struct lb_graceful_pending *pending; // owned; NULL unless one is to take its place
	enum lb_state state; // that the node said last
};

// The parent hears of nothing before the first update.
void lb_graceful_init(struct lb_graceful *,
	int (*publish)(struct lb_graceful *, enum lb_state, struct lb_picker *));
void lb_graceful_fini(struct lb_graceful *);
// As a node's. The environment is always the same.
int lb_graceful_update(struct lb_graceful *, struct lb_node_env *, const struct lb_node_config *);
void lb_graceful_exit_idle(struct lb_graceful *);
void lb_graceful_dump(const struct lb_graceful *, struct lb_dump *);
