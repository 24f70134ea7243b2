// SPDX-License-Identifier: Apache-2.0
// Steering: which worker a flow belongs to. One function for the whole process: the devices' hash
// (RSS) and queue table if they have them and agree, so that frames arrive at their worker;
// otherwise the same function in software, and workers hand frames over (handover.h). It knows
// frames, but no devices and rings.
// Thread: init and settle on ctrl before workers run, try_device on ctrl; the rest on workers.
#pragma once

#include "dataplane/net/toeplitz.h"
#include "dataplane/tcp/tcp.h"
#include "lb/pick/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_tunnels;

#define STEER_ENTRIES_MAX 512
#define STEER_KEY_MAX 64

struct steer {
	struct toeplitz hash;
	uint32_t n_workers;
	uint32_t mask; // of the hash: number of entries in use - 1
	uint8_t owners[STEER_ENTRIES_MAX];
	uint8_t key[STEER_KEY_MAX];
	bool settled; // key and owners are final
	const struct net_tunnels *tunnels; // borrowed, set before workers run; NULL = none
	// Bit p: port p's device delivers each flow to its worker. w: ctrl while no frames arrive
	// on it, and a worker that saw a violation (relaxed; clears it until the device is
	// replaced), r: workers (relaxed).
	_Alignas(64) uint32_t by_device;
};

// key: STEER_KEY_MAX random bytes, so that an attacker cannot target one worker.
void steer_init(struct steer *, uint32_t n_workers, const uint8_t *key);

// Offers what a device says it does with TCP over either family: a flow goes to the queue in
// `queues` at its hash modulo n_entries. Returns false if this differs from other devices, cannot
// be followed, or leaves out a worker; the device's frames are then steered by software. The first
// device decides for all: offer it key and owners, but use what it reports.
struct steer_device {
	const uint8_t *key;
	size_t key_len;
	const uint16_t *queues;
	uint32_t n_entries; // a power of two
};
bool steer_try_device(struct steer *, uint32_t port, const struct steer_device *);

// Call before workers run: fixes key and owners for all later devices.
void steer_settle(struct steer *);

static inline bool steer_by_device(const struct steer *s, uint32_t port)
{
	return __atomic_load_n(&s->by_device, __ATOMIC_RELAXED) >> port & 1;
}
// The port is another one of that port's device, and trusted if that is.
void steer_follow_port(struct steer *, uint32_t port, uint32_t other);
// The device delivered a flow to the wrong worker. This is checked for each handshake, before there
// is a connection, so that none is lost.
void steer_distrust(struct steer *, uint32_t port);

// The worker that receives packets from this flow's remote side.
uint32_t steer_owner(const struct steer *, const struct tcp_flow *);

// Where a frame belongs:
#define STEER_HERE (-1) // to whoever got it
#define STEER_ALL (-2) // to him, and the others may learn from it
// or to the worker with this number. Errors that quote a segment belong to its flow, those that
// say that the way is narrow to another host that segments go on to (relay.h) to all. only_begins:
// the device delivers flows correctly; look only at segments that open one, and at what tunnels
// bring, of which it knows no flow: that belongs to the flow within.
int steer_frame(const struct steer *, const uint8_t *frame, size_t len, bool only_begins);
// True if the queue on which a frame arrived is evidence of what the device does: a whole segment
// in a valid packet without options. A device does not hash what it does not recognize as TCP, and
// errors that quote a segment may arrive on any queue.
bool steer_is_evidence(const uint8_t *frame, size_t len);
