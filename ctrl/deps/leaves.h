// SPDX-License-Identifier: Apache-2.0
// The leaves of an aggregate cluster, flat (gRFC A37, A75; A75-G*, A37-G*): depth first in the
// listed order, each once where it comes first, loops and faulty clusters left out. Part of the
// dependency manager.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node;
struct nodes;

#define LEAVES_MAX_DEPTH 16 // the root has depth 0: gRFC A37
#define LEAVES_MAX_FAULTY_TOLD 3

struct leaves {
	// The caller's, with room for all clusters taken (nodes_take()).
	struct node **list;
	uint32_t n;
	// The first clusters that were left out because of errors.
	const struct node *faulty[LEAVES_MAX_FAULTY_TOLD];
	uint32_t n_faulty; // number of all of them
	const char *too_deep; // the cluster beyond the depth limit; NULL = none
};

// Of the last pass that was complete. Once found to be too deep, the rest means nothing.
//
// Each aggregate is a root of its own, so the walks take as long as the lists that they make and
// the graphs behind them together: the visited set must not be shared (A37-G05).
void leaves_find(struct nodes *, const struct node *root, struct leaves *);
