// SPDX-License-Identifier: Apache-2.0
// Starts the metrics' port, with the status page on it, which shunt.yaml asks for.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "lb/base/err.h"

struct config;
struct loop;
struct metrics_port;
struct show;

// Of the listener, which it takes, on failure too. What else it is given is borrowed, and outlives
// it. Returns 0, or -EINVAL with reterr, which names the field.
[[nodiscard]] int metrics_start(const struct config *, int listener, struct loop *,
	const struct show *, struct slice, struct metrics_port **ret, struct lb_err *reterr);
void metrics_begin(struct metrics_port *); // accepts from now on
int metrics_listener(const struct metrics_port *); // borrowed; -1 = it has left
// Another process has the listener: who is here is answered, and goes.
void metrics_leave(struct metrics_port *);
void metrics_stop(struct metrics_port *); // NULL is fine
