// SPDX-License-Identifier: Apache-2.0
// The priority policy (gRFC A56; A56-P01 to A56-P14): of children in an order it makes
// and uses the first that serves, with 10 s for each to try. What a child is its user says: the
// priorities of a leaf cluster, or the leaves of an aggregate.
// Thread: ctrl.
#pragma once

#include "lb/pick/endpoint.h"

#include <stdint.h>

struct lb_dump;
struct lb_picker;
struct lb_priority;
struct lb_priority_child; // the place that a child reports to
struct twheel;

// Of its user, whose ctx these are told.
struct lb_priority_ops {
	// A child of this name, without config. It reports through its place, first from inside
	// update() at the earliest. NULL = out of memory.
	void *(*create)(void *ctx, struct lb_priority_child *, const char *name);
	// Gives it what the config of this moment says of its name. 0, or -ENOMEM: as before.
	int (*update)(void *ctx, void *child, const char *name);
	void (*exit_idle)(void *ctx, void *child);
	void (*dump)(void *ctx, const void *child, struct lb_dump *);
	void (*free)(void *ctx, void *child);
	// As a node's (lb/policy/node.h).
	int (*publish)(void *ctx, enum lb_state, struct lb_picker *);
};

// NULL = out of memory.
struct lb_priority *lb_priority_new(const struct lb_priority_ops *, void *ctx, struct twheel *);
void lb_priority_free(struct lb_priority *); // NULL is fine
// Names are copied, and unique. Children that exist get their update before one is chosen; others
// are made when their turn comes. Those no longer named are freed at once (A56-P10). fail_text is
// what requests get if there is no name at all. 0 or -ENOMEM: as before, but for children that
// already took their update.
int lb_priority_update(
	struct lb_priority *, const char *const *names, uint32_t n, const char *fail_text);
// From the child: takes the picker over. Children of a priority need not try again.
void lb_priority_report(struct lb_priority_child *, enum lb_state, struct lb_picker *);
void lb_priority_exit_idle(struct lb_priority *); // a request wants it
const char *lb_priority_child_name(const struct lb_priority_child *);

// The child of this name; NULL = does not exist.
void *lb_priority_find(const struct lb_priority *, const char *name);
enum lb_state lb_priority_state(const struct lb_priority *); // as published last
void lb_priority_dump(const struct lb_priority *, struct lb_dump *);
