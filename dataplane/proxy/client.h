// SPDX-License-Identifier: Apache-2.0
// Client connections: accepted on a frontend, fed to HTTP/2, closed. What their streams ask for is
// request.h's.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/conn.h"
#include "dataplane/proxy/queue.h"
#include "dataplane/proxy/source.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_client {
	struct proxy_conn conn; // first
	struct proxy_client *next, *prev; // in the proxy's list, while conn.h2
	struct proxy_source *source; // it counts there
	struct proxy_list answered; // requests answered in full while their body still comes
	struct twheel_timer window_timer; // the oldest wait of a stream for window is too long
	struct twheel_timer block_timer; // a header block is open for too long
	struct twheel_timer leave_timer; // leaves: the first GOAWAY, the last one, then the end
	uint64_t generation; // of its listener when it was accepted; 0 = there was none
	uint64_t leave_by_ns; // of one that leaves and was told to
	uint64_t random; // its own, for hashing (HP-08)
	uint32_t block_id; // of its stream, 0 = none is open
	uint16_t frontend;
	bool leaves; // since its listener became another one
	bool cut; // by a drain's deadline
	bool broke_protocol; // why it is over
	bool drained; // heard the last GOAWAY: goes when its streams are gone
};

// tcp_accept_fn; arg is a proxy_listener.
const struct tcp_conn_ops *proxy_client_accept(void *arg, struct tcp_conn *, void **ret_user);
// GOAWAY, then FIN.
void proxy_client_close(struct proxy_client *, enum h2_error);
// RST at once.
void proxy_client_abort(struct proxy_client *);
