// SPDX-License-Identifier: Apache-2.0
// The listener of an evhttp, with the bounds on its connections that evhttp has not: on their
// number, on what is read of one while it is answered, and on the whole time that a request and its
// answer take, however they drip. Who comes when all places are taken gets that of the connection
// that has waited for longest for a request, else that of the oldest answer. For a second nobody is
// accepted when the process has no descriptor left. Whoever another process has followed
// accepts nobody any more, and closes each connection behind its next answer.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct connections;
struct event_base;
struct evhttp;
struct evhttp_request;

struct connections_conf {
	struct event_base *base; // borrowed
	struct evhttp *http; // borrowed; it owns the listener
	int listener; // taken, on failure too
	uint32_t max;
	uint64_t (*clock_ns)(void); // monotonic
	uint64_t request_ns; // from the accept or the last answer to the end of a request's header
	uint64_t answer_ns; // from there to the last byte of the answer
};

// NULL with reterr.
struct connections *connections_new(const struct connections_conf *, struct lb_err *reterr);
// Accepts from now on.
void connections_begin(struct connections *);
int connections_listener(const struct connections *); // borrowed; -1 = another process has it
// Closes the listener: another process has it.
void connections_leave(struct connections *);
// First thing in each callback of the evhttp: the request is whole, the time of its answer begins.
// And again when a part of an answer without end has been taken: it has that time anew.
void connections_answering(struct connections *, struct evhttp_request *);
void connections_free(struct connections *); // after evhttp_free(); NULL is fine
