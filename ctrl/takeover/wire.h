// SPDX-License-Identifier: Apache-2.0
// What a process that serves and one that is to follow it say to each other, one message a packet
// of a Unix socket (SOCK_SEQPACKET). The two may be of different versions: fields that are not
// known are skipped, and so are messages of the older one, after its first, that are not known.
//   "SHTO", format (16 bit, 1), kind (16 bit), then fields: id (16 bit), length (16 bit), bytes.
// Numbers are in network order.
// Thread: any.
#pragma once

#include "lb/base/cable.h"

#include <stddef.h>
#include <stdint.h>

// In the order in which they are said.
enum takeover_kind {
	TAKEOVER_HELLO = 1, // newer: I am here; text: its version
	TAKEOVER_WELCOME, // older: begin; generation: the newer's, n_behind, text: its version
	TAKEOVER_TAKE, // newer: I could serve
	TAKEOVER_GIVEN, // older: open ports of your own; with what it knows (ctrl/bequest.h)
	TAKEOVER_OPENED, // newer: I have
	TAKEOVER_FREE, // older: what is new is yours
	TAKEOVER_SERVING, // newer: I serve
	TAKEOVER_REFUSED, // older, at any time: no; text: why
	TAKEOVER_CHAIN, // older, once welcome was said: n_behind has changed
	TAKEOVER_LISTENER, // older, before GIVEN, if both pass listeners: with one of its sockets
	TAKEOVER_CABLES, // who is in front, or is told by it: by which cables it sends now
	TAKEOVER_RESOURCES, // older, before WELCOME, if the newer takes them: with its resources
	TAKEOVER_SOURCE, // older, behind WELCOME: text: a source of which it has certificates
	TAKEOVER_LACKS, // newer, to one that says SOURCE: text: why it does not TAKE; "" = it does
	TAKEOVER_UNKNOWN, // and all above: what a later version says
};

#define TAKEOVER_TEXT 128
struct takeover_message {
	enum takeover_kind kind;
	uint32_t generation; // 0 = absent
	uint32_t n_behind; // processes behind the sender
	// Of HELLO and WELCOME: the sender knows of LISTENER. Where one doesn't, both listen beside
	// each other.
	uint32_t passes_listeners; // 0 or 1
	char text[TAKEOVER_TEXT];
	// Of HELLO: the sender's, which can have devices that one process has alone, by a relay
	// that comes with WELCOME (docs/decisions/takeover.md). 0 = it knows of none.
	uint32_t n_workers;
	struct lb_cables cables; // of WELCOME and CABLES: the sender's
	uint32_t takes_resources; // of HELLO: the sender knows of RESOURCES; 0 or 1
	uint32_t n_sources; // of WELCOME: so many SOURCE follow
};

// A text as it arrives: cut, and with '?' in place of what is no printable ASCII.
void takeover_wire_fit(const char *text, char ret[TAKEOVER_TEXT]);

#define TAKEOVER_MAX_MESSAGE 2048
// Returns the length.
size_t takeover_wire_write(const struct takeover_message *, uint8_t ret[TAKEOVER_MAX_MESSAGE]);
// Returns 0, or -EPROTO for what is malformed or of another format.
[[nodiscard]] int takeover_wire_read(
	const uint8_t *bytes, size_t len, struct takeover_message *ret);
