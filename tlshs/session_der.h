// SPDX-License-Identifier: Apache-2.0
// Changes an encoded SSL_SESSION: sets fields, and leaves out the peer's certificate.
// Thread: any.
#pragma once

#include "lb/base/str.h"

#include <stddef.h>
#include <stdint.h>

// Places of fields: the first five have no number.
#define TLSHS_DER_ID 3
#define TLSHS_DER_SECRET 4 // that the next handshake is made of
#define TLSHS_DER_NUMBERED 5
#define TLSHS_DER_TIME (TLSHS_DER_NUMBERED + 1) // of its beginning
#define TLSHS_DER_PEER (TLSHS_DER_NUMBERED + 3) // its certificate
#define TLSHS_DER_LIFETIME (TLSHS_DER_NUMBERED + 9) // of its ticket
#define TLSHS_DER_TICKET (TLSHS_DER_NUMBERED + 10)
#define TLSHS_DER_AGE_ADD (TLSHS_DER_NUMBERED + 14)

struct tlshs_der_field {
	unsigned at;
	struct str bytes; // p NULL = it is a number
	uint64_t number;
};

// How many bytes the result has at most.
size_t tlshs_der_room(struct str der, const struct tlshs_der_field *, size_t n);
// fields: in the order of their places. Returns the length; 0 = `der` is not what it should be.
size_t tlshs_der_set(struct str der, const struct tlshs_der_field *, size_t n, uint8_t *to);
