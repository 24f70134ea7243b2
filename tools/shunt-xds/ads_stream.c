// SPDX-License-Identifier: Apache-2.0
// Handles a client's requests.
#include "tools/shunt-xds/ads_stream.h"

#include "ctrl/xds/variants/params.h"
#include "tools/shunt-xds/ads_stream_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_TEXT_MAX 24
#define WRAP_FEATURE "xds.config.resource-in-sotw"

typedef Envoy__Service__Discovery__V3__ResourceLocator locator_message;
typedef Envoy__Service__Discovery__V3__DiscoveryRequest sotw_request;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest delta_request;

struct ads_stream *ads_stream_new(enum ads_protocol protocol, struct catalog *catalog)
{
	struct ads_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->protocol = protocol;
	s->catalog = catalog;
	s->n_types = N_RESOURCE_TYPES;
	s->types = calloc(s->n_types, sizeof(*s->types));
	if (s->types)
		return s;
	free(s);
	return NULL;
}

void ads_stream_free(struct ads_stream *s)
{
	if (!s)
		return;
	struct ads_items *lists[] = {&s->resources, &s->removed, &s->scratch};
	for (int i = 0; i < 3; i++) {
		ads_items_clear(lists[i]);
		free(lists[i]->list);
	}
	for (uint32_t t = 0; t < s->n_types; t++) {
		struct catalog_type *type = &s->catalog->types[t];
		if (!s->types[t].is_open)
			continue;
		subscription_fini(&s->types[t].sub, type);
		catalog_close_type(s->catalog, type);
	}
	free(s->errors);
	free(s->types);
	free(s);
}

static int reserve_state(struct ads_stream *s, const struct catalog_type *type)
{
	if (type->index >= s->n_types) {
		uint32_t n = type->index + 1;
		struct ads_type *types = realloc(s->types, n * sizeof(*types));
		if (!types)
			return -ENOMEM;
		memset(types + s->n_types, 0, (n - s->n_types) * sizeof(*types));
		s->types = types;
		s->n_types = n;
	}
	return 0;
}

// The type of a request. 0, and *ret is NULL if it is not served, or -ENOMEM.
static int open_type(struct ads_stream *s, const char *url, struct catalog_type **ret)
{
	struct catalog_type *type = catalog_find_type(s->catalog, url);
	bool is_open = type && type->index < s->n_types && s->types[type->index].is_open;
	int rc = is_open ? 0 : catalog_open_type(s->catalog, url, s->n_made, &type);
	if (rc)
		return rc;
	if (type && !is_open) {
		rc = reserve_state(s, type);
		if (rc) {
			catalog_close_type(s->catalog, type);
			return rc;
		}
		s->types[type->index].is_open = true;
		s->n_made += catalog_type_is_made(type);
	}
	*ret = type;
	return 0;
}

// Names and locators of a request in one list (TP2-T04), with room for one more.
struct locators {
	struct locator *list;
	size_t n;
	struct xds_params **params; // counted, for the list; it is sorted, they are not
	size_t n_params;
};

static void locators_fini(struct locators *l)
{
	for (size_t i = 0; i < l->n_params; i++)
		xds_params_put(l->params[i]);
	free(l->params);
	free(l->list);
}

static int locators_init(struct locators *l, char *const *names, size_t n_names,
	locator_message *const *locators, size_t n_locators)
{
	*l = (struct locators){
		.list = malloc((n_names + n_locators + 1) * sizeof(struct locator)),
		.params = malloc((n_locators + 1) * sizeof(struct xds_params *)),
	};
	int rc = l->list && l->params ? 0 : -ENOMEM;
	for (size_t i = 0; i < n_names && !rc; i++)
		l->list[l->n++] = (struct locator){names[i], NULL};
	for (size_t i = 0; i < n_locators && !rc; i++) {
		struct xds_params *params = NULL;
		rc = xds_params_from_locator(locators[i], &params);
		if (rc)
			break;
		l->params[l->n_params++] = params;
		l->list[l->n++] = (struct locator){locators[i]->name, params};
	}
	if (rc) {
		locators_fini(l);
		*l = (struct locators){0};
	}
	return rc;
}

static bool nonce_is(const char *text, uint64_t nonce)
{
	char own[NUMBER_TEXT_MAX];
	snprintf(own, sizeof(own), "%" PRIu64, nonce);
	return strcmp(text, own) == 0;
}

static bool reads_wrappers(const sotw_request *request)
{
	if (request->n_resource_locators > 0)
		return true;
	for (size_t i = 0; request->node && i < request->node->n_client_features; i++)
		if (strcmp(request->node->client_features[i], WRAP_FEATURE) == 0)
			return true;
	return false;
}

// The last response is accepted or refused.
static enum ads_request_kind answer(struct ads_type *t, bool refused, uint64_t now_ns)
{
	t->exchange_ns = now_ns;
	t->answered = true;
	t->refused = refused;
	return refused ? ADS_REQUEST_NACK : ADS_REQUEST_ACK;
}

