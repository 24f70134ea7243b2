// SPDX-License-Identifier: Apache-2.0
// Whose connection to the stats socket goes when a newcomer finds all places taken, so that neither
// idle connections nor those that follow something lock anybody out (OPS-235).
// Thread: any; it keeps nothing.
#pragma once

#include "ctrl/stats/caller.h"

#include <stdbool.h>
#include <stdint.h>

#define STATS_PLACES 32 // as STATS_CUT says
// Of these so many at least are for callers with a level above STATS_USER, and as many for those
// without one.
#define STATS_PLACES_KEPT 4

struct stats_place {
	enum stats_level level;
	uid_t uid;
	bool waits; // for a command, or for what it follows: no answer is cut short with it
	uint64_t since; // grows from one command, or connection, to the next
};

// The place in taken[0..n) that goes to the newcomer; -1 = there is a free one. n <= STATS_PLACES.
// Where places are short, that of the lowest level goes; among these one of the user who holds
// most, the newcomer counted; among these who waits before who is answered; then the oldest.
int stats_places_victim(
	const struct stats_place *taken, unsigned n, const struct stats_caller *newcomer);
