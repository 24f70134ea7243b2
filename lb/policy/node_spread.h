// SPDX-License-Identifier: Apache-2.0
// What round_robin, weighted_round_robin and least_request share: they connect every endpoint and
// keep it connected (RR-01), aggregate states (RR-03) and switch to new lists (RR-04) in the same
// way, and pick among READY members, which they keep as cells. Not a node itself.
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
	struct lb_cells cells; // of the READY members; never empty
	uint32_t slot; // index of the rotation's position
	uint32_t start, step; // of the rotation, in 2^32nds of a full turn; start is random
	uint32_t choice_count;
};

struct lb_spread_kind {
	const struct lb_node_ops *ops; // with the policy's name
	const struct lb_cell *(*pick)(const struct lb_picker *, struct lb_pick_ctx *);
	bool has_slot;
	bool wants_reports, counts_active; // for lb_cell
	// May be NULL:
	void (*configure)(struct lb_spread *, const struct lb_policy_spec *);
	void (*became_ready)(struct lb_spread *, const struct lb_member *);
	uint16_t (*weight)(struct lb_spread *); // weight of a new cell, until weigh()
	// A member of this weight is no longer READY. True = weigh all again.
	bool (*left)(struct lb_spread *, uint16_t weight);
	// Weighs all cells. 0, or -ENOMEM with some weights unchanged.
	int (*weigh)(struct lb_spread *, struct lb_cells *, bool *ret_changed);
};

struct lb_spread {
	struct lb_node base;
	struct lb_spread_list *current; // owned; NULL before the first update
	struct lb_spread_list *pending; // owned; waits to take over (RR-04)
	char *last_error; // owned; NULL = none yet
	uint32_t slot; // UINT32_MAX = none
	uint16_t n_settled;
	uint8_t choice_count; // 2 to 10
	uint8_t published : 4; // enum lb_state
	bool is_published : 1; // and the picker's content has not changed since
	bool is_updating : 1;
	bool must_weigh : 1;
};

// lb_node_ops functions for kinds without state of their own.
struct lb_node *lb_spread_new(
	const struct lb_spread_kind *, struct lb_node_env *, struct lb_node_parent);
void lb_spread_free(struct lb_node *);
void lb_spread_exit_idle(struct lb_node *); // does nothing: these policies are never IDLE
void lb_spread_again(struct lb_node *); // retries after out of memory

// False = out of memory or out of slots, with nothing to undo.
bool lb_spread_init(struct lb_spread *, const struct lb_spread_kind *, struct lb_node_env *,
	struct lb_node_parent);
void lb_spread_fini(struct lb_spread *);
int lb_spread_update(struct lb_node *, const struct lb_node_config *); // of lb_node_ops
// Weighs the current list, and publishes if that changed anything.
void lb_spread_weigh(struct lb_spread *);

// The rotation chose this cell, but the worker has no connection to it: the pick asks for one, and
// a member to which the worker is connected serves meanwhile (MC-04).
__attribute__((noinline)) const struct lb_cell *lb_spread_serve_other(
	const struct lb_spread_picker *, struct lb_pick_ctx *, const struct lb_cell *turn);
static inline const struct lb_cell *lb_spread_serve(
	const struct lb_spread_picker *p, struct lb_pick_ctx *ctx, const struct lb_cell *turn)
{
	if (__builtin_expect(lb_pick_is_connected(ctx, turn), 1))
		return turn;
	return lb_spread_serve_other(p, ctx, turn);
}
