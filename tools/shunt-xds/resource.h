// SPDX-License-Identifier: Apache-2.0
// One resource as the server has it, a variant of its name (xRFC TP2): encoded, with its name and
// constraints. It is the content of a variant in ctrl/xds/variants/variants.h.
// Thread: one owner.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xds_constraints;
struct xds_res;

// The known types, in the order of pushing: resources before those that refer to them (make before
// break). A catalog has further types, which are only forwarded.
enum resource_type {
	RESOURCE_CLUSTER,
	RESOURCE_ENDPOINTS,
	RESOURCE_LISTENER,
	RESOURCE_ROUTES,
	N_RESOURCE_TYPES,
};

struct resource_type_info {
	const char *url;
	const char *label; // for display
	// A SotW response lists every requested resource of the type: a missing one is deleted
	// (SW-11). False: a missing resource means nothing (SW-14).
	bool full_state;
};

const struct resource_type_info *resource_type_info(enum resource_type);
// Returns N_RESOURCE_TYPES for any other type.
enum resource_type resource_type_find(struct str type_url);

// Immutable and counted: clients keep what they were sent.
struct resource {
	uint32_t n_refs;
	uint32_t type; // enum resource_type, or a catalog's further type
	bool names_itself; // its bytes contain its name
	bool do_not_cache; // a caching proxy must not keep it (TP2-P06)
	char *name;
	struct xds_constraints *constraints; // counted; NULL = none
	const uint8_t *bytes; // encoded, without the Any; own, or in `received`
	size_t len;
	struct xds_res *received; // counted; NULL = made here
	// Computed from content and constraints, so that it is the same on every server and after
	// every start, and the constraints can be recovered (resource_version_constraints()); or
	// set by the sender.
	char *version;
	uint64_t hash; // of name and version
};

// Copies everything except the constraints, which it counts. Count 1. Returns NULL if out of
// memory.
struct resource *resource_new(uint32_t type, const char *name, struct xds_constraints *,
	const uint8_t *bytes, size_t len, bool do_not_cache);
// A received resource to be forwarded: counts its bytes instead of copying. version NULL = the
// sender gave none. Otherwise as resource_new().
struct resource *resource_new_received(uint32_t type, const char *name, struct xds_constraints *,
	const char *version, struct xds_res *);
struct resource *resource_get(struct resource *);
void resource_put(struct resource *); // NULL is fine
// True if bytes and handling are the same.
bool resource_eq(const struct resource *, const struct resource *);

// The constraints of the variant that a client claims to hold in this version, from untrusted text.
// NULL = unconstrained, not a version of ours, or out of memory.
struct xds_constraints *resource_version_constraints(const char *version);
