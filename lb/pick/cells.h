// SPDX-License-Identifier: Apache-2.0
// The list that a pick chooses from, in versions that share all unchanged pages: a change copies
// the path from the root to one page, however long the list is. A page that belongs to only one
// version is changed in place, so building a list is linear. Not a table by key.
// Thread: ctrl changes, copies and frees; workers read the versions that pickers hold.
#pragma once

#include "lb/pick/endpoint.h"
#include "lb/pick/limits.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_CELLS_BITS 6
#define LB_CELLS_FAN (1u << LB_CELLS_BITS) // cells of a page, and pages below one
#define LB_CELLS_MAX (1u << (4 * LB_CELLS_BITS))

// A text shared by several versions.
struct lb_text {
	uint32_t n_refs; // ctrl only
	char text[];
};
struct lb_text *lb_text_new(const char *); // count 1; NULL = out of memory
struct lb_text *lb_text_get(struct lb_text *);
void lb_text_put(struct lb_text *); // NULL is fine

// A member as its node's picker sees it.
struct lb_cell {
	union {
		struct lb_endpoint *endpoint; // READY: counted by the page
		struct lb_text *error; // TRANSIENT_FAILURE: counted by the page; NULL = none
	};
	// READY: the endpoint's id, filled in by the page, so that a pick can check for a
	// connection without reading the endpoint.
	uint64_t endpoint_id : 17;
	uint64_t member : 18; // id
	uint64_t state : 2; // enum lb_state
	// For its requests: their ORCA reports are wanted, as LB_EVENT_ORCA (A58-06);
	// active[member] counts them from sending to their end, however they end (A48-02).
	bool wants_report : 1;
	bool counts_active : 1;
	// For sessions (lb/pick/affinity_map.h).
	bool is_target : 1; // its health is in override_host_status (A55-O02)
	// a connection is kept or wanted; otherwise its state means nothing
	bool has_connection : 1;
	bool is_barred : 1; // ejected (A75-O22)
	uint64_t : 6;
	uint64_t weight : 16; // of weighted_round_robin
};
_Static_assert(LB_MAX_MEMBERS <= 1 << 18, "a cell holds any member's id");
_Static_assert(LB_MAX_ENDPOINTS <= 1 << 17, "a cell holds any endpoint's id");
_Static_assert(sizeof(struct lb_cell) == 16, "four cells a cache line");

struct lb_page {
	uint32_t n_refs; // ctrl only
	uint16_t n; // entries
	uint16_t room; // capacity in entries
	union {
		struct lb_page *below; // counted
		struct lb_cell cell;
	} entries[];
};

// One version of the list. All zero = empty.
struct lb_cells {
	struct lb_page *root; // counted; NULL = empty
	uint32_t n;
	uint32_t height; // levels between the root and the pages of cells
};

struct lb_cells lb_cells_share(const struct lb_cells *); // another reference to the same version
void lb_cells_fini(struct lb_cells *); // leaves it empty
// Fills an empty list with n cells, as n pushes would, but faster: calls the function for each
// place in order. Returns 0, or -ENOMEM with the list empty.
[[nodiscard]] int lb_cells_init(struct lb_cells *, uint32_t n,
	struct lb_cell (*cell)(const void *ctx, uint32_t at), const void *ctx);
// All three count the references in the cell. They return 0, or -ENOMEM with the list unchanged.
[[nodiscard]] int lb_cells_push(struct lb_cells *, struct lb_cell);
[[nodiscard]] int lb_cells_set(struct lb_cells *, uint32_t at, struct lb_cell);
[[nodiscard]] int lb_cells_pop(struct lb_cells *);
// Releases the spare capacity after the last push.
void lb_cells_seal(struct lb_cells *);

// at must be less than n.
static inline const struct lb_cell *lb_cells_at(const struct lb_cells *c, uint32_t at)
{
	const struct lb_page *p = c->root;
	for (uint32_t height = c->height; __builtin_expect(height, 0); height--)
		p = p->entries[at >> height * LB_CELLS_BITS & (LB_CELLS_FAN - 1)].below;
	return &p->entries[at & (LB_CELLS_FAN - 1)].cell;
}
