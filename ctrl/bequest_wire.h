// SPDX-License-Identifier: Apache-2.0
// What a process that is followed leaves to the newer one (docs/takeover.md), as bytes. The two may
// be of different versions: records and fields that are not known are skipped.
//   "SHBQ", format (16 bit, 1), zero (16 bit), then records: kind (16 bit), length (16 bit), and
//   fields: id (16 bit), length (16 bit), bytes.
// Numbers are in network order; the endpoints behind a cluster's record are its own.
// Thread: any; a text belongs to its writer.
#pragma once

#include "ctrl/assemble/assemble.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BEQUEST_MAX_LEN ((size_t)32 << 20)
#define BEQUEST_MAX_ADDRESSES 64 // of one endpoint
#define BEQUEST_SECRET 32 // bytes

struct bequest_writer {
	uint8_t *bytes;
	size_t len, room;
	bool has_leaf; // the endpoints that come have their leaf's record before them
	uint32_t n_left_out; // for which there was no room
};
[[nodiscard]] bool bequest_wire_begin(struct bequest_writer *); // false = out of memory
// Endpoints of this leaf follow.
void bequest_wire_leaf(struct bequest_writer *, const char *cluster, const char *leaf);
void bequest_wire_endpoint(struct bequest_writer *, const struct assembler_bequest *);
void bequest_wire_override(struct bequest_writer *, const char *cluster, const struct ip_port *,
	const struct override *);
// Of session tickets. No memory keeps it that the writer gives back (TLS-220).
void bequest_wire_secret(struct bequest_writer *, const uint8_t secret[BEQUEST_SECRET]);
void bequest_wire_fini(struct bequest_writer *);

struct bequest_events { // all is borrowed for the call
	void (*on_endpoint)(void *ctx, const struct assembler_bequest *);
	void (*on_override)(
		void *ctx, const char *cluster, const struct ip_port *, struct override);
	void (*on_secret)(void *ctx, const uint8_t secret[BEQUEST_SECRET]); // in `bytes`
};
// Tells what is in it, or nothing at all if anything is malformed. Returns 0, or -EPROTO.
[[nodiscard]] int bequest_wire_read(
	const uint8_t *bytes, size_t len, const struct bequest_events *, void *ctx);
