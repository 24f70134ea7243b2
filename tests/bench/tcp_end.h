// SPDX-License-Identifier: Apache-2.0
// One end of connections for a bench of what carries them: what comes is sent back, or only taken;
// whoever closes is closed in answer.
// Thread: one.
#pragma once

#include "dataplane/tcp/tcp.h"

#define TCP_END_MAX_CONNS 64
#define TCP_END_MAX_MESSAGE 16384

struct tcp_end {
	struct pool *chunks; // borrowed
	bool only_takes;
	uint64_t n_received; // bytes
	struct tcp_conn *conns[TCP_END_MAX_CONNS]; // that it opened
	uint32_t n_conns; // of them, established
	uint64_t n_closed;
};

// Their user is a struct tcp_end.
extern const struct tcp_conn_ops tcp_end_ops;
const struct tcp_conn_ops *tcp_end_accept(void *end, struct tcp_conn *, void **ret_user);
void tcp_end_send(struct tcp_end *, struct tcp_conn *, size_t len);
