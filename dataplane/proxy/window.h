// SPDX-License-Identifier: Apache-2.0
// HTTP/2's windows of both sides, which follow what comes in a round trip
// (docs/decisions/windows.md): callbacks of h2_events, for connections whose user begins with a
// struct proxy_conn.
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

uint64_t proxy_window_round_trip_ns(const struct h2_conn *);
// Of a client, for bodies of requests.
void proxy_window_of_client(struct h2_conn *, struct h2_stream *, bool is_short);
// Of a backend, for answers: a stream's by what its client's buffer allows (client_buffer.h).
void proxy_window_of_upstream(struct h2_conn *, struct h2_stream *, bool is_short);
