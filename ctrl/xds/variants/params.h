// SPDX-License-Identifier: Apache-2.0
// Dynamic parameters (xRFC TP2): the keys and values with which a client subscribes, and by which a
// server, a proxy or the client chooses among the variants of a resource. They are not part of a
// resource's name.
// A set is immutable, sorted by key and counted. NULL, and only NULL, is the empty set: every
// function accepts it, and every constructor returns it.
// Thread: one owner.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t;
struct lb_arena;
struct Envoy__Service__Discovery__V3__ResourceLocator;

struct xds_param {
	const char *key, *value; // any text, even ""
};

struct xds_params {
	uint32_t n_refs;
	uint32_t n; // at least one
	uint64_t hash;
	struct xds_param list[]; // by key, each key once; the texts are in the same block
};

// In any order; the last of a repeated key counts, as in a map on the wire (WF-01). Copies. Returns
// 0 or -ENOMEM.
[[nodiscard]] int xds_params_new(const struct xds_param *, size_t n, struct xds_params **ret);
struct xds_params *xds_params_get(struct xds_params *);
void xds_params_put(struct xds_params *);

// A bootstrap's "dynamic_parameters", an object of strings; o NULL = it has none (TP2-B01,
// TP2-B03). `at` is its path: errors read `dynamic_parameters["env"]: must be a string`. Returns 0,
// -ENOMEM or -EINVAL.
[[nodiscard]] int xds_params_from_json(
	const struct json_t *o, const char *at, struct xds_params **ret, struct lb_err *reterr);
// The migration from node metadata (TP2-B02): its values that are strings, and all of `given`,
// which wins for keys that both have. The caller decides whether to migrate. metadata is an object
// or NULL. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_params_from_metadata(
	const struct json_t *metadata, const struct xds_params *given, struct xds_params **ret);

// From a client's locator, in untrusted bytes that proto_unpack() accepted. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_params_from_locator(
	const struct Envoy__Service__Discovery__V3__ResourceLocator *, struct xds_params **ret);
// The locator of a name with these parameters, for packing: in the arena, except the texts, which
// it borrows. NULL = out of memory.
struct Envoy__Service__Discovery__V3__ResourceLocator *xds_params_locator(
	const struct xds_params *, const char *name, struct lb_arena *);

// NULL = the key is absent.
const char *xds_params_find(const struct xds_params *, const char *key);
bool xds_params_eq(const struct xds_params *, const struct xds_params *);
// A total order of sets, for sorting: below, above or equal to 0.
int xds_params_cmp(const struct xds_params *, const struct xds_params *);
uint64_t xds_params_hash(const struct xds_params *);
// Writes "{env=prod, version=v1}", cut to the room (4 or more).
void xds_params_print(const struct xds_params *, char *out, size_t room);
