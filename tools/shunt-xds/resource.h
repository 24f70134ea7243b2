// SPDX-License-Identifier: Apache-2.0
// One resource as the server holds it, a variant of its name (xRFC TP2): encoded, with what it is
// called and for whom it is meant. It is the content of a variant in ctrl/xds/variants/variants.h.
// Thread: one owner.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xds_constraints;
struct xds_res;

// The types whose meaning is known, in the order of pushing: what is referred to comes before what
// refers to it (make before break). A catalog has others after them, which are only passed on.
enum resource_type {
	RESOURCE_CLUSTER,
	RESOURCE_ENDPOINTS,
	RESOURCE_LISTENER,
	RESOURCE_ROUTES,
	N_RESOURCE_TYPES,
};

struct resource_type_info {
	const char *url;
	const char *label; // for operators
	// A SotW response lists every resource of the type that was asked for: a missing one is
	// deleted (SW-11). False: absence means nothing (SW-14).
	bool full_state;
};

const struct resource_type_info *resource_type_info(enum resource_type);
// N_RESOURCE_TYPES = none of these.
enum resource_type resource_type_find(struct str type_url);

// Immutable and counted: clients hold on to what they were sent.
struct resource {
	uint32_t n_refs;
	uint32_t type; // enum resource_type, or what a catalog knows beyond
	bool names_itself; // its name is in its bytes, too
	bool do_not_cache; // a caching proxy is not to keep it (TP2-P06)
	char *name;
	struct xds_constraints *constraints; // counted; NULL = none
	const uint8_t *bytes; // encoded, without the Any around it; its own, or of `received`
	size_t len;
	struct xds_res *received; // counted; NULL = it was made here
	// Made of content and constraints, so that it is the same on every server and after every
	// start, and the constraints can be read back (resource_version_constraints()); or whoever
	// sent the resource made it.
	char *version;
	uint64_t hash; // of name and version
};

// Copies everything, counts the constraints. Count 1, the caller's; NULL = out of memory.
struct resource *resource_new(uint32_t type, const char *name, struct xds_constraints *,
	const uint8_t *bytes, size_t len, bool do_not_cache);
// One that was received, to be passed on: its bytes are counted, not copied. version NULL = the
// sender gave it none of its own. As resource_new().
struct resource *resource_new_received(uint32_t type, const char *name, struct xds_constraints *,
	const char *version, struct xds_res *);
struct resource *resource_get(struct resource *);
void resource_put(struct resource *); // NULL is fine
// The same bytes, to be treated the same.
bool resource_eq(const struct resource *, const struct resource *);

// The constraints of the variant that a client says it holds in this version, from untrusted text.
// NULL = unconstrained, or not a version of ours, or out of memory.
struct xds_constraints *resource_version_constraints(const char *version);
