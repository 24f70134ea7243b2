// SPDX-License-Identifier: Apache-2.0
// The place of a node whose kind may change (lb-tree.md A52-T12): another kind is made beside the
// node that serves, which goes on until the new one has something better to say than CONNECTING or
// it leaves READY itself. The same kind is a plain update.
// Thread: ctrl.
#pragma once

#include "lb/node.h"

struct lb_graceful;
struct lb_dump;

// NULL = no memory.
struct lb_graceful *lb_graceful_new(const struct lb_node_env *, struct lb_node_parent);
void lb_graceful_free(struct lb_graceful *); // NULL is fine
int lb_graceful_update(struct lb_graceful *, const struct lb_node_config *); // as a node's
void lb_graceful_exit_idle(struct lb_graceful *);
void lb_graceful_dump(const struct lb_graceful *, struct lb_dump *);
