// SPDX-License-Identifier: Apache-2.0
// The far end of an HTTP/2 connection for a bench of the proxy: a client that asks, or a backend
// that answers, unary gRPC requests. It only cuts frames and sends header blocks that were made
// before, so that nearly all that is measured is ours.
// Thread: one.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct far {
	uint32_t next_id; // client
	bool is_warm; // its HPACK table holds all that will ever be in it
	uint32_t received; // body bytes without a WINDOW_UPDATE
	uint8_t out[256 << 10]; // to be given to the proxy by its owner
	size_t out_len;
};

// What the connection begins with. Before any other call once far_make_blocks(), by one thread.
void far_make_blocks(void);
void far_hello(struct far *, bool is_client);
void far_ask(struct far *); // one request more
// What the proxy sent there. Returns how many of the bytes were whole frames, and adds to
// *n_messages those that ended in them: a backend's are answered.
size_t far_hear(
	struct far *, bool is_client, const uint8_t *bytes, size_t len, uint64_t *n_messages);
