// SPDX-License-Identifier: Apache-2.0
// What the files behind host.h share: host.c (life of a host, and what it does besides),
// host_input.c (received frames). Nobody else includes this.
// Thread: the polling thread.
#pragma once

#include "dataplane/host.h"
#include "dataplane/net/tap.h"

struct host {
	uint32_t n_ports;
	struct port *ports[NET_MAX_PORTS];
	bool owns[NET_MAX_PORTS]; // the port of that number
	bool announces; // it is the one that tells the links who we are
	uint32_t n_link_ups[NET_MAX_PORTS]; // those that were announced to
	struct port_queue *queues[NET_MAX_PORTS]; // borrowed, one of each port
	uint32_t tapped; // bits: ports whose received frames are copied
	uint32_t shared; // bits: ports with a kernel behind them
	uint32_t watched; // either
	bool at_shared; // the frame at hand came by a port with a kernel
	bool passed; // TCP gave the segment that it looked at to the kernel
	struct exception_end *exception; // borrowed
	struct net_tap taps[NET_MAX_PORTS]; // of those, and of queues whose sent ones are
	struct pool chunks;
	struct twheel *wheel;
	const struct net_tunnels *tunnels; // borrowed; NULL = none
	struct net *net;
	struct tcp_stack *tcp;
	const uint8_t *drop_marks[2]; // borrowed: net's and TCP's
	char groups[2 * NET_MAX_PORTS][12]; // names of counter groups
};

// False = that port has no device just now. One that is back may have another address.
bool host_settle(struct host *, uint32_t port);
