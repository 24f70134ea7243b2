// SPDX-License-Identifier: Apache-2.0
// The simulated xDS server: it reads what the client asks for and CHECKs that it may ask so, and it
// answers from the world, well or wildly. An incremental one believes what servers believe: that
// the client holds whatever was sent to it, refused or not, or whatever the client said it holds.
// Thread: the simulation's.
#pragma once

#include "ctrl/res/types.h"
#include "lb/base/rand.h"
#include "tests/sim/xds/world.h"
#include "tests/support/fake_ads.h"

// What versions begin with that come in a response in which something is there twice. The client
// never accepts one (PC-07).
#define SERVER_TWICE "twice"

// What the server knows of one type on the open stream.
struct server_type {
	uint32_t asked; // names that are subscribed to, as bits
	uint32_t again; // incremental: of those, what was subscribed to once more since it was sent
	bool requested;
	char nonce[16]; // of the last response; "" = none
	bool bad; // the last response must be NACKed
	bool answered;
	char accepted[16]; // version of the last ACKed response, of any stream
	char perhaps[16]; // of one that was lost with its stream; "" = none
	char version[16]; // of the last response
	uint64_t held[N_CLUSTERS][N_VARIANTS]; // incremental: versions at the client; 0 = none
};

struct server {
	struct fake_ads ads;
	bool serves[2]; // by world_authority()
	bool is_down; // refuses every stream
	// What clients know of it counts for less than another server's word (A71): they may
	// forget it.
	bool may_be_forgotten;
	const struct world *world;
	struct world old; // what it was some time ago
	struct rand *rand;
	struct server_type types[RES_N_TYPES];
	unsigned stream; // whose state `types` is
	unsigned client; // the connection it came with
	bool node_due; // on this stream
	uint64_t salt; // of this server's versions: another server has others
	unsigned n_said, n_responses, n_acks, n_nacks;
	unsigned n_held; // versions that the client said it holds
	unsigned n_taken_back; // responses in which something was there twice
};

void server_init(struct server *, const struct world *, struct rand *);
// Reads what has arrived; with `settle` until the client has nothing more to send.
void server_read(struct server *, bool settle);
void server_respond_at_random(struct server *);
// All that the client asks for and does not have, of all types.
void server_say_all(struct server *);
// The stream breaks. The next one may be another server's.
void server_lose(struct server *, const char *why);
void server_check_answered(const struct server *);
// Goes down, or comes up again.
void server_toggle(struct server *);
