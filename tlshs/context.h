// SPDX-License-Identifier: Apache-2.0
// What handshakes of one kind go by: certificate and key, whom to trust, protocols to offer. Made
// from bytes, immutable afterwards: when a file changes, the next one is made, and handshakes under
// way finish with theirs. It shows no TLS library.
// TLS 1.3, and 1.2 with ECDHE and AEAD only; no compression, renegotiation or early data.
// Thread: new, get and put as marked; a context may be read by any.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"
#include "tlshs/result.h"
#include "tlshs/secrets.h"

#include <stdbool.h>
#include <stdint.h>

struct tlshs_context;

enum tlshs_role { TLSHS_SERVER, TLSHS_CLIENT };

#define TLSHS_MAX_ALPNS 8

// Whether a verified peer is accepted, by its names: asked after its chain has been found to be
// trusted, and of each resumed session again. It runs on handshake threads, several at a time, so
// that what it looks at must not change. Without one every peer with a trusted chain is accepted.
struct tlshs_matcher {
	// server_name: what a client asked for ("" = nothing); of a server what it was asked for.
	bool (*accepts)(const void *arg, const struct tlshs_peer *, struct str server_name);
	// Called once, when the context is gone, by the thread whose put was the last: the control
	// thread or one of handshakes. NULL = nothing to do.
	void (*free_arg)(void *arg);
	void *arg; // the context's; NULL with accepts = none
};

// CAs of one SPIFFE trust domain: a peer's only URI name, spiffe://DOMAIN/…, says which count
// (gRFC A87).
struct tlshs_bundle {
	struct str trust_domain;
	struct str ca_pem;
};

// All is borrowed for the call, but matcher.arg.
struct tlshs_context_conf {
	enum tlshs_role role;
	// Leaf first, then those between it and a CA, and the leaf's private key, without a
	// password. Both or none; a server needs them.
	struct str certificate_pem, key_pem;
	// The peer's certificate must lead to one of these. Both empty: a client accepts any server
	// (never without a warning by whoever configures that), a server asks for no certificate.
	// With bundles, ca_pem is not looked at.
	struct str ca_pem;
	const struct tlshs_bundle *bundles;
	uint32_t n_bundles;
	// CRLs for any of the chain's certificates. A certificate whose issuer has none here is not
	// revoked. One counts beyond its nextUpdate, until another takes its place (gRFC A69).
	struct str crl_pem;
	// Server with CAs: refuse clients without a certificate. Otherwise they may have none.
	bool require_peer_certificate;
	struct tlshs_matcher matcher;
	// Server: in order of preference; a client that offers others alone is refused, one that
	// offers none is not (RFC 7301 3.2). Client: what is offered. At most TLSHS_MAX_ALPNS of
	// TLSHS_MAX_ALPN bytes each.
	const struct str *alpn;
	uint32_t n_alpn;
	// Server: the names that are served, exact or "*.suffix"; a client that asks for another is
	// refused with unrecognized_name, one that asks for none is not. 0 = all.
	const struct str *server_names;
	uint32_t n_server_names;
	// Server: TLSHS_TICKET_SECRET bytes or more from which keys of session tickets are derived,
	// those of this hour and of the one before; hosts and processes with the same
	// one resume each other's sessions. Empty = no tickets.
	struct str ticket_secret;
	// Client: so many sessions are kept for one server's address and one name that was asked
	// for, each of them for one handshake; 0 = all handshakes are full ones.
	uint32_t max_sessions;
	uint16_t min_version, max_version; // enum tls_version; 0 = 1.2, 1.3
};

#define TLSHS_TICKET_SECRET 32

// Control thread, or any that may wait some milliseconds for parsing. NULL with err, which names
// the field ("key_pem: …") and says what is wrong with it; also for lack of memory. errno is then
// EKEYREJECTED if certificates or keys are too weak for the library, so that they will never do. On
// success the matcher's arg is the context's. One reference, the caller's.
struct tlshs_context *tlshs_context_new(const struct tlshs_context_conf *, struct lb_err *err);

// Any thread that can be sure that somebody else has a reference, as a worker can of what the
// snapshot of its turn names. An atomic addition on a line that threads share: for a connection,
// never for a request.
struct tlshs_context *tlshs_context_get(struct tlshs_context *);
// Any thread but workers: the last one frees. NULL is fine.
void tlshs_context_put(struct tlshs_context *);

enum tlshs_role tlshs_context_role(const struct tlshs_context *);
