// SPDX-License-Identifier: Apache-2.0
// An ordered walk over a cluster's policy tree, from the top down (gRFC A75's diagrams; A75-T01),
// for display; the visitor chooses the format.
// Thread: ctrl.
#pragma once

#include "lb/pick/endpoint.h"

#include <stdint.h>

struct lb_node;
struct twheel;
struct twheel_timer;

// All texts are borrowed for the call.
struct lb_dump {
	void (*enter)(struct lb_dump *, const char *name, const char *state); // state "" = none
	// of the node last entered
	void (*text)(struct lb_dump *, const char *key, const char *value);
	void (*number)(struct lb_dump *, const char *key, uint64_t value); // likewise
	void (*leave)(struct lb_dump *);
};

void lb_dump_enter(struct lb_dump *, const char *name, enum lb_state);
void lb_dump_text(struct lb_dump *, const char *key, const char *value);
void lb_dump_number(struct lb_dump *, const char *key, uint64_t value);
// Writes the milliseconds until the timer fires; nothing if it is not armed.
void lb_dump_timer(
	struct lb_dump *, const char *key, const struct twheel *, const struct twheel_timer *);
void lb_dump_leave(struct lb_dump *);
// Writes the node, with the state that its parent last got, and everything below it.
void lb_dump_node(struct lb_dump *, const struct lb_node *, enum lb_state);
