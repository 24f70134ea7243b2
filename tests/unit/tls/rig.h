// SPDX-License-Identifier: Apache-2.0
// Connections for tests of records: one of ours with what came out of it, and a forger as its peer.
// Thread: the test's own.
#pragma once

#include "dataplane/tls/aead.h"
#include "dataplane/tls/counters.h"
#include "dataplane/tls/tls.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tests/support/tls_forger.h"
#include "tlshs/hkdf.h"

#include <stdbool.h>

#define RIG_CHUNKS 512
#define RIG_BYTES (1u << 20)

// What one test is repeated for.
struct rig_suite {
	uint16_t version;
	enum tls_aead aead;
	const struct aead_ops *ops; // NULL = the best
	const char *name;
};
extern const struct rig_suite rig_suites[];
extern const unsigned rig_n_suites;

struct rig {
	uint64_t now_ns;
	struct pool chunks;
	struct tls_context *ctx;
	struct tls_conn *conn;
	struct tls_secrets secrets; // the connection's
	struct rand rand;
	// What came out of on_plain, and how much more it takes.
	uint8_t *plain; // RIG_BYTES
	size_t n_plain, takes;
	unsigned n_eofs, n_tickets, n_calls;
	size_t ticket_len;
	size_t opened[2]; // bytes of on_opened: without data, and with it
	struct buf out;
	struct tls_forger peer;
};

// A connection with random keys of the seed; on_plain takes everything.
void rig_init(struct rig *, const struct rig_suite *, enum tls_role, uint64_t seed);
void rig_init_conf(
	struct rig *, const struct rig_suite *, enum tls_role, uint64_t seed, struct tls_conf);
void rig_fini(struct rig *); // checks that no chunk is left out

// A record to the connection, with the next sequence number: plaintext, its type, and padding (1.3
// alone). Returns its length.
size_t rig_forge(
	struct rig *, uint8_t type, const void *text, size_t len, size_t padding, uint8_t *to);
// Forges and feeds it.
void rig_send(struct rig *, uint8_t type, const void *text, size_t len);
// The peer's keys change, as by its KeyUpdate.
void rig_update_peer(struct rig *);
// Fails with this alert, and the counter is 1; nothing more is delivered.
void rig_expect_failure(struct rig *, uint8_t alert, enum tls_counter);
void rig_expect_sound(struct rig *);
uint64_t rig_counter(const struct rig *, enum tls_counter);

// The secrets of the other end.
struct tls_secrets rig_mirror(const struct tls_secrets *);
struct tls_secrets rig_secrets(const struct rig_suite *, struct rand *);
void rig_randomize(struct rand *, void *, size_t len);
