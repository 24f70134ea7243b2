// SPDX-License-Identifier: Apache-2.0
// Names of resources (xRFC TP1, gRFC A47, FE-*): "xdstp://authority/type/id?k=v&…", and
// old-style ones, which are one opaque text each. Two names that mean the same resource have the
// same canonical text, so that it serves as a key and on the wire.
// Not here: collections, globs and fragments' directives, which gRPC does not use either (FE-10).
// Thread: any.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>

struct xds_name {
	// Canonical: context parameters by key, the last of a repeated one (FE-03); no fragment;
	// percent-encoding of RFC 3986 6.2.2. An old-style name is as it was.
	char *text;
	char *authority; // decoded, "" too; NULL = old-style
};

// Starts with "xdstp:" (FE-01).
bool xds_name_is_xdstp(const char *text);

// Is "*", which in a request stands for all resources of a type (SW-09). It is the name of none, so
// that xds_name_parse() refuses it: whoever needs one resource must not get all of them because of
// what a config says.
bool xds_name_is_wildcard(const char *text);

// A name of a resource of that type ("type.googleapis.com/…"; FE-02). *ret is untouched on failure:
// -ENOMEM, or -EINVAL with the reason, which does not repeat the name.
[[nodiscard]] int xds_name_parse(
	const char *text, const char *type_url, struct xds_name *ret, struct lb_err *reterr);
void xds_name_fini(struct xds_name *);

// Stands for itself in the id of a name: RFC 3986's pchar, and "/".
bool xds_name_is_id_char(char);
