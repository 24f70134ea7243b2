// SPDX-License-Identifier: Apache-2.0
// Clients for which too much is kept: they lose streams, or the connection. Who has more than its
// bound is watched (TH-86, TH-139); when chunks are short, see pressure.h.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/counters.h"

struct h2_stream;
struct proxy_client;

// Sends RST at once; `why` counts.
void proxy_client_cut(struct proxy_client *, enum proxy_counter why);
// Ends one of its streams.
void proxy_client_cut_stream(struct proxy_client *, struct h2_stream *, enum proxy_counter why);
// If there is more than its bound, it is to take a part of its answers within a second. Call it
// when more than proxy_client_buffer_little() waits and buffer.timer is not armed.
void proxy_client_cut_watch(struct proxy_client *);
