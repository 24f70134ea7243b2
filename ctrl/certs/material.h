// SPDX-License-Identifier: Apache-2.0
// What one source of certificates has: a provider's files (gRFC A29, A87), a directory of CRLs
// (gRFC A69), or the secret of session tickets, read and checked as a whole. Immutable once loaded;
// handshakes are given its bytes.
// Thread: load on any; get and put on ctrl.
#pragma once

#include "ctrl/base/whole_file.h"
#include "ctrl/certs/crls.h"
#include "ctrl/certs/pem.h"
#include "ctrl/certs/spiffe.h"
#include "lb/base/err.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct xds_cert_files;

#define CERT_TICKET_SECRET 32 // bytes, or more

struct cert_source {
	const char *name; // of the provider
	const struct xds_cert_files *files; // NULL = not a provider
	const char *crl_directory; // NULL = not that
	const char *ticket_secret; // likewise
	uint64_t refresh_ns;
};

struct cert_material {
	uint32_t n_refs;
	struct whole_file cert, key, ca; // PEM; p NULL = not configured
	struct whole_file spiffe; // the map as it was read
	bool has_bundles; // they count in place of `ca`, however many there are (A87)
	struct cert_bundles bundles;
	struct cert_crls crls; // of a directory
	struct whole_file ticket_secret; // as it was read
	struct cert_list chain, cas; // for display: ours; whom we trust
};

// Reads all files of the source: all of them are good, or none is taken. Returns 0 with count 1,
// -ENOMEM, or -EINVAL with field, path and reason. reterr may have a text with 0: of CRLs that are
// bad beside good ones.
[[nodiscard]] int cert_material_load(
	const struct cert_source *, struct cert_material **ret, struct lb_err *reterr);
// Of a secret of tickets that is in no file: a copy, with count 1. NULL = out of memory.
struct cert_material *cert_material_of_tickets(struct str secret);
// True if all bytes are the same.
bool cert_material_eq(const struct cert_material *, const struct cert_material *);
struct cert_material *cert_material_get(struct cert_material *);
void cert_material_put(struct cert_material *); // NULL is fine; overwrites secrets
