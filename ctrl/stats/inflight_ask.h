// SPDX-License-Identifier: Apache-2.0
// A question to all workers of what is in flight (lb/pick/inflight.h), and the oldest rows of what
// they say. Workers answer in parts, after a while, so that the asker looks again and again. One
// question is with them at a time: others wait for it, but not for ever. The asker may have rows of
// the answer ended, as a second question.
// Thread: ctrl.
#pragma once

#include "lb/base/time.h"
#include "lb/pick/inflight.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

struct inflight_ask;
struct inflight_desk; // where askers wait for each other
struct workers;

// workers is borrowed and outlives it; NULL is none. NULL = out of memory.
struct inflight_desk *inflight_desk_new(struct workers *);
void inflight_desk_free(struct inflight_desk *); // after all asks; NULL is fine

// A worker that says nothing for so long, from when it could be asked, is left out.
#define INFLIGHT_PATIENCE_NS (5 * NS_PER_SECOND)
// Who waits so long for others' questions is sent away. Both together are less than shuntctl waits.
#define INFLIGHT_QUEUE_NS (4 * NS_PER_SECOND)

// Copies the query. The desk is borrowed and outlives it. NULL = out of memory.
struct inflight_ask *inflight_ask_new(
	struct inflight_desk *, const struct lb_inflight_query *, uint64_t now_ns);
// At any time: what a worker has yet to say is waited for by who asks next. NULL is fine.
void inflight_ask_free(struct inflight_ask *);

enum inflight_progress {
	INFLIGHT_PENDING, // look again
	INFLIGHT_ANSWERED, // the rest of the calls are for then
	INFLIGHT_BUSY, // others were asking all the time: no worker was asked
};
// Asks and gathers as far as it goes.
enum inflight_progress inflight_ask_poll(struct inflight_ask *, uint64_t now_ns);

struct inflight_told {
	const struct lb_inflight_row *row; // borrowed until inflight_ask_free()
	uint32_t worker;
};
struct inflight_sum {
	uint64_t n_all, n_matching; // of all workers that answered
	const struct inflight_told *rows; // owned by the ask; the oldest first
	uint32_t n_rows;
};
// Once. False = out of memory.
bool inflight_ask_sum(struct inflight_ask *, struct inflight_sum *ret);
// The numbers of workers that said nothing. NULL = out of memory.
json_t *inflight_ask_silent(const struct inflight_ask *);

// After the sum: the row of this number is to end.
void inflight_ask_mark(struct inflight_ask *, uint32_t row);
// All marked rows: to be polled again, until it is answered.
void inflight_ask_end(struct inflight_ask *, uint64_t now_ns);
// Then: how many were there still, and have ended. The rows are no longer to be read.
uint32_t inflight_ask_n_ended(const struct inflight_ask *);
