// SPDX-License-Identifier: Apache-2.0
// One way of a relay (relay.h): frames from one process to another, in memory that both have
// mapped. The other may be of another version, or broken: no pointer is shared, no number of its
// is believed, and a frame is copied before anybody looks at it.
// Thread: put on the one writer, take on the one reader, each with a cursor of its own.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_MIN_SLOT 128u
#define RELAY_MAX_SLOT 16384u
#define RELAY_MAX_SLOTS 4096u
#define RELAY_SLOT_HEAD 8u // of a slot: the frame's length, and its way

// What a frame is: both ends may write to the same ring in turn, before and after a device passed
// from one to the other, and what was received must not be sent.
enum relay_way {
	RELAY_RECEIVED = 1, // by the device, for who has none
	RELAY_TO_SEND, // from who has none, for the device
	RELAY_RECEIVED_UNMADE, // as the first; but its sender left the checksum to hardware
};

struct relay_shape {
	uint32_t n_slots; // power of two
	uint32_t slot_size; // bytes, a multiple of 64
};
// What it takes in memory that is zero at first; a multiple of 64. 0 = there is no such shape.
size_t relay_ring_size(const struct relay_shape *);

// One end.
struct relay_cursor {
	uint8_t *ring; // borrowed; at a multiple of 64 bytes
	struct relay_shape shape;
	uint32_t at; // the next slot to write, or to read
	bool broken; // the other end's number cannot be: the ring is used no more
};
void relay_cursor_init(struct relay_cursor *, uint8_t *ring, const struct relay_shape *);

// Frames that fit.
uint32_t relay_cursor_room(struct relay_cursor *);
// Seen by the reader at once. False = there is no room, or the frame is too long.
[[nodiscard]] bool relay_cursor_put(
	struct relay_cursor *, enum relay_way, const uint8_t *frame, size_t len);
// Copies the oldest frame to `to`, which has that much room, and passes it. Returns its length; 0:
// there is none; or -EPROTO: one was passed that is malformed, or too long for `to`.
[[nodiscard]] int relay_cursor_take(
	struct relay_cursor *, enum relay_way *ret_way, uint8_t *to, size_t room);
// The way of the oldest frame, as the other end says, which stays. False = there is none.
[[nodiscard]] bool relay_cursor_peek(const struct relay_cursor *, enum relay_way *ret_way);
