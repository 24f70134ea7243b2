// SPDX-License-Identifier: Apache-2.0
// Where one worker and one handshake thread meet: a ring of orders one way, a ring of answers the
// other, both of slots of a fixed size, of which as much is written and read as there is to say.
// What finds no room is kept by whoever has it, bytes of a peer by TCP: its window shuts.
//
// The worker starts a handshake under an id of its choice and sends bytes as they come. Answers are
// bytes for the peer, then the end; bytes that were sent and that the handshake did not need come
// back as its rest, in order, also those that crossed the end. So the worker has all of them when
// what came back is what it sent less `n_taken`. It stops each handshake once, before or after its
// end, and may use the index again; answers of the old id that are still under way are not its
// business.
// Thread: functions of the worker, without a lock, an allocation or a system call.
#pragma once

#include "lb/base/spsc.h"
#include "lb/base/str.h"
#include "tlshs/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tlshs_context;

#define TLSHS_SLOT 2048 // bytes of a peer in one slot
#define TLSHS_MAX_TICKETS 2 // of one handshake: servers send one, two or four
#define TLSHS_MAX_TICKET 8192 // bytes of a NewSessionTicket; of a longer one nothing is kept

// Of n handshakes at a time those that may be with clients: no flood of them is to keep us from our
// backends.
static inline uint32_t tlshs_clients_share(uint32_t n)
{
	return n - n / 4;
}

enum tlshs_order_kind { TLSHS_START, TLSHS_BYTES, TLSHS_EOF, TLSHS_STOP, TLSHS_TICKET };

struct tlshs_order {
	// Below: an index less than the link's max_handshakes; above: any. TICKET: the answer's
	// promise.
	uint64_t id;
	uint8_t kind; // enum tlshs_order_kind
	uint16_t len; // of bytes
	uint16_t n_left; // TICKET: bytes of it from these on
	uint64_t source; // START: a hash of the peer's address; of a server's with its port
	struct tlshs_context *context; // START: a reference, the thread's from then on
	uint8_t bytes[TLSHS_SLOT]; // START: a client's server name
};

enum tlshs_answer_kind { TLSHS_TO_PEER, TLSHS_END, TLSHS_REST };

struct tlshs_answer {
	uint64_t id;
	uint8_t kind; // enum tlshs_answer_kind
	uint8_t outcome; // END: enum tlshs_outcome
	uint16_t len; // of bytes
	uint64_t n_taken; // END: bytes of the peer that the handshake needed
	uint64_t promise; // END: the thread's number for the server's tickets; 0 = it wants none
	union {
		uint8_t bytes[TLSHS_SLOT];
		struct tlshs_result result; // END with TLSHS_ok; of `peer` as much as there is
		char why[TLSHS_MAX_WHY]; // END with another outcome
	};
};

struct tlshs_link {
	struct spsc orders; // w: worker, r: thread
	struct spsc answers; // w: thread, r: worker
	// 16 bytes, borrowed: hashed with it, a peer is one source to all workers. NULL = none.
	const uint8_t *source_key;
	// Orders that nothing more comes of. w: thread (release), r: worker (acquire)
	uint32_t n_done;
};

// Before either runs. 0 or -ENOMEM.
[[nodiscard]] int tlshs_link_init(struct tlshs_link *, uint32_t n_slots);
void tlshs_link_fini(struct tlshs_link *);

// context: a reference that the worker has taken, which the thread puts; still the worker's if
// there is no room (false). server_name: a client's, at most TLSHS_MAX_NAME bytes.
[[nodiscard]] bool tlshs_link_start(struct tlshs_link *, uint64_t id, struct tlshs_context *,
	struct str server_name, uint64_t source);
// Returns how many bytes found room.
size_t tlshs_link_send(struct tlshs_link *, uint64_t id, const uint8_t *, size_t len);
// The peer sends nothing more: a handshake that its bytes have not ended is lost. False = no room.
[[nodiscard]] bool tlshs_link_eof(struct tlshs_link *, uint64_t id);
[[nodiscard]] bool tlshs_link_stop(struct tlshs_link *, uint64_t id);
// The body of a NewSessionTicket (RFC 8446 4.6.1). False = no room, or it is too long: nothing of
// it is sent.
[[nodiscard]] bool tlshs_link_ticket(
	struct tlshs_link *, uint64_t promise, const uint8_t *, size_t len);
// The oldest answer, which lies in the ring until the worker passes it, once; NULL = there is none.
// What is secret in it is overwritten then.
[[nodiscard]] const struct tlshs_answer *tlshs_link_peek(struct tlshs_link *);
void tlshs_link_pass(struct tlshs_link *);
// The thread may have something to do for an order. False = no answer comes before the next one,
// but of who meets a deadline or gives way; those that came before can be read.
bool tlshs_link_is_busy(const struct tlshs_link *);
// The thread says that nothing more comes of the orders that it has read.
void tlshs_link_rest(struct tlshs_link *);
