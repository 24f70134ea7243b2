// SPDX-License-Identifier: Apache-2.0
// Streams of a client that wait for HTTP/2's windows, while TCP may move: who waits too long is
// reset (TH-15).
// Thread: the owning worker.
#pragma once

struct proxy_client;

// Looks at them from now on, until none waits. Call it when one does and window_timer is not armed.
void proxy_client_windows_watch(struct proxy_client *);
