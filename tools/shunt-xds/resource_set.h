// SPDX-License-Identifier: Apache-2.0
// All resources that are served, at one moment: what a folder gave, or later what a cache holds. A
// set is filled, sealed, and never changes after. Knows no files, streams or clocks.
// Thread: one owner.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_err;

// In the order of pushing: what is referred to comes before what refers to it (make before break).
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
// N_RESOURCE_TYPES = a type that is not served.
enum resource_type resource_type_find(struct str type_url);

// Immutable once its set is sealed; counted, since clients hold on to what they were sent.
struct resource {
	uint32_t n_refs;
	enum resource_type type;
	uint64_t version; // of its type, when this content first appeared
	char *name;
	char *origin; // the file it stands in
	uint8_t *bytes; // encoded, without the Any around it
	size_t len;
};

// Copies everything. Count 1, the caller's; NULL = no memory.
struct resource *resource_new(
	enum resource_type, const char *name, const char *origin, const uint8_t *bytes, size_t len);
struct resource *resource_get(struct resource *);
void resource_put(struct resource *); // NULL is fine

struct resource_list {
	struct resource **items; // by name, once sealed
	size_t n, room;
	uint64_t version; // grows when the content of the type changes; 0 = never had any
};

struct resource_set {
	struct resource_list types[N_RESOURCE_TYPES];
};

struct resource_set *resource_set_new(void); // NULL = no memory
void resource_set_free(struct resource_set *); // NULL is fine

// Takes the caller's reference, also when it fails. 0 or -ENOMEM.
[[nodiscard]] int resource_set_add(struct resource_set *, struct resource *);

// Ends filling: refuses two resources of one type and name, and numbers versions on from `before`
// (NULL = the first set). What did not change since is shared with it.
// 0 or -EINVAL (reterr names both files).
[[nodiscard]] int resource_set_seal(
	struct resource_set *, const struct resource_set *before, struct lb_err *reterr);

// Borrowed; NULL = none of that name. The set is sealed.
struct resource *resource_set_find(
	const struct resource_set *, enum resource_type, const char *name);
