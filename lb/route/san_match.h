// SPDX-License-Identifier: Apache-2.0
// Whether a certificate has one of the names that are asked for: Envoy's matchers of subject
// alternative names, as gRPC applies them (gRFC A29, A101). The certificate has been verified
// before.
// Thread: built and freed by one, matched by any: immutable, but RE2 takes locks and may allocate.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

// RFC 5280 4.2.1.6; bits of a set.
enum lb_san_kind { LB_SAN_DNS = 1, LB_SAN_URI = 2, LB_SAN_EMAIL = 4, LB_SAN_IP = 8 };
#define LB_SAN_ALL (LB_SAN_DNS | LB_SAN_URI | LB_SAN_EMAIL | LB_SAN_IP)

struct lb_san { // one name of a certificate
	enum lb_san_kind kind;
	struct str text; // of an IP address its 4 or 16 bytes
};

enum lb_san_match {
	LB_SAN_EXACT, // DNS names without regard to case, and what a wildcard in one covers
	LB_SAN_PREFIX,
	LB_SAN_SUFFIX,
	LB_SAN_CONTAINS,
	LB_SAN_REGEX, // RE2, the whole name
};

struct lb_san_matcher_conf {
	uint32_t kinds; // of enum lb_san_kind; others are passed over
	enum lb_san_match match;
	bool ignore_case; // ASCII; never of a pattern
	struct str text;
};

struct lb_san_matchers;

// The confs are borrowed for the call. NULL = out of memory, or an invalid pattern (reterr).
struct lb_san_matchers *lb_san_matchers_new(
	const struct lb_san_matcher_conf *, uint32_t n, struct lb_err *reterr);
void lb_san_matchers_free(struct lb_san_matchers *); // NULL is fine
// True if one of the names is matched by one of the matchers, or there are no matchers (TLS-130).
// IP addresses are compared as text in the form of RFC 5952.
bool lb_san_matchers_match(const struct lb_san_matchers *, const struct lb_san *, uint32_t n);
// True if one of the DNS names is this host, or a wildcard that covers it (TLS-131).
bool lb_san_has_host(const struct lb_san *, uint32_t n, struct str host);
