// SPDX-License-Identifier: Apache-2.0
// The last resort when a worker's chunks run short (TH-85): from half of them in use, the client
// connection for which most is kept and that takes too little of it loses its streams, the newest
// first, until less than half is in use. While there are chunks enough this costs nothing: nobody
// is looked at.
// Thread: the owning worker.
#pragma once

struct proxy;

// Once a turn, before output is pumped: a bounded number of clients is looked at.
void proxy_pressure_relieve(struct proxy *);
