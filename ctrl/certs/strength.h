// SPDX-License-Identifier: Apache-2.0
// What handshakes of ours can use of certificates and keys: the library refuses to make a context
// of some that can be read well (its security level, 2: 112 bits), and with others every handshake
// fails, or those of one version.
// Thread: any.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"

#include <openssl/types.h>

struct cert_list;

// A private or public key is RSA of 2048 bits or more, ECDSA on a curve that TLS 1.3 signs by, or
// Ed25519 (TLS-107, TLS-252). Returns 0, or -EINVAL with the reason.
[[nodiscard]] int cert_key_judge(const EVP_PKEY *, struct lb_err *reterr);
// The certificates of a text, and what cert_list_read() made of it: the first one's key likewise,
// and what it may be used for (TLS-254); keys and signatures of all (TLS-253). Returns 0, -ENOMEM,
// or -EINVAL with number, subject and reason.
[[nodiscard]] int cert_chain_judge(struct str pem, const struct cert_list *, struct lb_err *reterr);
