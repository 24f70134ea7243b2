// SPDX-License-Identifier: Apache-2.0
// The tap of a packet capture at one port: copies of the frames that are wanted go into the
// worker's ring (lb/pick/capture.h). Whoever has the port's frames shows them to it, while there is
// a capture that wants any of that way. Copies have the VLAN tag that the port takes out of what it
// received.
// Thread: the owning worker.
#pragma once

#include "lb/pick/capture.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct net_tunnels;

struct net_tap {
	struct lb_capture *to; // borrowed
	const struct net_tunnels *tunnels; // borrowed; NULL = none
	uint32_t port; // of shunt.yaml
	uint16_t vlan; // of the port; 0 = none
	bool plain[LB_CAPTURE_WAYS]; // all frames are wanted, whole and as they are
	bool quick[LB_CAPTURE_WAYS]; // and none was lost since the last one
	uint64_t about[LB_CAPTURE_WAYS]; // of their records
	// Of the frame that was received last, until the turn is over; NULL = it has none.
	struct lb_capture_record *received;
};

// For a capture that begins, and whose conditions stay as they are until its end.
void net_tap_init(struct net_tap *, struct lb_capture *, const struct net_tunnels *, uint32_t port,
	uint16_t vlan);

// As net_tap_take(), with whatever conditions and tag, and however full the ring is.
void net_tap_choose(struct net_tap *, enum lb_capture_way, const uint8_t *frame, uint32_t len,
	uint32_t full_len);
// Copies the frame if it is wanted: only its first `len` bytes are here, of full_len. One that is
// sent is as it goes to the device. Whoever has received it may add a cause to net_tap.received.
// The copy is the last thing that is done, so that a function which ends with it saves no register.
static inline void net_tap_take(struct net_tap *t, enum lb_capture_way way, const uint8_t *frame,
	uint32_t len, uint32_t full_len)
{
	struct lb_capture_record *r = NULL;
	if (t->quick[way])
		r = lb_capture_place_next(t->to, t->about[way], len);
	if (__builtin_expect(!r, 0)) {
		net_tap_choose(t, way, frame, len, full_len);
		return;
	}
	if (way == LB_CAPTURE_RX)
		t->received = r;
	r->len = full_len;
	memcpy(r->bytes, frame, r->kept);
}
