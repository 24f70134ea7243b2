// SPDX-License-Identifier: Apache-2.0
// What a finished handshake tells: the secrets that records need, what was agreed, and who the peer
// is; or why there is none. Values of a size that fits into a slot of a ring, without pointers but
// to what is never freed.
// Thread: any; a value belongs to whoever holds it. Secrets are overwritten by whoever is done.
#pragma once

#include "lb/base/str.h"
#include "tlshs/secrets.h"

#include <stdbool.h>
#include <stdint.h>

#define TLSHS_MAX_NAME 255 // of a server name (RFC 6066 3, RFC 1035 2.3.4)
#define TLSHS_MAX_ALPN 31 // of one protocol that we speak
#define TLSHS_MAX_SANS 32
#define TLSHS_PEER_BYTES 1024 // of all names of a peer together
#define TLSHS_MAX_WHY 160

// How a handshake ends. The words are what operators read. Handshakes end with `ok` whether they
// are resumed or not; who counts ends tells them apart.
#define TLSHS_OUTCOMES(X)                                                                          \
	X(ok)                                                                                      \
	X(resumed) /* as ok, by a ticket */                                                        \
	X(malformed) /* what came is no TLS, or breaks its rules */                                \
	X(unexpected_message) /* of those that there are, not the one whose turn it is */          \
	X(decryption) /* a record or a Finished that the agreed keys do not fit */                 \
	X(signature) /* by another key than the certificate's, or its CA's */                      \
	X(key_exchange) /* a share that is no point of its group */                                \
	X(hello_too_large) /* a ClientHello of more than 16 KiB */                                 \
	X(flight_too_large) /* more bytes than certificates may have */                            \
	X(version) /* no common version */                                                         \
	X(fallback) /* the client tried a lower one than both have (RFC 7507) */                   \
	X(cipher) /* no common cipher suite, group or signature algorithm */                       \
	X(no_application_protocol) /* RFC 7301 3.2 */                                              \
	X(server_name) /* the client asked for a name that is not served */                        \
	X(peer_alert) /* the peer gave up; why: its alert */                                       \
	X(peer_alert_certificate) /* the same, because of our certificate */                       \
	X(peer_alert_protocol) /* because of ALPN */                                               \
	X(peer_alert_version)                                                                      \
	X(peer_closed) /* by close_notify */                                                       \
	X(no_peer_certificate)                                                                     \
	X(unknown_ca)                                                                              \
	X(certificate_expired)                                                                     \
	X(certificate_not_yet_valid)                                                               \
	X(certificate_revoked)                                                                     \
	X(certificate_usage) /* not meant for this role */                                         \
	X(certificate_name) /* none of its names is accepted */                                    \
	X(certificate_bad) /* any other reason not to trust it */                                  \
	X(over_limit) /* too many handshakes at a time, in all or of this source */                \
	X(timeout)                                                                                 \
	X(gave_way) /* its peer was slow, and places were short */                                 \
	X(lost) /* the connection ended first */                                                   \
	X(no_credential) /* none was begun: no certificate is there yet */                         \
	X(no_memory)                                                                               \
	X(internal)

#define X(name) TLSHS_##name,
enum tlshs_outcome { TLSHS_OUTCOMES(X) TLSHS_N_OUTCOMES };
#undef X
extern const char *const tlshs_outcome_names[TLSHS_N_OUTCOMES];
const char *tlshs_outcome_name(enum tlshs_outcome);
// The peer has said that it is over: no alert is due.
bool tlshs_outcome_is_peers(enum tlshs_outcome);

// gRFC A118's words for it, by which gRPC's dashboards know outcomes. Several have the same one.
#define TLSHS_RESULTS(X)                                                                           \
	X(SUCCESS)                                                                                 \
	X(UNKNOWN_FAILURE)                                                                         \
	X(CERTIFICATE_VERIFICATION_FAILED)                                                         \
	X(CERTIFICATE_REVOKED)                                                                     \
	X(CERTIFICATE_EXPIRED)                                                                     \
	X(CERTIFICATE_NOT_YET_VALID)                                                               \
	X(CERTIFICATE_AUTHORITY_INVALID)                                                           \
	X(CERTIFICATE_HOSTNAME_MISMATCH)                                                           \
	X(CERTIFICATE_MALFORMED)                                                                   \
	X(CIPHER_SUITE_MISMATCH)                                                                   \
	X(PROTOCOL_VERSION_UNSUPPORTED)                                                            \
	X(INAPPROPRIATE_FALLBACK)                                                                  \
	X(NO_APPLICATION_PROTOCOL)                                                                 \
	X(SIGNATURE_VERIFICATION_FAILED)                                                           \
	X(DECRYPTION_FAILED)                                                                       \
	X(KEY_EXCHANGE_FAILURE)                                                                    \
	X(UNEXPECTED_MESSAGE)                                                                      \
	X(HANDSHAKE_TIMEOUT)                                                                       \
	X(PEER_CONNECTION_CLOSED)

#define X(name) TLSHS_RESULT_##name,
enum tlshs_result_word { TLSHS_RESULTS(X) TLSHS_N_RESULTS };
#undef X
extern const char *const tlshs_result_names[TLSHS_N_RESULTS];
enum tlshs_result_word tlshs_outcome_result(enum tlshs_outcome);
// A118's word for what is told of a connection, as "10.0.0.1:80: TLS: unknown_ca: …"; also of an
// alert by which a server refuses a certificate when a handshake of 1.3 is over. NULL = none.
const char *tlshs_result_in(const char *text);

// RFC 5280 4.2.1.6
enum tlshs_san_kind { TLSHS_SAN_DNS, TLSHS_SAN_URI, TLSHS_SAN_EMAIL, TLSHS_SAN_IP };

// The leaf certificate that a peer has proven to own, and that was verified. Names beyond the
// bounds are left out, which `cut` says: a matcher that finds none of the others must refuse.
struct tlshs_peer {
	bool present; // there is a certificate
	bool cut;
	uint8_t n_sans;
	uint8_t sha256[32]; // of the certificate in DER
	uint16_t subject_len; // RFC 4514; at the beginning of text
	struct {
		uint8_t kind; // enum tlshs_san_kind
		uint16_t at, len; // in text; of an IP address its 4 or 16 bytes
	} sans[TLSHS_MAX_SANS];
	char text[TLSHS_PEER_BYTES];
};

static inline struct str tlshs_peer_subject(const struct tlshs_peer *p)
{
	return (struct str){p->text, p->subject_len};
}

static inline struct str tlshs_peer_san(const struct tlshs_peer *p, uint32_t i)
{
	return (struct str){p->text + p->sans[i].at, p->sans[i].len};
}

struct tlshs_result {
	struct tls_secrets secrets;
	bool resumed; // by a ticket: the peer's certificate is that of the first handshake
	uint8_t alpn_len; // 0 = none was agreed
	uint8_t server_name_len; // server: in lower case; 0 = the client named none
	// URIs of the certificate that we have shown (uris.h), or would have without a ticket.
	const char *own_uris;
	char alpn[TLSHS_MAX_ALPN];
	char server_name[TLSHS_MAX_NAME];
	struct tlshs_peer peer;
};

// Overwrites what is secret in it.
void tlshs_result_wipe(struct tlshs_result *);
