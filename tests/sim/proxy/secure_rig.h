// SPDX-License-Identifier: Apache-2.0
// A world whose clients and backends speak TLS to the proxy: handshakes by tlshs in turns without
// threads, records by dataplane/tls on both ends.
// Thread: one.
#pragma once

#include "tests/sim/proxy/cases.h"
#include "tests/unit/tlshs/pki.h"
#include "tlshs/context.h"

enum { FRONT = 1, BACK = 2 }; // ids of credentials

struct rig {
	struct world *w;
	struct tls_context *records[2]; // of clients, of backends
	struct tlshs_context *client, *backend; // the peers'
	struct tls_end_conf client_end, backend_end;
	struct lb_credential *credentials[3];
	struct lb_security *security;
};

struct side { // of a handshake; all zero: the usual
	const struct pki_cert *cert, *ca;
	const char *alpn; // of a client, instead of "h2"
	bool no_cert, no_ca, no_alpn, require_peer;
	uint16_t version; // 0 = both
};

struct rig_conf {
	uint64_t seed;
	double loss;
	bool front, back; // speak TLS
	const char *name; // that clients ask for; NULL = front.test
	bool hangs_up; // both peers, once a handshake has failed
	uint32_t piece, n_slots, n_chunks, header; // that of PROXY, to backends: its version
	uint32_t n_clients; // 0 = 2
	struct side client, server; // peer and proxy at the front
	struct side upstream, backend; // proxy and peer at the back
	const char *sni;
};

extern struct rig_certs {
	struct pki_cert ca, other_ca, server, backend, client;
} rig_certs; // between setup and teardown

int rig_setup(void **state);
int rig_teardown(void **state);
void rig_init(struct rig *, const struct rig_conf *);
// The first client and both backends are there, as far as their handshakes come about.
void rig_begin(struct rig *, const struct rig_conf *);
void rig_fini(struct rig *);
// Of the proxy; cert: instead of the side's. The caller's.
struct lb_credential *rig_credential(
	enum tlshs_role, const struct side *, const struct pki_cert *cert);

// Handshakes that ended so.
static inline uint64_t rig_shaken(
	const struct rig *r, enum proxy_handshake_side side, enum tlshs_outcome how)
{
	return world_shaken(r->w, side, how);
}
