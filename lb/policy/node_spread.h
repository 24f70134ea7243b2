// SPDX-License-Identifier: Apache-2.0
// What round_robin, weighted_round_robin and least_request have in common: they connect every
// endpoint and keep it so (RR-01), aggregate states alike (RR-03), have new lists take
// over alike (RR-04), and pick among the READY ones, which they keep as cells. Not a node itself.
// Thread: ctrl; the functions for pickers on workers.
#pragma once

#include "lb/pick/cells.h"
#include "lb/pick/picker.h"
#include "lb/policy/node.h"
#include "lb/policy/node_error.h"

struct lb_spread;
struct lb_spread_list;

struct lb_spread_picker {
	struct lb_picker base;
	struct lb_cells cells; // READY ones; never empty
	uint32_t slot; // of the places in the rotation
	uint32_t start, step; // of the rotation, in 2^32nds of a turn; start is random
	uint32_t choice_count;
};

struct lb_spread_kind {
	const struct lb_node_ops *ops; // which name it
	const struct lb_cell *(*pick)(const struct lb_picker *, struct lb_pick_ctx *);
	bool has_slot;
	bool wants_reports, counts_active; // lb_cell's
	// These may be NULL.
	void (*configure)(struct lb_spread *, const struct lb_policy_spec *);
	void (*became_ready)(struct lb_spread *, const struct lb_member *);
	uint16_t (*weight)(struct lb_spread *); // of a new cell, until weigh()
	// One that weighs so much is READY no more. True = all are to be weighed again.
	bool (*left)(struct lb_spread *, uint16_t weight);
	// Weighs all. 0, or -ENOMEM: some are as before.
	int (*weigh)(struct lb_spread *, struct lb_cells *, bool *ret_changed);
};

struct lb_spread {
	struct lb_node base;
	struct lb_spread_list *current; // owned; NULL before the first update
	struct lb_spread_list *pending; // owned; waits for its turn (RR-04)
	char *last_error; // owned; NULL = none yet
	uint32_t slot; // UINT32_MAX = has none
	uint16_t n_settled;
	uint8_t choice_count; // 2 to 10
	uint8_t published : 4; // enum lb_state
	bool is_published : 1; // and nothing that the picker holds has changed since
	bool is_updating : 1;
	bool must_weigh : 1;
};

// Of lb_node_ops, for kinds that hold nothing of their own.
struct lb_node *lb_spread_new(
	const struct lb_spread_kind *, struct lb_node_env *, struct lb_node_parent);
void lb_spread_free(struct lb_node *);
void lb_spread_exit_idle(struct lb_node *); // nothing: they are never IDLE
void lb_spread_again(struct lb_node *); // what there was no memory for

// False = out of memory or slot: nothing is left to undo.
bool lb_spread_init(struct lb_spread *, const struct lb_spread_kind *, struct lb_node_env *,
	struct lb_node_parent);
void lb_spread_fini(struct lb_spread *);
int lb_spread_update(struct lb_node *, const struct lb_node_config *); // of lb_node_ops
// Weighs the current list, and publishes if that changed something.
void lb_spread_weigh(struct lb_spread *);

// The turn is this cell's. Where the worker lacks a connection to it, it gets one, and somebody
// whom it has one to serves meanwhile (MC-04).
__attribute__((noinline)) const struct lb_cell *lb_spread_serve_other(
	const struct lb_spread_picker *, struct lb_pick_ctx *, const struct lb_cell *turn);
static inline const struct lb_cell *lb_spread_serve(
	const struct lb_spread_picker *p, struct lb_pick_ctx *ctx, const struct lb_cell *turn)
{
	if (__builtin_expect(lb_pick_is_connected(ctx, turn), 1))
		return turn;
	return lb_spread_serve_other(p, ctx, turn);
}
