// SPDX-License-Identifier: Apache-2.0
// The lookup table of Google's Maglev (NSDI 2016, section 3.4), as L4 tiers fill it: each host
// takes the next free place of an order of its own, in turns.
// Thread: any. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MAGLEV_SIZE 65537 // a prime; Katran's

// hosts: numbers below 2^32 - 1 in any order that stays, n >= 1. False = out of memory.
bool maglev_fill(uint32_t table[MAGLEV_SIZE], const uint32_t *hosts, uint32_t n);