int ads_stream_feed_sotw(struct ads_stream *s, const sotw_request *request, uint64_t now_ns,
	struct ads_request_result *ret)
{
	*ret = (struct ads_request_result){.kind = ADS_REQUEST_UNKNOWN_TYPE};
	s->wraps |= reads_wrappers(request);
	struct catalog_type *type;
	int rc = open_type(s, request->type_url, &type);
	if (rc || !type)
		return rc;
	struct ads_type *t = &s->types[type->index];
	ret->type = type;
	// A nonce on the first request of a type is one of an earlier stream: worth nothing, no
	// harm.
	bool names_response = request->response_nonce[0] && t->nonce != 0;
	ret->version = t->version;
	ret->kind = ADS_REQUEST_STALE;
	if (names_response && !nonce_is(request->response_nonce, t->nonce))
		return 0;
	struct locators l;
	rc = locators_init(&l, request->resource_names, request->n_resource_names,
		request->resource_locators, request->n_resource_locators);
	if (rc)
		return rc;
	rc = subscription_set(&t->sub, type, l.list, l.n, type->info.full_state);
	locators_fini(&l);
	if (rc)
		return rc;
	if (!t->is_started && request->version_info[0])
		t->resume_ns = now_ns;
	t->is_started = true;
	t->is_compared = false;
	ret->n_names = t->sub.n;
	ret->wildcard = t->sub.n_wild > 0;
	ret->kind = ADS_REQUEST_SUBSCRIBE;
	t->asked |= !names_response || t->sub.wild_is_new;
	if (!names_response) {
		subscription_forget(&t->sub);
	} else if (!t->answered) {
		ret->kind = answer(t, request->error_detail != NULL, now_ns);
	}
	return 0;
}

static int hold(struct ads_type *t, const struct catalog_type *type, const delta_request *request,
	uint64_t now_ns)
{
	size_t n = request->n_initial_resource_versions;
	struct holding *list = malloc((n + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		list[i] = (struct holding){request->initial_resource_versions[i]->key,
			request->initial_resource_versions[i]->value};
	int rc = subscription_hold(&t->sub, type, list, n);
	t->resume_ns = now_ns;
	free(list);
	return rc;
}

static bool has_star(const struct locators *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->list[i].name, "*") == 0)
			return true;
	return false;
}

static int change_subscriptions(struct ads_type *t, const struct catalog_type *catalog,
	const delta_request *request, struct locators *add, struct locators *remove,
	uint64_t now_ns)
{
	bool is_first = !t->is_started;
	if (is_first && add->n == 0 && catalog->info.full_state)
		add->list[add->n++] = (struct locator){"*", NULL};
	t->asked |= has_star(add);
	int rc = subscription_change(&t->sub, catalog, add->list, add->n, remove->list, remove->n);
	// The list means something in the first request of a type only (DL-02).
	if (!rc && is_first && request->n_initial_resource_versions > 0)
		rc = hold(t, catalog, request, now_ns);
	return rc;
}

static int take_delta(struct ads_type *t, const struct catalog_type *type,
	const delta_request *request, uint64_t now_ns)
{
	struct locators add, remove;
	int rc = locators_init(&add, request->resource_names_subscribe,
		request->n_resource_names_subscribe, request->resource_locators_subscribe,
		request->n_resource_locators_subscribe);
	if (rc)
		return rc;
	rc = locators_init(&remove, request->resource_names_unsubscribe,
		request->n_resource_names_unsubscribe, request->resource_locators_unsubscribe,
		request->n_resource_locators_unsubscribe);
	// An answer alone, the most frequent, costs nothing.
	if (!rc && (!t->is_started || add.n > 0 || remove.n > 0))
		rc = change_subscriptions(t, type, request, &add, &remove, now_ns);
	locators_fini(&add);
	locators_fini(&remove);
	return rc;
}

int ads_stream_feed_delta(struct ads_stream *s, const delta_request *request, uint64_t now_ns,
	struct ads_request_result *ret)
{
	*ret = (struct ads_request_result){.kind = ADS_REQUEST_UNKNOWN_TYPE};
	struct catalog_type *type;
	int rc = open_type(s, request->type_url, &type);
	if (rc || !type)
		return rc;
	struct ads_type *t = &s->types[type->index];
	ret->type = type;
	bool names_response = request->response_nonce[0] && t->nonce != 0;
	bool is_last = names_response && nonce_is(request->response_nonce, t->nonce);
	rc = take_delta(t, type, request, now_ns);
	if (rc)
		return rc;
	t->is_started = true;
	t->is_compared = false;
	ret->version = is_last ? t->version : 0;
	ret->n_names = t->sub.n;
	ret->wildcard = t->sub.n_wild > 0;
	ret->kind = ADS_REQUEST_SUBSCRIBE;
	if (is_last && !t->answered)
		ret->kind = answer(t, request->error_detail != NULL, now_ns);
	else if (names_response && !is_last)
		ret->kind = request->error_detail ? ADS_REQUEST_NACK : ADS_REQUEST_STALE;
	return 0;
}
