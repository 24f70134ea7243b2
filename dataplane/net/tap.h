// SPDX-License-Identifier: Apache-2.0
// The tap of a packet capture at one port: copies of the frames that are wanted go into the
// worker's ring (lb/pick/capture.h). What is sent passes through it as another device, which stands
// in front of the port's own only while there is a capture; what is received is shown to it. Copies
// have the VLAN tag that the port takes out and puts in.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/net.h"
#include "lb/pick/capture.h"

struct net_tap {
	struct net_device device; // the port's own
	struct lb_capture *to; // borrowed
	const struct net_tunnels *tunnels; // borrowed; NULL = none
	uint32_t port; // of shunt.yaml
	uint16_t vlan; // of the port; 0 = none
	uint8_t *open; // reserved, not sent yet
};

// The device that copies what is sent on its way to tap->device. The tap outlives it.
struct net_device net_tap_device(struct net_tap *);
// Copies the frame if it is wanted: only its first `len` bytes are here, of full_len. Returns the
// record, to which a cause may be added until the next publication; NULL = there is none.
struct lb_capture_record *net_tap_take(struct net_tap *, enum lb_capture_way, const uint8_t *frame,
	uint32_t len, uint32_t full_len);
