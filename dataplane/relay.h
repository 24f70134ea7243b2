// SPDX-License-Identifier: Apache-2.0
// Relays: where a device can be one process's alone, and one process follows another, the one that
// has the device passes to the other what may be its own, and sends what that gives it. A process
// has two at most: to the older process and to the newer one. For each port it is *near* on a relay
// whose other end needs the port's device, and *far* on one through which it has the device itself
// (port.h says which). Nothing of a relay blocks: what finds no room is dropped and counted.
// Thread: relays_* on ctrl; relay_end_* on the worker whose end it is.
#pragma once

#include "dataplane/relay_memory.h"
#include "lb/base/counter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum relay_side { RELAY_TO_OLDER, RELAY_TO_NEWER, RELAY_N_SIDES, RELAY_NONE = RELAY_N_SIDES };

struct relays;
struct relay_end;

// NULL = out of memory.
struct relays *relays_new(uint32_t n_workers);
void relays_free(struct relays *); // behind the last worker; NULL is fine
struct relay_end *relays_end(struct relays *, uint32_t worker); // borrowed

// Takes the memory. its_ports: of each of our ports its number there, -1 = none. Workers use it
// once each has followed, which they are to be told: relay_end_follow().
// Returns 0 or -ENOMEM.
[[nodiscard]] int relays_set(struct relays *, enum relay_side, struct relay_memory *,
	const int its_ports[NET_MAX_PORTS]);
// The other process is gone: once workers have followed, relays_tidy() frees the memory.
void relays_drop(struct relays *, enum relay_side);
bool relays_has(const struct relays *, enum relay_side);
// Call now and then.
void relays_tidy(struct relays *);

// Uses what ctrl has set by now.
void relay_end_follow(struct relay_end *);
// True = that port has a relay on that side.
bool relay_end_has(const struct relay_end *, enum relay_side, uint32_t port);
// Gives a frame. is_copy: it is for many, and anybody on the link can cause it: such leave half of
// the room to others. False = there was no room, which is counted.
bool relay_end_give(struct relay_end *, enum relay_side, uint32_t port, enum relay_way,
	bool is_copy, const uint8_t *frame, size_t len);
// Takes a frame from the other process: one to send, or one that was received. Those of the other
// way before it are dropped. Returns its length, 0 = there is none for now.
uint32_t relay_end_take(struct relay_end *, enum relay_side, uint32_t port, bool to_send,
	uint8_t *to, size_t room, enum relay_way *ret_way);
// True if the next frame of one of its workers was received: that process has the device.
bool relay_end_has_received(const struct relay_end *, enum relay_side, uint32_t port);
// A frame that was taken could not be sent.
void relay_end_count_unsent(struct relay_end *);
struct counter_set relay_end_counters(const struct relay_end *);
