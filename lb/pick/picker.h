// SPDX-License-Identifier: Apache-2.0
// One pick = one endpoint for one request. Pure: no clock, no I/O, no lock, no log. A picker is the
// immutable result of a policy's state machine and part of the snapshot.
// Thread: pick() on workers; get/put on ctrl.
#pragma once

#include "lb/base/rand.h"
#include "lb/pick/cells.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_hash_policy;
struct lb_req;

// A request's hash, stored in it for its retries (HP-06).
struct lb_pick_hash {
	uint64_t value;
	bool known; // false = the first picker that asks computes it
};

// Input of the hash. All zero = a random hash.
struct lb_hash_recipe {
	const struct lb_hash_policy *policies;
	uint32_t n;
	bool hides_transport; // lb_route_hides_transport()
};

enum lb_pick_kind {
	LB_PICK_ENDPOINT, // cell: use this worker's connection to it
	LB_PICK_QUEUE, // wait
	LB_PICK_FAIL, // fails requests that do not wait for ready; text says why
};
// Everything that a pick may return. Pointers belong to the picker.
struct lb_pick {
	enum lb_pick_kind kind;
	const struct lb_cell *cell; // ENDPOINT: READY, and this worker has a connection to it
	// ENDPOINT, QUEUE: the preferred endpoint, to which this worker has no connection: open one
	// (MC-04..MC-06). NULL = none.
	struct lb_endpoint *want;
	// QUEUE, or ENDPOINT while another endpoint serves (RH-10): id + 1 of an IDLE member, which
	// the control thread must connect (lb_member_connect); it does not learn from a worker's
	// own attempts. Once per member and snapshot is enough. 0 = none.
	uint32_t connect_request;
	const char *text; // FAIL: for operators and grpc-message
};

// What a pick may use of its worker.
struct lb_pick_ctx {
	const struct lb_req *req; // borrowed for the call
	struct rand *rand; // this worker's generator
	// ready[id / 64] >> (id % 64) & 1: this worker holds a connection to endpoint id (MC-04).
	const uint64_t *ready;
	struct lb_pick_hash *hash; // of the request
	struct lb_hash_recipe recipe; // input of hash while it is unknown
	char *scratch; // for recipe: space for joined values
	size_t scratch_size;
	// This worker's positions, by slot of lb_node_env.slot_take; each starts anywhere (MC-10).
	uint32_t *positions;
	// By member: requests in flight over all workers (MC-12). w, r: workers (relaxed). NULL =
	// all zero.
	const uint32_t *active;
	struct lb_pick other; // set by the picker when it returns NULL
};

// Computed when the first picker asks: most never do.
uint64_t lb_pick_hash(struct lb_pick_ctx *);

#define LB_PICKER_STATIC UINT32_MAX
struct lb_picker {
	uint32_t n_refs; // ctrl only; LB_PICKER_STATIC = not counted, never freed
	// Returns the cell to use, the common case; NULL = the result is in ctx->other. Pickers
	// that delegate, like those of priorities and weights, can thus tail-call the next one.
	const struct lb_cell *(*pick)(const struct lb_picker *, struct lb_pick_ctx *);
	void (*free)(struct lb_picker *);
};

static inline struct lb_pick lb_pick(const struct lb_picker *p, struct lb_pick_ctx *ctx)
{
	const struct lb_cell *cell = p->pick(p, ctx);
	return cell ? (struct lb_pick){.kind = LB_PICK_ENDPOINT, .cell = cell} : ctx->other;
}
// Helpers for pickers.
static inline bool lb_pick_is_connected(const struct lb_pick_ctx *ctx, const struct lb_cell *c)
{
	uint32_t id = c->endpoint_id;
	return ctx->ready[id / 64] >> (id % 64) & 1;
}
// Return values for pickers.
static inline const struct lb_cell *lb_pick_other(struct lb_pick_ctx *ctx, struct lb_pick other)
{
	ctx->other = other;
	return NULL;
}

struct lb_picker *lb_picker_get(struct lb_picker *);
void lb_picker_put(struct lb_picker *); // NULL is fine
struct lb_picker *lb_picker_queue(void); // always QUEUE; one static object, never NULL
struct lb_picker *lb_picker_new_fail(const char *text); // always FAIL; copies text
// The text of a picker made by new_fail(); NULL for any other picker, or for NULL.
const char *lb_picker_error(const struct lb_picker *);
