// SPDX-License-Identifier: Apache-2.0
// State of the world (SW-*): each request lists all names of its type, and each
// response of listeners or clusters all there are.
#include "ctrl/xds/bootstrap/node.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/subs.h"
#include "lb/base/container_of.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A short name; protobuf-c's own is a typedef.
typedef Envoy__Service__Discovery__V3__DiscoveryRequest Request;

// All that is wanted now (SW-05), in order of subscription (WA-04): what has parameters as locators
// (TP2-T03), the rest as names (TP2-T04).
static int list_names(Request *m, const struct xds_subs *subs, struct lb_arena *arena)
{
	m->resource_names = lb_arena_alloc(arena, subs->n, sizeof(*m->resource_names));
	if (!m->resource_names)
		return -ENOMEM;
	for (struct list_link *c = subs->all.next; c != &subs->all; c = c->next) {
		const struct xds_entry *e = CONTAINER_OF(c, struct xds_entry, all);
		if (e->n_asking == 0)
			continue;
		if (e->sub->params) {
			int rc = xds_wire_add_locator(&m->resource_locators,
				&m->n_resource_locators, subs->n, e->sub, arena);
			if (rc)
				return rc;
		} else {
			m->resource_names[m->n_resource_names++] = xds_wire_text(e->sub->name);
		}
	}
	return 0;
}

// Every acknowledgement lists all names again: those are packed once, where none has parameters.
static int keep_names(Request *m, struct xds_subs *subs)
{
	Request names;
	if (m->n_resource_locators)
		return 0;
	envoy__service__discovery__v3__discovery_request__init(&names);
	names.resource_names = m->resource_names;
	names.n_resource_names = m->n_resource_names;
	m->n_resource_names = 0;
	return proto_pack(&names.base, &subs->names, &subs->names_len);
}

// Fields may come in any order, so that one message's bytes may follow another's.
static int pack(const Request *m, const struct xds_subs *subs, uint8_t **ret, size_t *ret_len)
{
	size_t names_len = subs->names ? subs->names_len : 0;
	size_t len = protobuf_c_message_get_packed_size(&m->base);
	uint8_t *bytes = malloc(len + names_len + 1);
	if (!bytes)
		return -ENOMEM;
	protobuf_c_message_pack(&m->base, bytes);
	if (names_len)
		memcpy(bytes + len, subs->names, names_len);
	*ret = bytes;
	*ret_len = len + names_len;
	return 0;
}

static int encode(const struct xds_ask *ask, uint8_t **ret, size_t *ret_len)
{
	Request m;
	struct xds_wire_head head;
	struct lb_arena arena = {0};
	envoy__service__discovery__v3__discovery_request__init(&m);
	if (xds_wire_head_init(&head, ask->node, ask->error))
		return -ENOMEM;
	m.node = ask->node ? &head.node : NULL;
	m.error_detail = ask->error ? &head.error : NULL;
	m.type_url = xds_wire_text(ask->type->url);
	m.version_info = xds_wire_text(ask->version);
	m.response_nonce = xds_wire_text(ask->nonce);
	int rc = ask->subs->names ? 0 : list_names(&m, ask->subs, &arena);
	if (rc == 0 && !ask->subs->names)
		rc = keep_names(&m, ask->subs);
	if (rc == 0)
		rc = pack(&m, ask->subs, ret, ret_len);
	lb_arena_fini(&arena);
	xds_wire_head_fini(&head);
	return rc;
}

const struct xds_protocol xds_protocol_sotw = {
	.name = "sotw",
	.newest_wins = true,
	.lists_all = true,
	.method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
		  "StreamAggregatedResources",
	.encode = encode,
	.response =
		{
			.message = "DiscoveryResponse",
			.version = 1,
			.type_url = 4,
			.nonce = 5,
			.resources = 2,
			.errors = 7,
		},
};
