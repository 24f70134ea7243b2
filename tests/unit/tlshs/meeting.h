// SPDX-License-Identifier: Apache-2.0
// A handshake of ours with an unmodified OpenSSL as its peer, over memory, and then records of
// ours with it: what shows that a result is right.
// Thread: the test's own.
#pragma once

#include "tests/unit/tlshs/pki.h"
#include "tlshs/handshake.h"

#include <openssl/ssl.h>

// The peer's side.
struct far_conf {
	enum tlshs_role role;
	uint16_t min_version, max_version; // 0 = 1.2, 1.3
	const char *ciphers_12, *ciphers_13, *sigalgs; // NULL = the library's
	const struct pki_cert *cert, *ca; // NULL = none; a CA makes it verify
	unsigned n_chain; // so many copies of cert's behind it
	const char *alpn; // as on the wire; a server takes the first
	const char *server_name;
	uint8_t max_fragment; // a client's, by RFC 6066 4's code; 0 = it asks for none
	SSL_SESSION *session;
	SSL_CTX *ctx; // to share its ticket keys, borrowed; NULL = one by what stands above
	uint64_t peer; // a server: by which our client knows it; 0 = it resumes nothing
};

struct tlshs_link;

struct meeting {
	struct tlshs_handshake *h;
	SSL_CTX *far_ctx;
	SSL *far;
	BIO *far_in, *far_out;
	size_t piece; // bytes that are fed at once
	size_t room; // that are drained at once
	struct tlshs_result result;
	struct tlshs_promise *promise; // of our client; its tickets go to the store as it talks
	struct tlshs_link *link; // where tickets go instead, for that number; NULL = nowhere
	uint64_t promised;
	unsigned n_tickets;
	size_t ticket_len; // of the last one
	uint8_t rest[8192];
	size_t n_rest;
	char far_error[128]; // "" = it is content
};

// Our context is borrowed.
void meeting_init(
	struct meeting *, struct tlshs_context *, struct str server_name, const struct far_conf *);
// The peer alone: the handshake is somewhere else.
void meeting_init_far(struct meeting *, const struct far_conf *);
SSL_CTX *meeting_far_ctx(const struct far_conf *); // one to share
void meeting_far_step(struct meeting *);
void meeting_fini(struct meeting *);
// Lets bytes go to and fro until both rest. Returns our outcome, which must be there.
enum tlshs_outcome meeting_run(struct meeting *);
// One turn of it; false = nothing moved.
bool meeting_turn(struct meeting *);
// Both sides send by our records and its, and read what the other sent.
void meeting_talk(struct meeting *);
// A context that must come about, and one that must not: the error's text begins with this.
struct tlshs_context *context_good(const struct tlshs_context_conf *);
void context_bad(const struct tlshs_context_conf *, const char *text);
