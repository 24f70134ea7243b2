// SPDX-License-Identifier: Apache-2.0
// The memory of a relay between two processes that follow one another: a ring each way for each
// port and worker (relay_ring.h), behind a description of the ports. The older process makes it;
// the newer one maps it by a descriptor.
// Thread: ctrl.
#pragma once

#include "dataplane/net/net.h"
#include "dataplane/relay_ring.h"
#include "lb/base/err.h"
#include "lb/pick/limits.h"

#define RELAY_MAX_NAME 64

struct relay_port {
	char name[RELAY_MAX_NAME]; // of its device, without parameters; "" = it passes to nobody
	uint8_t mac[6];
	uint16_t mtu, vlan; // vlan: 0 = none; frames in the relay have no tag
};

struct relay_memory {
	uint8_t *map; // owned
	size_t size;
	int fd; // owned by who made it; -1 = none
	// As read once, and checked.
	struct relay_shape shape;
	uint32_t n_ports, n_older, n_newer; // n_older, n_newer: workers
	struct relay_port ports[NET_MAX_PORTS]; // by the older one's numbers
};

// Makes one. Returns 0, or -EINVAL with reterr.
[[nodiscard]] int relay_memory_make(struct relay_memory *, const struct relay_port *,
	uint32_t n_ports, uint32_t n_older, uint32_t n_newer, struct lb_err *reterr);
// Maps the one behind fd, which stays the caller's. Returns 0, or -EINVAL with reterr: it may
// shrink, or is not what this version knows.
[[nodiscard]] int relay_memory_map(struct relay_memory *, int fd, struct lb_err *reterr);
void relay_memory_fini(struct relay_memory *); // one that failed is fine

// The ring of one worker to the other process. to_newer: it is the older one's worker.
uint8_t *relay_memory_ring(
	const struct relay_memory *, bool to_newer, uint32_t port, uint32_t worker);
