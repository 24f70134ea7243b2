// SPDX-License-Identifier: Apache-2.0
// Which places of a snapshot filter chains have: those behind shunt.yaml's frontends, for all
// Listeners together.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct chain_places;
struct config;

#define NO_CHAIN_PLACE UINT32_MAX

// NULL = out of memory.
struct chain_places *chain_places_new(const struct config *);
void chain_places_free(struct chain_places *); // NULL is fine
uint32_t chain_places_n_free(const struct chain_places *);
// The index of a frontend in the snapshot; NO_CHAIN_PLACE = none is free.
uint32_t chain_places_take(struct chain_places *);
void chain_places_give(struct chain_places *, uint32_t place);
