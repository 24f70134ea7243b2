// SPDX-License-Identifier: Apache-2.0
// What certificates, keys and CRLs in PEM are (RFC 7468), for those who keep them, with reasons in
// an operator's words. Whether a peer is to be trusted is a handshake's question, not one of these.
// Thread: any.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

// One certificate, for display. Times are seconds since 1970; the texts hold printable ASCII alone.
struct cert_info {
	char *subject, *issuer; // as RFC 2253 writes them
	char *sans; // "DNS:a.example, URI:spiffe://b/c"; "" = none
	int64_t not_before_s, not_after_s;
	bool may_sign; // its keyUsage has digitalSignature, or it has none
};

struct cert_list {
	struct cert_info *list; // in the order of the file
	uint32_t n;
};

// All certificates of the text; other blocks are passed over. Returns 0, -ENOMEM, or -EINVAL with
// the reason: none, one that is cut or not to be decoded (TLS-106). Call fini() either way.
[[nodiscard]] int cert_list_read(struct str pem, struct cert_list *ret, struct lb_err *reterr);
// The certificate in DER, appended to the list. Returns 0, -ENOMEM or -EINVAL.
[[nodiscard]] int cert_list_add_der(
	struct cert_list *, const uint8_t *der, size_t len, struct lb_err *reterr);
void cert_list_fini(struct cert_list *);
// The one that expires first; NULL = the list is empty.
const struct cert_info *cert_list_first_to_end(const struct cert_list *);

// The private key is whole, without a password, of a kind that handshakes use, and the one of the
// first certificate (TLS-107). Returns 0, -ENOMEM or -EINVAL with the reason.
[[nodiscard]] int cert_key_check(struct str key_pem, struct lb_err *reterr);
[[nodiscard]] int cert_key_match(struct str key_pem, struct str cert_pem, struct lb_err *reterr);

// The issuers of the CRLs in the text, and when the first of them wants to be replaced (0 = none
// says). Returns how many there are, -ENOMEM, or -EINVAL with the reason.
[[nodiscard]] int cert_crls_read(
	struct str pem, char **ret_issuers, int64_t *ret_next_update_s, struct lb_err *reterr);
