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
	struct net_tap *rx_taps[NET_MAX_PORTS]; // of taps; NULL = what is received is not copied
	uint32_t shared; // bits: ports with a kernel behind them
	uint32_t relayed; // bits: ports with a relay to another process, which may be far
	uint32_t served; // bits: ports for which somebody else sends: shared or relayed
	uint32_t watched; // bits: with any of these, or a tap
	bool at_shared; // the frame at hand came by a port with a kernel
	bool passed; // TCP gave the segment that it looked at to the kernel
	struct exception_end *exception; // borrowed
	struct relay_end *relay; // borrowed; NULL = none
	struct net_tap taps[NET_MAX_PORTS]; // of each port that has any
	struct pool chunks;
	struct twheel *wheel;
	const struct net_tunnels *tunnels; // borrowed; NULL = none
	struct net *net;
	struct tcp_stack *tcp;
	union {
		uint8_t drop_marks[2]; // net's and TCP's
		uint16_t any_drop; // both of them
	};
	char groups[2 * NET_MAX_PORTS][12]; // names of counter groups
};

// Of a port with a relay, the rest of what follows the protocols: a frame that may be another
// process's is given to it. cause: what the protocols made of it.
void host_relay_give(
	struct host *, uint32_t port, const struct rte_mbuf *, const struct lb_capture_cause *);
// Sends what other processes have for that port's device. True = there was something.
bool host_relay_send(struct host *, uint32_t port);

// False = that port has no device just now. One that is back may have another address.
bool host_settle(struct host *, uint32_t port);
