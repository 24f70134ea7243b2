// SPDX-License-Identifier: Apache-2.0
// Incremental ADS (DL-*): requests say what has changed, responses too, and each
// resource has a version of its own.
#include "ctrl/xds/bootstrap/node.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/subs.h"
#include "lb/base/container_of.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest Request;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest__InitialResourceVersionsEntry Version;

// What changes with this request; the server knows the rest (DL-03). The first one of a stream
// finds everything pending (DL-01, DL-02).
static int list_changes(Request *m, const struct xds_subs *subs, struct lb_arena *arena)
{
	size_t n = 0;
	for (struct list_link *c = subs->pending.next; c != &subs->pending; c = c->next)
		n++;
	m->resource_names_subscribe = lb_arena_alloc(arena, n, sizeof(char *));
	m->resource_names_unsubscribe = lb_arena_alloc(arena, n, sizeof(char *));
	if (!m->resource_names_subscribe || !m->resource_names_unsubscribe)
		return -ENOMEM;
	int rc = 0;
	for (struct list_link *c = subs->pending.next; !rc && c != &subs->pending; c = c->next) {
		const struct xds_entry *e = CONTAINER_OF(c, struct xds_entry, pending);
		char *name = xds_wire_text(e->sub->name);
		if (e->sub->params && e->n_asking > 0) // TP2-T05
			rc = xds_wire_add_locator(&m->resource_locators_subscribe,
				&m->n_resource_locators_subscribe, n, e->sub, arena);
		else if (e->sub->params)
			rc = xds_wire_add_locator(&m->resource_locators_unsubscribe,
				&m->n_resource_locators_unsubscribe, n, e->sub, arena);
		else if (e->n_asking > 0)
			m->resource_names_subscribe[m->n_resource_names_subscribe++] = name;
		else
			m->resource_names_unsubscribe[m->n_resource_names_unsubscribe++] = name;
	}
	return rc;
}

// The server need not send again what is held in the version that it has (DL-13). But it has to
// where its last word was that there is no such resource, whatever has been kept of it (DL-02), and
// where a name does not say which variant is held (TP2-T10).
static bool is_held(const struct xds_subs *subs, const struct xds_entry *e)
{
	return !TAILQ_EMPTY(&e->watchers) && e->value && !e->is_kept && e->version &&
	       e->sub->variant &&
	       (e->status == XDS_STATUS_ACKED || e->status == XDS_STATUS_NACKED) &&
	       xds_variants_sole(subs->variants, e->sub->name);
}

static int list_versions(Request *m, const struct xds_subs *subs, struct lb_arena *arena)
{
	size_t n = 0;
	for (struct list_link *c = subs->all.next; c != &subs->all; c = c->next)
		n += is_held(subs, CONTAINER_OF(c, struct xds_entry, all));
	Version *versions = lb_arena_alloc(arena, n, sizeof(*versions));
	m->initial_resource_versions = lb_arena_alloc(arena, n, sizeof(Version *));
	if (!versions || !m->initial_resource_versions)
		return -ENOMEM;
	for (struct list_link *c = subs->all.next; c != &subs->all; c = c->next) {
		const struct xds_entry *e = CONTAINER_OF(c, struct xds_entry, all);
		if (!is_held(subs, e))
			continue;
		Version *v = &versions[m->n_initial_resource_versions];
		envoy__service__discovery__v3__delta_discovery_request__initial_resource_versions_entry__init(
			v);
		v->key = xds_wire_text(e->sub->name);
		v->value = xds_wire_text(e->version);
		e->sub->variant->is_claimed = true;
		m->initial_resource_versions[m->n_initial_resource_versions++] = v;
	}
	return 0;
}

static int encode(const struct xds_ask *ask, uint8_t **ret, size_t *ret_len)
{
	Request m;
	struct xds_wire_head head;
	struct lb_arena arena = {0};
	envoy__service__discovery__v3__delta_discovery_request__init(&m);
	if (xds_wire_head_init(&head, ask->node, ask->error))
		return -ENOMEM;
	m.node = ask->node ? &head.node : NULL;
	m.error_detail = ask->error ? &head.error : NULL;
	m.type_url = xds_wire_text(ask->type->url);
	if (ask->answer) // DL-04
		m.response_nonce = xds_wire_text(ask->nonce);
	int rc = list_changes(&m, ask->subs, &arena);
	if (rc == 0 && ask->first)
		rc = list_versions(&m, ask->subs, &arena);
	if (rc == 0)
		rc = proto_pack(&m.base, ret, ret_len);
	lb_arena_fini(&arena);
	xds_wire_head_fini(&head);
	return rc;
}

const struct xds_protocol xds_protocol_delta = {
	.name = "delta",
	.method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
		  "DeltaAggregatedResources",
	.asks_again = true,
	.encode = encode,
	.response =
		{
			.message = "DeltaDiscoveryResponse",
			.version = 1,
			.type_url = 4,
			.nonce = 5,
			.wrapped = 2,
			.removed = 6,
			.removed_names = 8,
			.errors = 9,
		},
};
