// SPDX-License-Identifier: Apache-2.0
// Which handshakes give way when places run short (TH-140): those with clients of one link, in the
// order in which their peers were last asked for something, by our answer or by the beginning.
// While they have more than half of the link's places, or more than half of all handshakes that may
// be open are, a peer has so much time until it is our turn again. So half is left to those who
// come, as Linux leaves half of a queue of SYNs to the young (docs/decisions/handshakes.md). Bytes
// that get no answer win no time, and what waits in our queues is not late. Of those that are
// late one of the source with most handshakes goes first.
// Thread: the handshake thread whose link it is.
#pragma once

#include "lb/base/list.h"
#include "tlshs/seat.h"

#include <stdint.h>

struct tlshs_owing {
	struct list_link seats; // the peer that was asked first in front
	uint32_t n, max; // max: places of the link
	uint64_t patience_ns;
};

void tlshs_owing_init(struct tlshs_owing *, uint32_t max, uint64_t patience_ns);
// A handshake with a client has begun.
void tlshs_owing_add(struct tlshs_owing *, struct tlshs_seat *, uint64_t now_ns);
// Its peer was told something. No effect on a seat that was not added.
void tlshs_owing_renew(struct tlshs_seat *, uint64_t now_ns);
// It is over. Likewise.
void tlshs_owing_remove(struct tlshs_seat *);
// Who is to give way now; NULL = there are places enough, or nobody is late.
struct tlshs_seat *tlshs_owing_find(
	const struct tlshs_owing *, const struct tlshs_census *, uint64_t now_ns);
