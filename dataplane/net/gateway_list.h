// SPDX-License-Identifier: Apache-2.0
// The gateways of a port, and the table by which flows choose among several of one family.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/net.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct neigh;

struct net_gateway {
	struct twheel_timer timer; // of the worker that watches
	struct net *net; // borrowed
	struct ip_addr ip;
	struct neigh *neigh; // kept for it; NULL = found like any other
	uint8_t port, index; // its place in struct lb_gateways
	bool silent; // the last question left to it had no answer
	// The watch.
	bool asked; // a question is open
	uint8_t n_missed, n_answered; // questions in a row
	uint16_t n_heard; // of its neighbor, when it was asked
	uint64_t asked_ns;
};

// Slots rather than a choice for each packet: what a flow does not choose costs it nothing, and a
// change of one gateway moves the slots of that one alone.
#define NET_HOP_SLOTS 128
struct net_hops {
	struct neigh *slots[NET_HOP_SLOTS]; // NULL = not more than one
};

// Number of a port's hops of one family.
#define NET_MAX_HOPS (2 * NET_MAX_PORTS)
static inline uint32_t net_hops_of(uint32_t port, bool v4)
{
	return 2 * port + !v4;
}

// Borrowed; NULL = it is none of them.
static inline struct net_gateway *net_gateway_find(
	struct net_gateway *list, uint32_t n, const struct ip_addr *ip)
{
	for (uint32_t i = 0; i < n; i++)
		if (ip_eq(&list[i].ip, ip))
			return &list[i];
	return NULL;
}
