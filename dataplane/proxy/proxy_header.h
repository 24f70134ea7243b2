// SPDX-License-Identifier: Apache-2.0
// The PROXY protocol's header (PP-02..PP-06, PP-16), versions 1 and 2: whose connection it is, as a
// proxy in front of us says before the connection's own bytes, and as we say to backends. Fed in
// any pieces; it keeps no more than what it needs.
// Thread: any. Pure.
#pragma once

#include "lb/base/ip.h"
#include "lb/base/str.h"
#include "lb/base/tlv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROXY_HEADER_V1_MAX 107 // CR LF included
#define PROXY_HEADER_TLVS_MAX 1024
#define PROXY_HEADER_V2_MAX (16 + 216 + PROXY_HEADER_TLVS_MAX)

enum proxy_header_state {
	PROXY_HEADER_MORE, // it is not complete
	PROXY_HEADER_DONE,
	// None of these is left again.
	PROXY_HEADER_MISSING, // the bytes begin otherwise, or as a version that is not taken
	PROXY_HEADER_MALFORMED,
	PROXY_HEADER_TOO_LONG,
	PROXY_HEADER_BAD_TLVS, // what was to be kept are no TLVs
};

struct proxy_header {
	// Set by the caller, all else zero: which versions are taken, and where to TLVs go that
	// come with addresses, PROXY_HEADER_TLVS_MAX bytes; NULL = they are passed over.
	bool v1, v2;
	uint8_t *tlvs;
	uint16_t n_tlvs; // bytes there; DONE: whole entries
	bool has_source; // DONE: there are addresses
	uint8_t state; // enum proxy_header_state
	uint8_t n; // bytes kept
	uint16_t skip; // of what is yet to be passed over
	struct ip_port source, target; // whose the connection is, and where it went
	uint8_t bytes[PROXY_HEADER_V1_MAX];
};

// Takes bytes of the connection, and sets *ret_used to how many of them are the header's.
enum proxy_header_state proxy_header_feed(
	struct proxy_header *, const uint8_t *, size_t len, size_t *ret_used);

// What a header says; it borrows.
struct proxy_header_text {
	const struct ip_port *source, *target; // NULL = LOCAL, which version 2 alone has
	// Of version 2, encoded, PROXY_HEADER_TLVS_MAX bytes each at most: ours, and the client's,
	// of which those of the types in `passed` follow that are not among ours (PP-21).
	struct str tlvs, clients_tlvs;
	struct tlv_types passed;
	uint8_t version; // 1 or 2
};
#define PROXY_HEADER_WRITTEN_MAX (16 + 36 + 2 * PROXY_HEADER_TLVS_MAX)

// Writes it to `to`, which has PROXY_HEADER_WRITTEN_MAX bytes. Returns how many it has. Both
// addresses are of one family: an IPv4 one beside one that is not is in its IPv6 form (RFC 4291
// 2.5.5.2).
size_t proxy_header_write(const struct proxy_header_text *, uint8_t *to);
