// SPDX-License-Identifier: Apache-2.0
// What the control thread is told of a worker's connections to endpoints.
// Thread: the owning worker.
#pragma once

struct proxy;
struct proxy_backend;

// It is an endpoint's, and may have changed.
void proxy_backend_tell_later(struct proxy_backend *);
// Reports all changes that the ring has room for; the rest stays listed. Forgets those of whom
// nothing is left.
void proxy_backend_tell_all(struct proxy *);
