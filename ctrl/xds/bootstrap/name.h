// SPDX-License-Identifier: Apache-2.0
// Names of resources (xRFC TP1, gRFC A47, FE-*): "xdstp://authority/type/id?k=v&…", and old-style
// ones, which are opaque text. Equivalent names have the same canonical text, which serves as a key
// and on the wire. Collections, globs and directives in fragments are not supported, as in gRPC
// (FE-10).
// Thread: any.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>

struct xds_name {
	// Canonical: context parameters sorted by key, the last one of a repeated key (FE-03); no
	// fragment; percent-encoding of RFC 3986 6.2.2. Old-style names are unchanged.
	char *text;
	char *authority; // decoded, may be ""; NULL = old-style
};

// True if it starts with "xdstp:" (FE-01).
bool xds_name_is_xdstp(const char *text);

// True for "*", which in a request stands for all resources of a type (SW-09). xds_name_parse()
// rejects it: a configuration that refers to "*" must not subscribe to everything.
bool xds_name_is_wildcard(const char *text);

// Parses the name of a resource of this type ("type.googleapis.com/…"; FE-02). Returns 0, or with
// *ret untouched -ENOMEM, or -EINVAL with the reason, which does not repeat the name.
[[nodiscard]] int xds_name_parse(
	const char *text, const char *type_url, struct xds_name *ret, struct lb_err *reterr);
void xds_name_fini(struct xds_name *);

// True if the byte needs no percent-encoding in the id of a name: RFC 3986's pchar, and "/".
bool xds_name_is_id_char(char);
