// SPDX-License-Identifier: Apache-2.0
// A resource type as the xDS client sees it: how to decode and validate one resource. ctrl/res
// defines the types; the client never looks inside a resource.
// Thread: ctrl.
#pragma once

#include "lb/base/arena.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct xds_bootstrap;
struct xds_decoding;
struct xds_server_conf;
struct xds_type;

// One decoded resource: the first member of every res_… struct. Immutable once decoded, except
// expires_ns.
struct xds_res {
	uint32_t n_refs;
	bool do_not_cache; // its wrapper tells proxies not to cache it (TP2-P06)
	// Set by the client: when its TTL expires, rounded up (RS-04); 0 = never. Later when the
	// server sends it again.
	uint32_t expires_s;
	const struct xds_type *type;
	const char *name; // from the resource itself; stored after the struct
	const uint8_t *bytes; // as received, unknown fields included; likewise
	size_t len;
	uint64_t hash; // XXH64 of the bytes
	const struct xds_server_conf *server; // the sender; borrowed; NULL = none
	struct lb_arena arena; // owns everything else that the struct points to
};

// The result of decoding. A resource that is rejected may still have a name.
struct xds_decoded {
	struct xds_res *res; // count 1, owned by the caller; NULL = rejected, err has the reason
	char *name; // owned by the caller (free); NULL = none found
	struct lb_err err;
	// For the decoder: whose certificate providers names in it refer to; NULL = none.
	const struct xds_bootstrap *bootstrap;
};

// How the meaning of the same bytes depends on the sender.
enum xds_origin {
	XDS_ORIGIN_ANY, // not at all
	XDS_ORIGIN_TRUST, // on whether the server is trusted (A81)
	XDS_ORIGIN_SERVER, // "self" refers to that server (A47, FE-09)
};

// A rejected resource as received (CS-06). Immutable.
struct xds_refused {
	uint32_t n_refs;
	size_t len;
	const uint8_t *bytes; // stored after the struct, like type_url
	const char *type_url; // of what was sent, perhaps another type's
};
// Count 1; NULL = out of memory.
struct xds_refused *xds_refused_new(const char *type_url, const uint8_t *bytes, size_t len);
struct xds_refused *xds_refused_get(struct xds_refused *); // NULL is fine
void xds_refused_put(struct xds_refused *); // NULL is fine

struct xds_type {
	const char *url; // "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	const char *label; // "cluster", for operators
	// A SotW response lists every requested resource of the type, so a missing one was deleted
	// (SW-11). False: a missing resource means nothing (SW-14).
	bool full_state;
	enum xds_origin origin;
	// Names and contents are only forwarded (raw.h): names are used as spelled, and watchers
	// are told of every message of the server, even with an unchanged value.
	bool is_opaque;
	void (*decode)(const uint8_t *bytes, size_t len, struct xds_decoded *);
	// The same in short steps, for types whose resources may be large; NULL = decode() never
	// takes long. The bytes last until end().
	struct xds_decoding *(*begin)(const uint8_t *bytes, size_t len); // NULL = out of memory
	bool (*step)(struct xds_decoding *); // false = there is nothing left to do
	// Frees it. NULL: it is given up; else its bootstrap is set already.
	void (*end)(struct xds_decoding *, struct xds_decoded *);
	// Stores the sender in the resources inside it; NULL = it has none.
	void (*set_server)(struct xds_res *, const struct xds_server_conf *);
	// Releases references to other resources; NULL = it has none. The arena is freed by the
	// caller.
	void (*release)(struct xds_res *);
};

// All steps of a type that has them: what its decode() is.
void xds_decode_steps(
	const struct xds_type *, const uint8_t *bytes, size_t len, struct xds_decoded *ret);

// Makes a zeroed struct of `size` bytes that starts with an xds_res, which keeps a copy of bytes.
// Returns NULL if out of memory.
struct xds_res *xds_res_new(
	const struct xds_type *, size_t size, const char *name, const uint8_t *bytes, size_t len);
struct xds_res *xds_res_get(struct xds_res *);
void xds_res_put(struct xds_res *); // NULL is fine
// Stores the sender; call after decoding and before sharing it.
void xds_res_set_server(struct xds_res *, const struct xds_server_conf *);
// True if the sender is trusted (A81).
bool xds_res_is_trusted(const struct xds_res *);
// True if type, name and bytes are equal, and the bytes mean the same.
bool xds_res_eq(const struct xds_res *, const struct xds_res *);
