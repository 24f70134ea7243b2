// SPDX-License-Identifier: Apache-2.0
// HTTP/2's own questions whether a peer is there: a PING now and then. TCP's (tcp_conn_ops,
// on_unanswered) find a host or a path that is gone; these find a program that hangs, too.
// Thread: the owning worker.
#pragma once

#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_conn;
struct lb_silence;

struct proxy_keepalive {
	struct twheel_timer timer;
	uint64_t interval_ns, timeout_ns; // for the connection's life; 0: nothing is asked
	uint32_t received; // bytes, when an answer was last waited for
	uint64_t asked_ns; // when the PING left that waits, or waited last; 0 = none since the rest
};

// When HTTP/2 begins on the connection. Does nothing if no interval is set.
void proxy_keepalive_start(struct proxy_conn *, const struct lb_silence *);
// When it ends.
void proxy_keepalive_stop(struct proxy_conn *);
