// SPDX-License-Identifier: Apache-2.0
// An ordered walk over a cluster's policy tree, from the top down (gRFC A75's diagrams;
// A75-T01): what operators see, in whatever form the visitor writes it.
// Thread: ctrl.
#pragma once

#include "lb/pick/endpoint.h"

#include <stdint.h>

struct lb_node;
struct twheel;
struct twheel_timer;

// All texts are borrowed for the call.
struct lb_dump {
	void (*enter)(struct lb_dump *, const char *name, const char *state); // state "" = has none
	void (*text)(struct lb_dump *, const char *key, const char *value); // of the innermost
	void (*number)(struct lb_dump *, const char *key, uint64_t value); // likewise
	void (*leave)(struct lb_dump *);
};

void lb_dump_enter(struct lb_dump *, const char *name, enum lb_state);
void lb_dump_text(struct lb_dump *, const char *key, const char *value);
void lb_dump_number(struct lb_dump *, const char *key, uint64_t value);
// Milliseconds until the timer fires; nothing if it is not armed.
void lb_dump_timer(
	struct lb_dump *, const char *key, const struct twheel *, const struct twheel_timer *);
void lb_dump_leave(struct lb_dump *);
// The node, in the state that its parent knows of it, with all that is below.
void lb_dump_node(struct lb_dump *, const struct lb_node *, enum lb_state);
