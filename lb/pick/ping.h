// SPDX-License-Identifier: Apache-2.0
// Echo requests that an operator wants a worker to send, and what came of each. It belongs to one
// side at a time: the control thread writes what is wanted, lb_ping_ask() makes all of it the
// worker's (LB_COMMAND_PING wakes it), and lb_ping_done() makes it the control thread's again.
// Thread: as tagged; is_free(), ask() and take_back() on ctrl, done() on the worker.
#pragma once

#include "lb/base/ip.h"
#include "lb/base/time.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_PING_MOST 20 // requests of one question
#define LB_PING_INTERVAL_NS (200 * NS_PER_MS)
#define LB_PING_PATIENCE_NS NS_PER_SECOND // for an answer
#define LB_PING_ANY_PORT UINT8_MAX
#define LB_PING_WORKER 0 // all echo replies are its own

enum lb_ping_result {
	LB_PING_WAITS, // not known yet
	LB_PING_ANSWERED,
	LB_PING_TIMEOUT,
	LB_PING_NO_NEIGHBOR, // the next hop answers neither ARP nor neighbor discovery
	LB_PING_UNREACHABLE, // somebody says so
	LB_PING_EXPIRED, // likewise: the way is too long, or a circle
	LB_PING_NO_ROUTE, // by that port, or by any; or it is no host's address, or ours
	LB_PING_NO_ROOM, // for another neighbor, or for the packet
	LB_PING_N_RESULTS,
};

struct lb_ping_reply {
	uint64_t sent_ns, rtt_ns; // of the worker's clock, whose ticks are its turns; ANSWERED
	struct ip_addr from; // who says UNREACHABLE or EXPIRED
	uint8_t result; // enum lb_ping_result
	uint8_t code; // of UNREACHABLE: ICMP's, or ICMPv6's
};

struct lb_ping {
	bool asked; // w: both (release), r: both (acquire): it is the worker's
	struct ip_addr address;
	uint32_t count; // 1 to LB_PING_MOST
	uint8_t port; // that it goes out by, or LB_PING_ANY_PORT
	// The answer.
	struct ip_addr source, hop; // ours, and who takes the packets; :: = there is no way
	uint8_t out_port;
	struct lb_ping_reply replies[LB_PING_MOST];
};

static inline bool lb_ping_is_free(const struct lb_ping *p)
{
	return !__atomic_load_n(&p->asked, __ATOMIC_ACQUIRE); // pairs with done()
}

// The ring of commands brings the worker what was written before.
static inline void lb_ping_ask(struct lb_ping *p)
{
	__atomic_store_n(&p->asked, true, __ATOMIC_RELEASE);
}

// After ask(), if no command was sent.
static inline void lb_ping_take_back(struct lb_ping *p)
{
	__atomic_store_n(&p->asked, false, __ATOMIC_RELAXED);
}

static inline void lb_ping_done(struct lb_ping *p)
{
	__atomic_store_n(&p->asked, false, __ATOMIC_RELEASE); // pairs with is_free()
}
