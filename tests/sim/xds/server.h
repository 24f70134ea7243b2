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

// What the server knows of one type on the open stream.
struct server_type {
	uint32_t asked; // names that are subscribed to, as bits
	bool requested;
	char nonce[16]; // of the last response; "" = none
	bool bad; // the last response must be NACKed
	bool answered;
	char accepted[16]; // version of the last ACKed response, of any stream
	char version[16]; // of the last response
	uint64_t held[N_CLUSTERS]; // incremental: versions that the client holds; 0 = none
};

struct server {
	struct fake_ads ads;
	const struct world *world;
	struct world old; // what it was some time ago
	struct rand *rand;
	struct server_type types[RES_N_TYPES];
	unsigned stream; // whose state `types` is
	bool node_due; // on this stream
	uint64_t salt; // of this server's versions: another server has others
	unsigned n_said, n_responses, n_acks, n_nacks;
	unsigned n_held; // versions that the client said it holds
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
