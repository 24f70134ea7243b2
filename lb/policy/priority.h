// SPDX-License-Identifier: Apache-2.0
// The priority policy (gRFC A56; A56-P01 to A56-P14): makes children in order and uses the first
// that serves, giving each 10 s to connect. Its user defines the children: the priorities of a leaf
// cluster, or the leaves of an aggregate.
// Thread: ctrl.
#pragma once

#include "lb/pick/endpoint.h"

#include <stdint.h>

struct lb_dump;
struct lb_picker;
struct lb_priority;
struct lb_priority_child; // the slot through which a child reports
struct twheel;

// Implemented by its user; ctx is passed to each.
struct lb_priority_ops {
	// Makes a child of this name, not yet configured. It reports through its place, from inside
	// update() at the earliest. Returns NULL if out of memory.
	void *(*create)(void *ctx, struct lb_priority_child *, const char *name);
	// Gives the child its present configuration. Returns 0, or -ENOMEM with nothing changed.
	int (*update)(void *ctx, void *child, const char *name);
	void (*exit_idle)(void *ctx, void *child);
	void (*dump)(void *ctx, const void *child, struct lb_dump *);
	void (*free)(void *ctx, void *child);
	// As for a node (lb/policy/node.h).
	int (*publish)(void *ctx, enum lb_state, struct lb_picker *);
};

// Returns NULL if out of memory.
struct lb_priority *lb_priority_new(const struct lb_priority_ops *, void *ctx, struct twheel *);
void lb_priority_free(struct lb_priority *); // NULL is fine
// Names are copied and unique. Updates existing children before it chooses one; makes others when
// they are needed. Frees children that are no longer named at once (A56-P10). fail_text is for
// requests if there are no names. Returns 0, or -ENOMEM with nothing changed except children that
// had already taken their update.
int lb_priority_update(
	struct lb_priority *, const char *const *names, uint32_t n, const char *fail_text);
// Called by the child; takes over the picker. The child need not try again on failure.
void lb_priority_report(struct lb_priority_child *, enum lb_state, struct lb_picker *);
void lb_priority_exit_idle(struct lb_priority *); // a request needs it
const char *lb_priority_child_name(const struct lb_priority_child *);

// The child of this name; NULL = none.
void *lb_priority_find(const struct lb_priority *, const char *name);
enum lb_state lb_priority_state(const struct lb_priority *); // the last one published
void lb_priority_dump(const struct lb_priority *, struct lb_dump *);
