// SPDX-License-Identifier: Apache-2.0
// When the clients of a fleet connect again: at their connections' age (gRPC A9), and when their
// host says farewell.
// Thread: one.
#pragma once

#include "tools/fleet-sim/fleet.h"

struct clients;
struct farewell;

// At time 0 each connection is somewhere in its life. age_s: 0 = they don't age. Returns NULL if
// out of memory.
struct clients *clients_new(struct fleet *, uint32_t age_s);
void clients_free(struct clients *); // NULL is fine
// Until this time: whoever has reached its age, or is told by a host that leaves (NULL = none
// does), connects again. Who was to be told later draws anew in the next call. The life of one that
// connected for another reason since the last call begins with that call's end. Returns how often a
// connection reached its age.
uint64_t clients_pass(struct clients *, struct farewell *, uint64_t until_ns);
