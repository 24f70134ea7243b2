// SPDX-License-Identifier: Apache-2.0
// Which worker a flow belongs to. One function for the whole process: the devices' own hash and
// table of queues where they have them and agree, so that frames come to their worker by
// themselves; the same function in software where not, and workers hand frames to each other
// (handover.h). It knows frames, no devices and no rings.
// Thread: init and settle on ctrl before workers run, try_device on ctrl; the rest on workers.
#pragma once

#include "dataplane/net/toeplitz.h"
#include "dataplane/tcp/tcp.h"
#include "lb/pick/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEER_ENTRIES_MAX 512
#define STEER_KEY_MAX 64

struct steer {
	struct toeplitz hash;
	uint32_t n_workers;
	uint32_t mask; // of the hash: entries in use, less one
	uint8_t owners[STEER_ENTRIES_MAX];
	uint8_t key[STEER_KEY_MAX];
	bool settled; // key and owners are decided
	// Bit p: port p's device brings each flow to its worker. w: ctrl while no frames come by
	// it, a worker that saw otherwise (relaxed, cleared until the device is another one), r:
	// workers (relaxed).
	_Alignas(64) uint32_t by_device;
};

// key: STEER_KEY_MAX random bytes, so that nobody outside can aim at one worker.
void steer_init(struct steer *, uint32_t n_workers, const uint8_t *key);

// What a device does with TCP over IPv4, as it says itself: a flow goes to the queue at its hash,
// modulo n_entries, in `queues`. False = not what others do, nothing that this can follow, or a
// table that leaves out a worker; its frames are then steered by software. The first device decides
// for all: offer it key and owners, but take what it says.
struct steer_device {
	const uint8_t *key;
	size_t key_len;
	const uint16_t *queues;
	uint32_t n_entries; // a power of two
};
bool steer_try_device(struct steer *, uint32_t port, const struct steer_device *);

// Before workers run: from now on key and owners stay, whatever device comes.
void steer_settle(struct steer *);

static inline bool steer_by_device(const struct steer *s, uint32_t port)
{
	return __atomic_load_n(&s->by_device, __ATOMIC_RELAXED) >> port & 1;
}
// The device has brought a flow to another worker than it said it would. Each handshake is looked
// at before there is a connection, so that none is cut by this.
void steer_distrust(struct steer *, uint32_t port);

// The worker that gets what comes from this flow's remote side.
uint32_t steer_owner(const struct steer *, const struct tcp_flow *);

// Where a frame belongs:
#define STEER_HERE (-1) // to whoever got it
#define STEER_ALL (-2) // to him, and the others may learn from it
// or to the worker with this number. Errors that quote a segment belong to its flow. only_begins:
// the device brings flows to their workers; look only at segments that begin one.
int steer_frame(const struct steer *, const uint8_t *frame, size_t len, bool only_begins);
// Whether the queue that a frame came by says something of the device: it is a whole segment in a
// sound packet without options. Anybody may send what a device does not take for TCP and so does
// not hash, and errors that quote a segment come to any queue.
bool steer_is_evidence(const uint8_t *frame, size_t len);
