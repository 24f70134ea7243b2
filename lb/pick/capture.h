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
#include <stddef.h>
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
	uint64_t begin_ns, end_ns; // of the turn, by the worker's clock: in its first record alone
	uint32_t len; // of the frame
	uint32_t kept; // bytes of it that follow
	union {
		struct {
			// Frames of this port for which there was no room since the one before.
			uint32_t n_lost;
			uint8_t interface;
			uint8_t way : 1; // enum lb_capture_way
			uint8_t is_first : 1; // of a turn
			struct lb_capture_cause cause;
		};
		uint64_t about; // all of these
	};
	uint8_t bytes[];
};

struct lb_capture {
	struct lb_capture_ask ask; // w: ctrl, while the worker captures nothing; r: worker
	// Commands that the worker has carried out. w: worker (release), r: ctrl (acquire)
	uint32_t n_heard;
	uint64_t now_ns; // the worker's: of its turn
	uint8_t *turn; // the worker's: where the first record of its turn begins in the ring
	uint32_t n_lost[LB_CAPTURE_PORTS]; // the worker's: see above
	struct record_ring ring; // w: worker, r: who writes the file
	// Of all captures: frames that were wanted, and for which the ring had no room. w: worker
	// (relaxed), r: any
	uint64_t n_dropped[LB_CAPTURE_PORTS];
	// The reader's: of the oldest record's turn, and whether something was sent in it before.
	_Alignas(64) uint64_t begin_ns;
	uint64_t end_ns;
	bool late;
};

// ring_size: bytes, LB_CAPTURE_RING but in tests. NULL = out of memory.
struct lb_capture *lb_capture_new(uint32_t ring_size);
void lb_capture_free(struct lb_capture *); // NULL is fine

static inline uint32_t lb_capture_size(uint32_t kept) // of a record
{
	return (uint32_t)offsetof(struct lb_capture_record, bytes) + kept;
}
// lb_capture_record.about of the frames of a port and way of which none was lost before.
static inline uint64_t lb_capture_about(uint32_t interface, enum lb_capture_way way)
{
	const struct lb_capture_record r = {
		.interface = (uint8_t)interface, .way = (uint8_t)way & 1};
	return r.about;
}

// Room for a frame that is wanted, of which all but the bytes is set: the caller writes `kept` of
// them. The reader sees it when the turn is over. NULL = the ring is full, which is counted.
// Thread: the worker.
struct lb_capture_record *lb_capture_place(
	struct lb_capture *, uint32_t interface, enum lb_capture_way, uint32_t len);
// The same of a whole frame of a port of which none was lost since its last one. NULL =
// lb_capture_place() is to be called in its place. about: lb_capture_about() of the port and way.
static inline struct lb_capture_record *lb_capture_place_next(
	struct lb_capture *c, uint64_t about, uint32_t len)
{
	struct lb_capture_record *r = record_ring_place_next(&c->ring, lb_capture_size(len));
	if (__builtin_expect(!r, 0))
		return NULL;
	r->len = r->kept = len;
	r->about = about;
	return r;
}
// A turn begins, and the one before is over: all that was placed may be read. Thread: the worker.
static inline void lb_capture_turn(struct lb_capture *c, uint64_t now_ns)
{
	if (!record_ring_is_published(&c->ring)) {
		struct lb_capture_record *first = (void *)(c->turn + RECORD_RING_HEADER);
		first->begin_ns = c->now_ns;
		first->end_ns = now_ns;
		first->is_first = true;
		c->turn = c->ring.next;
		record_ring_publish(&c->ring);
	}
	c->now_ns = now_ns;
}
// The oldest frame that may be read, and when it was received or sent, by the worker's clock: as
// its turn began or, once that had sent something, as it was over, since a look at the clock for
// each would cost more than its copy. Times never fall from frame to frame. NULL = there is none.
// Thread: the reader, who passes it with record_ring_pass().
const struct lb_capture_record *lb_capture_peek(struct lb_capture *, uint64_t *ret_at_ns);
// A command has been carried out. Thread: the worker.
static inline void lb_capture_heard(struct lb_capture *c)
{
	__atomic_store_n(&c->n_heard, c->n_heard + 1, __ATOMIC_RELEASE);
}
