// SPDX-License-Identifier: Apache-2.0
// How connections that end at their age (gRPC A9) spread over hosts that have come.
// Thread: one.
#pragma once

#include "tools/fleet-sim/fleet.h"

struct aging;

// Each connection is somewhere in its life. Returns NULL if out of memory.
struct aging *aging_new(struct fleet *, uint32_t age_s);
void aging_free(struct aging *); // NULL is fine
// Until this time, from 0: whoever has reached its age connects again. The life of one that did for
// another reason since the last call begins with this one. Returns how many have reached it.
uint32_t aging_pass(struct aging *, uint32_t until_s);
