// SPDX-License-Identifier: Apache-2.0
// URIs in certificates of ours, as they outlive these: a connection tells backends by whose
// certificate it came (x-forwarded-client-cert), also when another one has taken its place, and
// its worker counts and frees nothing. So each list is kept once, and never freed: they are as many
// as our certificates had different ones, and mostly it is one name that all renewals have.
// Thread: any but workers; the lists are read by any.
#pragma once

#include <openssl/types.h>

// Of the certificate: each with a NUL behind it, and another one behind the last. "" = it has none.
// What is beyond TLSHS_MAX_SANS of them or TLSHS_PEER_BYTES is left out. NULL = out of memory.
const char *tlshs_uris_keep(X509 *);
