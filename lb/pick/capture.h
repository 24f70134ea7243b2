// SPDX-License-Identifier: Apache-2.0
// What a packet capture (docs/capture.md) asks of a worker, and the ring in which the worker's
// copies of frames go to whoever writes the file. A capture is begun and ended by commands
// (lb/pick/link.h); the worker alone touches the ring's writing end, and drops what finds no room.
// Thread: as tagged.
#pragma once

#include "lb/base/counter.h"
#include "lb/base/ip.h"
#include "lb/base/record_ring.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_CAPTURE_PORTS 8 // of shunt.yaml, at most
#define LB_CAPTURE_RING (8u << 20) // bytes of a worker
#define LB_CAPTURE_SNAPLEN 16384 // bytes of a frame at most: more than any has

enum lb_capture_way { LB_CAPTURE_RX, LB_CAPTURE_TX, LB_CAPTURE_WAYS };

// Frames that are wanted: all of these must hold.
struct lb_capture_ask {
	struct ip_addr host; // from or to this address; all zero = any
	uint16_t port; // of TCP or UDP, from or to it; 0 = any
	uint8_t ways; // bits: 1 << enum lb_capture_way
	uint8_t interfaces; // bits: 1 << port of shunt.yaml
	uint32_t snaplen; // bytes that are kept of a frame, 1..LB_CAPTURE_SNAPLEN
};
_Static_assert(LB_CAPTURE_PORTS <= 8, "interfaces are bits");

// Why the worker dropped a received frame: one of its counters, as `show workers` names them.
enum lb_capture_layer { LB_CAPTURE_TAKEN, LB_CAPTURE_NET, LB_CAPTURE_TCP };
struct lb_capture_cause {
	uint8_t layer; // enum lb_capture_layer; LB_CAPTURE_TAKEN = it was not dropped
	uint8_t counter; // its number in the layer's group
};

struct lb_capture_record {
	uint64_t at_ns; // of the worker's clock
	uint32_t len; // of the frame
	uint32_t kept; // bytes of it that follow
	uint32_t n_lost; // frames of this port for which there was no room since the one before
	uint8_t interface;
	uint8_t way; // enum lb_capture_way
	struct lb_capture_cause cause;
	uint8_t bytes[];
};

struct lb_capture {
	struct lb_capture_ask ask; // w: ctrl, while the worker captures nothing; r: worker
	// Commands that the worker has carried out. w: worker (release), r: ctrl (acquire)
	uint32_t n_heard;
	uint64_t now_ns; // the worker's: the time of what it takes now
	uint32_t n_lost[LB_CAPTURE_PORTS]; // the worker's: see above
	struct record_ring ring; // w: worker, r: who writes the file
	// Of all captures: frames that were wanted, and of them those for which the ring had no
	// room. w: worker (relaxed), r: any
	uint64_t n_frames[LB_CAPTURE_PORTS], n_dropped[LB_CAPTURE_PORTS];
};

// ring_size: bytes, LB_CAPTURE_RING but in tests. NULL = out of memory.
struct lb_capture *lb_capture_new(uint32_t ring_size);
void lb_capture_free(struct lb_capture *); // NULL is fine

// Room for a frame that is wanted, of which all but the bytes is set: the caller writes `kept` of
// them. The reader sees it with the next publication. NULL = the ring is full, which is counted.
// Thread: the worker.
struct lb_capture_record *lb_capture_place(
	struct lb_capture *, uint32_t interface, enum lb_capture_way, uint32_t len);
// What was placed so far may be read. Thread: the worker.
static inline void lb_capture_publish(struct lb_capture *c)
{
	record_ring_publish(&c->ring);
}
// A command has been carried out. Thread: the worker.
static inline void lb_capture_heard(struct lb_capture *c)
{
	__atomic_store_n(&c->n_heard, c->n_heard + 1, __ATOMIC_RELEASE);
}
