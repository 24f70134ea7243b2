// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share. The only header that shows the TLS library.
// Thread: a context is read by any; a handshake belongs to one thread at a time.
#pragma once

#include "tlshs/context.h"
#include "tlshs/handshake.h"

#include <openssl/core_dispatch.h>
#include <openssl/ssl.h>

#define TLSHS_MAX_CHAIN 24576 // bytes of a peer's Certificate message: 15 ms of a thread
#define TLSHS_SERVER_TRAFFIC 0
#define TLSHS_CLIENT_TRAFFIC 1
#define TLSHS_RESUMPTION 2
#define TLSHS_N_SECRETS 3

#define TLSHS_CAS_DIGEST 32
struct tlshs_cas { // cas.c
	struct tlshs_cas *next;
	uint32_t refs; // w: any, under the lock
	uint8_t digest[TLSHS_CAS_DIGEST]; // of the bytes that they were read from
	STACK_OF(X509) * list; // not empty
};

struct tlshs_trust { // of one SPIFFE trust domain
	char *domain;
	struct tlshs_cas *cas; // counted
};

struct tlshs_context {
	uint32_t refs; // w: any (acquire and release)
	enum tlshs_role role;
	SSL_CTX *ssl;
	struct tlshs_cas *cas; // counted; NULL = none
	struct tlshs_trust *bundles;
	uint32_t n_bundles;
	STACK_OF(X509_CRL) * crls; // NULL = none
	struct tlshs_matcher matcher;
	uint8_t alpn[TLSHS_MAX_ALPNS * (TLSHS_MAX_ALPN + 1)]; // as RFC 7301 3.1 writes them
	uint32_t alpn_len;
	const char *own_uris; // of our certificate (uris.h)
	uint32_t max_sessions; // client: that are kept, of one server and name
	char **server_names;
	uint32_t n_server_names;
	uint8_t binding[32]; // digest of our names and all that peers' certificates are judged by
	uint8_t ticket_secret[32]; // that tickets' keys are made of, by the hour
};

struct tlshs_handshake {
	struct tlshs_context *context; // a reference
	struct tlshs_keylog *keys; // borrowed; NULL = nobody may ask for its secrets
	SSL *ssl;
	BIO *in, *out; // the SSL's
	size_t n_fed; // bytes, until it ended
	size_t hello_at; // server: so many of them came before the ClientHello that is due
	bool hello_seen; // server: a whole one has come, and no other is due
	bool ended;
	bool is_logged; // 1.2: the key log was told
	bool offered; // client: a session
	bool name_known; // server: the result's, by the first ClientHello
	enum tlshs_outcome outcome, refused; // refused: what a callback found; ok = nothing
	uint64_t peer; // client: a hash of the server's address and port; 0 = not known
	int64_t judged_until_s; // what the peer was judged by, if it was, holds until then
	struct tlshs_promise *promise; // client, 1.3: owned
	uint32_t n_written; // records behind our Finished
	uint64_t n_idle, n_text; // of records.c: records without text that were read, bytes of text
	uint32_t secret_len;
	uint8_t secrets[TLSHS_N_SECRETS][TLS_MAX_SECRET]; // 1.3: by TLSHS_SERVER_TRAFFIC and others
	char why[TLSHS_MAX_WHY];
	struct tlshs_result result;
};

// The handshake of an SSL object of ours.
static inline struct tlshs_handshake *tlshs_of(const SSL *ssl)
{
	return SSL_get_app_data(ssl);
}

static inline bool tlshs_verifies(const struct tlshs_context *c)
{
	return c->cas || c->n_bundles;
}

// pem.c: what PEM holds; anything else than what is looked for is skipped. NULL with err, which
// says what is wrong without naming a field.
STACK_OF(X509) * tlshs_pem_certificates(struct str pem, struct lb_err *);
STACK_OF(X509_CRL) * tlshs_pem_crls(struct str pem, struct lb_err *);
EVP_PKEY *tlshs_pem_key(struct str pem, struct lb_err *);
// The library's newest error as text; empties its queue.
const char *tlshs_library_error(void);

// cas.c: those of a PEM file, parsed once for all who have the same bytes at a time. One reference;
// NULL with err, as above. Any thread but workers.
struct tlshs_cas *tlshs_cas_take(struct str pem, struct lb_err *);
void tlshs_cas_put(struct tlshs_cas *); // NULL is fine

// records.c: a record without text was read, behind the handshake.
void tlshs_records_count(struct tlshs_handshake *);

// hello.c: what a server looks at in a ClientHello: name and protocols.
void tlshs_hello_setup(struct tlshs_context *);

// verify.c: makes the context's SSL_CTX verify peers, as the conf says.
void tlshs_verify_setup(struct tlshs_context *, bool require_peer_certificate);
// Whether a certificate of an earlier handshake is still accepted.
bool tlshs_verify_again(struct tlshs_handshake *, X509 *);
// Whether its names are.
bool tlshs_verify_names(const struct tlshs_handshake *, const struct tlshs_peer *);

// peer.c: names and digest of a certificate.
void tlshs_peer_read(struct tlshs_peer *, X509 *);
// So many of its first bytes say something.
size_t tlshs_peer_size(const struct tlshs_peer *);

// tickets.c: of the conf's secret; "" = no tickets. False = no memory.
bool tlshs_tickets_setup(struct tlshs_context *, struct str secret);

// secrets.c: of a handshake that has succeeded. False = the library fails.
bool tlshs_secrets_take(struct tlshs_handshake *, struct tls_secrets *);
// A tlshs_on_secret: keeps traffic secrets of 1.3, and tells the key log of those of RFC 9850.
void tlshs_secrets_on_derived(void *handshake, struct str label, const uint8_t *secret, size_t len);
// 1.2: tells the key log of the master secret, once, as soon as it is called when there is one.
void tlshs_secrets_log_12(struct tlshs_handshake *);

// library.c: where handshakes look algorithms up, with TLSHS_PREFERENCE. NULL = no memory.
OSSL_LIB_CTX *tlshs_library(void);
#define TLSHS_PROVIDER "shunt"
#define TLSHS_PREFERENCE "?provider=" TLSHS_PROVIDER

// kdf.c: a secret as long as the hash that the key schedule of 1.3 has made, by RFC 8446's label.
typedef void tlshs_on_secret(void *user, struct str label, const uint8_t *secret, size_t len);
// Who hears of those that the calling thread has made; NULL = nobody.
void tlshs_kdf_listen(tlshs_on_secret *, void *user);
extern const OSSL_ALGORITHM tlshs_kdfs[];
