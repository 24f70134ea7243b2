// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/type.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/check.h"

#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

void xds_decode_steps(
	const struct xds_type *type, const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	struct xds_decoding *d = type->begin(bytes, len);
	if (!d)
		return;
	while (type->step(d))
		continue;
	type->end(d, ret);
}

struct xds_res *xds_res_new(const struct xds_type *type, size_t size, const char *name,
	const uint8_t *bytes, size_t len)
{
	DCHECK(size >= sizeof(struct xds_res));
	size_t name_size = strlen(name) + 1;
	struct xds_res *r = calloc(1, size + len + name_size);
	if (!r)
		return NULL;
	char *behind = (char *)r + size;
	r->n_refs = 1;
	r->type = type;
	r->len = len;
	r->hash = XXH64(bytes, len, 0);
	if (len)
		memcpy(behind, bytes, len);
	r->bytes = (const uint8_t *)behind;
	r->name = memcpy(behind + len, name, name_size);
	return r;
}

struct xds_res *xds_res_get(struct xds_res *r)
{
	CHECK(r->n_refs > 0);
	r->n_refs++;
	return r;
}

void xds_res_put(struct xds_res *r)
{
	if (!r)
		return;
	CHECK(r->n_refs > 0);
	if (--r->n_refs)
		return;
	if (r->type->release)
		r->type->release(r);
	lb_arena_fini(&r->arena);
	free(r);
}

void xds_res_set_server(struct xds_res *r, const struct xds_server_conf *server)
{
	DCHECK(r->n_refs == 1);
	r->server = server;
	if (r->type->set_server)
		r->type->set_server(r, server);
}

bool xds_res_is_trusted(const struct xds_res *r)
{
	return r->server && r->server->trusted;
}

static bool same_origin(const struct xds_res *a, const struct xds_res *b)
{
	switch (a->type->origin) {
	case XDS_ORIGIN_TRUST:
		return xds_res_is_trusted(a) == xds_res_is_trusted(b);
	case XDS_ORIGIN_SERVER:
		return a->server == b->server;
	case XDS_ORIGIN_ANY:
		break;
	}
	return true;
}

bool xds_res_eq(const struct xds_res *a, const struct xds_res *b)
{
	if (a == b)
		return true;
	return a->type == b->type && a->hash == b->hash && a->len == b->len &&
	       a->do_not_cache == b->do_not_cache && memcmp(a->bytes, b->bytes, a->len) == 0 &&
	       strcmp(a->name, b->name) == 0 && same_origin(a, b);
}

struct xds_refused *xds_refused_new(const char *type_url, const uint8_t *bytes, size_t len)
{
	size_t url_size = strlen(type_url) + 1;
	struct xds_refused *r = malloc(sizeof(*r) + len + url_size);
	if (!r)
		return NULL;
	uint8_t *behind = (uint8_t *)(r + 1);
	*r = (struct xds_refused){.n_refs = 1, .len = len, .bytes = behind};
	if (len)
		memcpy(behind, bytes, len);
	r->type_url = memcpy(behind + len, type_url, url_size);
	return r;
}

struct xds_refused *xds_refused_get(struct xds_refused *r)
{
	if (r)
		r->n_refs++;
	return r;
}

void xds_refused_put(struct xds_refused *r)
{
	if (!r)
		return;
	CHECK(r->n_refs > 0);
	if (--r->n_refs == 0)
		free(r);
}
