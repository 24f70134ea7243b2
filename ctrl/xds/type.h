// SPDX-License-Identifier: Apache-2.0
// What the xDS client knows of a resource type: how to decode and check one resource. The types
// themselves live in ctrl/res; the client never looks inside a resource.
// Thread: ctrl.
#pragma once

#include "lb/base/arena.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct xds_server_conf;
struct xds_type;

// One decoded resource: the first member of every res_… struct. Immutable once decoded, but for the
// end of its time.
struct xds_res {
	uint32_t n_refs;
	bool do_not_cache; // as its wrapper says, to proxies (TP2-P06)
	// The client's: when its TTL is over, rounded up (RS-04); 0 = never. Moves as it is sent
	// again.
	uint32_t expires_s;
	const struct xds_type *type;
	const char *name; // as the resource itself gives it; behind the struct
	const uint8_t *bytes; // as received, unknown fields included; likewise
	size_t len;
	uint64_t hash; // XXH64 of the bytes
	const struct xds_server_conf *server; // who sent it; borrowed; NULL = nobody did
	struct lb_arena arena; // owns what else the struct points to
};

// The outcome of decoding. A resource that fails may still have told its name.
struct xds_decoded {
	struct xds_res *res; // count 1, the caller's; NULL = refused, and err says why
	char *name; // owned by the caller (free); NULL = none found
	struct lb_err err;
};

// What the same bytes mean depends on who sent them.
enum xds_origin {
	XDS_ORIGIN_ANY, // it does not
	XDS_ORIGIN_TRUST, // on whether the server is trusted (A81)
	XDS_ORIGIN_SERVER, // "self" is that server (A47, FE-09)
};

// A resource that was refused, as it came (CS-06). Immutable.
struct xds_refused {
	uint32_t n_refs;
	size_t len;
	const uint8_t *bytes; // behind the struct; so is
	const char *type_url; // of what was sent, which may be another type's
};
// Count 1; NULL = out of memory.
struct xds_refused *xds_refused_new(const char *type_url, const uint8_t *bytes, size_t len);
struct xds_refused *xds_refused_get(struct xds_refused *); // NULL is fine
void xds_refused_put(struct xds_refused *); // NULL is fine

struct xds_type {
	const char *url; // "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	const char *label; // "cluster", for operators
	// A SotW response lists every resource of the type that was asked for, so that a missing
	// one was deleted (SW-11). False: absence means nothing (SW-14).
	bool full_state;
	enum xds_origin origin;
	// Names and contents are only passed on (raw.h): names are taken as they are spelt, and
	// each word of the server is told, also of a value that is the same.
	bool is_opaque;
	void (*decode)(const uint8_t *bytes, size_t len, struct xds_decoded *);
	// Tells resources inside of it who sent them; NULL = there are none.
	void (*set_server)(struct xds_res *, const struct xds_server_conf *);
	// Drops references to other resources; NULL = there are none. The arena goes by itself.
	void (*release)(struct xds_res *);
};

// A zeroed struct of `size` bytes that starts with an xds_res, which keeps a copy of bytes. NULL =
// out of memory.
struct xds_res *xds_res_new(
	const struct xds_type *, size_t size, const char *name, const uint8_t *bytes, size_t len);
struct xds_res *xds_res_get(struct xds_res *);
void xds_res_put(struct xds_res *); // NULL is fine
// Who sent it, once it is decoded and before anybody else knows it.
void xds_res_set_server(struct xds_res *, const struct xds_server_conf *);
// Whoever sent it is trusted (A81).
bool xds_res_is_trusted(const struct xds_res *);
// Same type, name and bytes, and the same meaning of them.
bool xds_res_eq(const struct xds_res *, const struct xds_res *);
