// SPDX-License-Identifier: Apache-2.0
// A version is 32 hexadecimal digits of the content's hash, and for a variant with constraints "-"
// and the constraints' encoding: a delta client says after a reconnect only which name it holds in
// which version (TP2-T10), and the server must know which variant that was, to take it away when
// another is now the right one.
#include "tools/shunt-xds/resource.h"

#include "ctrl/xds/raw.h"
#include "ctrl/xds/type.h"
#include "ctrl/xds/variants/constraints.h"
#include "lb/base/check.h"
#include "proto/wire.h"

#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_DIGITS 32

static const struct resource_type_info types[N_RESOURCE_TYPES] = {
	[RESOURCE_CLUSTER] = {"type.googleapis.com/envoy.config.cluster.v3.Cluster", "cluster",
		true},
	[RESOURCE_ENDPOINTS] =
		{"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "endpoints",
			false},
	[RESOURCE_LISTENER] = {"type.googleapis.com/envoy.config.listener.v3.Listener", "listener",
		true},
	[RESOURCE_ROUTES] = {"type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
		"routes", false},
};

const struct resource_type_info *resource_type_info(enum resource_type type)
{
	CHECK(type < N_RESOURCE_TYPES);
	return &types[type];
}

enum resource_type resource_type_find(struct str type_url)
{
	enum resource_type t = 0;
	while (t < N_RESOURCE_TYPES && !str_eq(str_from(types[t].url), type_url))
		t++;
	return t;
}

// The caller's; NULL = out of memory.
static char *make_version(const struct resource *r)
{
	size_t n_constraints = 0;
	const uint8_t *constraints = NULL;
	if (r->constraints)
		constraints = xds_constraints_bytes(r->constraints, &n_constraints);
	size_t room = HASH_DIGITS + 1 + 2 * n_constraints + 1;
	char *text = malloc(room);
	if (!text)
		return NULL;
	XXH128_hash_t h = XXH3_128bits_withSeed(r->bytes, r->len, r->do_not_cache);
	snprintf(text, room, "%016" PRIx64 "%016" PRIx64 "%s", (uint64_t)h.high64,
		(uint64_t)h.low64, n_constraints > 0 ? "-" : "");
	char *at = text + strlen(text);
	for (size_t i = 0; i < n_constraints; i++, at += 2)
		snprintf(at, 3, "%02x", constraints[i]);
	return text;
}

// NULL = a part of it is missing: out of memory.
static struct resource *finish(struct resource *r)
{
	if (r->name && r->bytes && !r->version)
		r->version = make_version(r);
	if (!r->name || !r->bytes || !r->version) {
		resource_put(r);
		return NULL;
	}
	struct proto_field inner;
	r->names_itself = xds_raw_name(r->bytes, r->len, &inner) && inner.len == strlen(r->name) &&
	                  memcmp(inner.bytes, r->name, inner.len) == 0;
	r->hash = XXH3_64bits_withSeed(
		r->name, strlen(r->name), XXH3_64bits(r->version, strlen(r->version)));
	return r;
}

struct resource *resource_new(uint32_t type, const char *name, struct xds_constraints *constraints,
	const uint8_t *bytes, size_t len, bool do_not_cache)
{
	struct resource *r = calloc(1, sizeof(*r));
	uint8_t *copy = malloc(len + 1);
	if (!r) {
		free(copy);
		return NULL;
	}
	if (copy && len > 0)
		memcpy(copy, bytes, len);
	*r = (struct resource){.n_refs = 1,
		.type = type,
		.do_not_cache = do_not_cache,
		.name = strdup(name),
		.constraints = xds_constraints_get(constraints),
		.bytes = copy,
		.len = len};
	return finish(r);
}

struct resource *resource_new_received(uint32_t type, const char *name,
	struct xds_constraints *constraints, const char *version, struct xds_res *res)
{
	struct resource *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct resource){.n_refs = 1,
		.type = type,
		.do_not_cache = res->do_not_cache,
		.name = strdup(name),
		.constraints = xds_constraints_get(constraints),
		.bytes = res->bytes,
		.len = res->len,
		.received = xds_res_get(res),
		.version = version ? strdup(version) : NULL};
	if (!version || r->version)
		return finish(r);
	resource_put(r);
	return NULL;
}

struct resource *resource_get(struct resource *r)
{
	if (r)
		r->n_refs++;
	return r;
}

void resource_put(struct resource *r)
{
	if (!r || --r->n_refs > 0)
		return;
	xds_constraints_put(r->constraints);
	free(r->name);
	if (r->received)
		xds_res_put(r->received);
	else
		free((void *)(uintptr_t)r->bytes);
	free(r->version);
	free(r);
}

bool resource_eq(const struct resource *a, const struct resource *b)
{
	return a->len == b->len && a->do_not_cache == b->do_not_cache &&
	       memcmp(a->bytes, b->bytes, a->len) == 0;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct xds_constraints *resource_version_constraints(const char *version)
{
	struct xds_constraints *found = NULL;
	size_t len = strlen(version);
	if (len <= HASH_DIGITS + 1 || version[HASH_DIGITS] != '-' ||
		(len - HASH_DIGITS - 1) % 2 != 0)
		return NULL;
	size_t n = (len - HASH_DIGITS - 1) / 2;
	uint8_t *bytes = malloc(n);
	if (!bytes)
		return NULL;
	const char *at = version + HASH_DIGITS + 1;
	int digits = 0;
	for (size_t i = 0; i < n && digits >= 0; i++, at += 2) {
		digits = digit_of(at[0]) < 0 || digit_of(at[1]) < 0
		                 ? -1
		                 : digit_of(at[0]) * 16 + digit_of(at[1]);
		bytes[i] = (uint8_t)digits;
	}
	if (digits < 0 || xds_constraints_decode(bytes, n, &found, NULL) < 0)
		found = NULL;
	free(bytes);
	return found;
}
