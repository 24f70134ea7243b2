// SPDX-License-Identifier: Apache-2.0
// Order within one version: clusters, endpoints, listeners, routes (make before break). Clusters
// that are gone are taken away last: not while a response that may end their use is unsent,
// unanswered or refused (a client that refuses new routes goes on with the old ones), nor for a
// while after, in which the client gets the clusters that the new routes name.
#include "tools/shunt-xds/ads_stream.h"

#include "google/protobuf/any.pb-c.h"
#include "lb/base/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_TEXT_MAX 24
#define BREAK_DELAY_NS 1000000000ull // from the last exchange about listeners or routes

enum due { DUE_NOTHING, DUE_REMOVAL, DUE_CHANGE };

struct ads_type {
	struct subscription sub;
	bool asked; // a full-state type owes a response, even an empty one
	bool answered; // the last response was accepted or refused
	bool refused; // the last answer was a NACK
	uint64_t nonce; // of the last response; 0 = none was sent
	uint64_t version; // of the last response
	// The comparison with list version `compared` stands until the subscription changes.
	bool is_compared;
	uint64_t compared;
	enum due due;
};

struct ads_stream {
	struct ads_type types[N_RESOURCE_TYPES];
	uint64_t last_nonce; // one sequence for all types
	uint64_t break_ns; // clusters are not taken away before
	struct resource **picked; // of the last response
	size_t picked_room;
};

struct ads_stream *ads_stream_new(void)
{
	return calloc(1, sizeof(struct ads_stream));
}

void ads_stream_free(struct ads_stream *s)
{
	if (!s)
		return;
	for (int t = 0; t < N_RESOURCE_TYPES; t++)
		subscription_fini(&s->types[t].sub);
	free(s->picked);
	free(s);
}

static bool nonce_is(const char *text, uint64_t nonce)
{
	char own[NUMBER_TEXT_MAX];
	snprintf(own, sizeof(own), "%" PRIu64, nonce);
	return strcmp(text, own) == 0;
}

// Names with dynamic parameters (TP2) join the plain ones: nothing here is constrained, so every
// resource matches whatever parameters (TP2-C06).
static int set_names(struct ads_type *t,
	const Envoy__Service__Discovery__V3__DiscoveryRequest *request, bool empty_is_wildcard)
{
	size_t n = request->n_resource_names + request->n_resource_locators;
	char **names = malloc((n + 1) * sizeof(char *));
	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < request->n_resource_names; i++)
		names[i] = request->resource_names[i];
	for (size_t i = 0; i < request->n_resource_locators; i++)
		names[request->n_resource_names + i] = request->resource_locators[i]->name;
	int r = subscription_set_names(&t->sub, names, n, empty_is_wildcard);
	free(names);
	return r;
}

// Listeners and routes were exchanged just now.
static void note_exchange(struct ads_stream *s, enum resource_type type, uint64_t now_ns)
{
	if (type == RESOURCE_LISTENER || type == RESOURCE_ROUTES)
		s->break_ns = now_ns + BREAK_DELAY_NS;
}

int ads_stream_feed(struct ads_stream *s,
	const Envoy__Service__Discovery__V3__DiscoveryRequest *request, uint64_t now_ns,
	struct ads_request_result *ret)
{
	*ret = (struct ads_request_result){.kind = ADS_REQUEST_UNKNOWN_TYPE};
	ret->type = resource_type_find(str_from(request->type_url));
	if (ret->type == N_RESOURCE_TYPES)
		return 0;
	struct ads_type *t = &s->types[ret->type];
	const char *nonce = request->response_nonce;
	// A nonce on the first request of a type is one of an earlier stream: worth nothing, no
	// harm.
	bool names_response = nonce[0] && t->nonce != 0;
	ret->version = t->version;
	ret->kind = ADS_REQUEST_STALE;
	if (names_response && !nonce_is(nonce, t->nonce))
		return 0;
	int r = set_names(t, request, resource_type_info(ret->type)->full_state);
	if (r < 0)
		return r;
	ret->n_names = t->sub.n;
	ret->wildcard = t->sub.wildcard;
	t->is_compared = false;
	if (!names_response) {
		t->asked = true;
		subscription_forget(&t->sub);
		ret->kind = ADS_REQUEST_SUBSCRIBE;
	} else if (t->answered) {
		ret->kind = ADS_REQUEST_SUBSCRIBE;
	} else {
		note_exchange(s, ret->type, now_ns);
		t->answered = true;
		t->refused = request->error_detail != NULL;
		ret->kind = t->refused ? ADS_REQUEST_NACK : ADS_REQUEST_ACK;
	}
	return 0;
}

static enum due compare(const struct ads_type *t, bool full_state)
{
	enum due due = t->asked && full_state && (t->sub.wildcard || t->sub.n > 0) ? DUE_CHANGE
	                                                                           : DUE_NOTHING;
	for (size_t i = 0; i < t->sub.n && due != DUE_CHANGE; i++) {
		const struct subscription_entry *e = &t->sub.entries[i];
		if (e->current && (!e->sent || e->sent->version != e->current->version))
			due = DUE_CHANGE;
		else if (!e->current && e->sent && full_state)
			due = DUE_REMOVAL;
	}
	return due;
}

// Brings due of every type up to date.
static int compare_all(struct ads_stream *s, const struct resource_set *set)
{
	for (int i = 0; i < N_RESOURCE_TYPES; i++) {
		struct ads_type *t = &s->types[i];
		uint64_t version = set->types[i].version;
		if (t->is_compared && t->compared == version)
			continue;
		int r = subscription_refresh(&t->sub, set, (enum resource_type)i);
		if (r < 0)
			return r;
		t->due = compare(t, resource_type_info((enum resource_type)i)->full_state);
		t->is_compared = true;
		t->compared = version;
	}
	return 0;
}

// Something that may still use a cluster which is gone was not yet sent, not yet answered, or
// refused. Endpoints name no clusters; refusing those holds nothing up.
static bool users_are_busy(const struct ads_stream *s)
{
	for (int i = RESOURCE_CLUSTER + 1; i < N_RESOURCE_TYPES; i++) {
		const struct ads_type *t = &s->types[i];
		if (t->due != DUE_NOTHING || (t->nonce != 0 && !t->answered))
			return true;
		if (i != RESOURCE_ENDPOINTS && t->refused)
			return true;
	}
	return false;
}

static int room_for(struct ads_stream *s, size_t n)
{
	if (n <= s->picked_room)
		return 0;
	struct resource **picked = realloc(s->picked, n * sizeof(struct resource *));
	if (!picked)
		return -ENOMEM;
	s->picked = picked;
	s->picked_room = n;
	return 0;
}

static int pick(struct ads_stream *s, enum resource_type type, const struct resource_set *set,
	uint64_t now_ns, struct ads_response *ret)
{
	struct ads_type *t = &s->types[type];
	bool full_state = resource_type_info(type)->full_state;
	bool keep_removed = type == RESOURCE_CLUSTER && (users_are_busy(s) || now_ns < s->break_ns);
	int r = room_for(s, t->sub.n);
	if (r < 0)
		return r;
	size_t n = 0;
	enum due left = DUE_NOTHING;
	for (size_t i = 0; i < t->sub.n; i++) {
		struct subscription_entry *e = &t->sub.entries[i];
		if (!e->current && e->sent && keep_removed) {
			s->picked[n++] = e->sent;
			left = DUE_REMOVAL;
			continue;
		}
		bool same = e->current && e->sent && e->sent->version == e->current->version;
		if (e->current && (full_state || !same))
			s->picked[n++] = e->current;
		subscription_sent(e, e->current);
	}
	note_exchange(s, type, now_ns);
	t->asked = false;
	t->answered = false;
	t->due = left;
	t->version = set->types[type].version;
	t->nonce = ++s->last_nonce;
	*ret = (struct ads_response){type, t->version, t->nonce, s->picked, n};
	return 1;
}

int ads_stream_drain(struct ads_stream *s, const struct resource_set *set, uint64_t now_ns,
	struct ads_response *ret)
{
	int r = compare_all(s, set);
	if (r < 0)
		return r;
	for (int i = 0; i < N_RESOURCE_TYPES; i++)
		if (s->types[i].due == DUE_CHANGE ||
			(s->types[i].due == DUE_REMOVAL && i != RESOURCE_CLUSTER))
			return pick(s, (enum resource_type)i, set, now_ns, ret);
	if (now_ns >= ads_stream_due_ns(s))
		return pick(s, RESOURCE_CLUSTER, set, now_ns, ret);
	return 0;
}

uint64_t ads_stream_due_ns(const struct ads_stream *s)
{
	bool waits = s->types[RESOURCE_CLUSTER].due == DUE_REMOVAL && !users_are_busy(s);
	return waits ? s->break_ns : UINT64_MAX;
}

int ads_response_encode(const struct ads_response *response, uint8_t **ret_bytes, size_t *ret_len)
{
	// protobuf-c's structs are not const; nothing is written through them in packing.
	char url[128], version[NUMBER_TEXT_MAX], nonce[NUMBER_TEXT_MAX];
	snprintf(url, sizeof(url), "%s", resource_type_info(response->type)->url);
	snprintf(version, sizeof(version), "%" PRIu64, response->version);
	snprintf(nonce, sizeof(nonce), "%" PRIu64, response->nonce);
	Envoy__Service__Discovery__V3__DiscoveryResponse message;
	envoy__service__discovery__v3__discovery_response__init(&message);
	Google__Protobuf__Any *anys = malloc((response->n + 1) * sizeof(*anys));
	Google__Protobuf__Any **list = malloc((response->n + 1) * sizeof(*list));
	uint8_t *bytes = NULL;
	if (!anys || !list)
		goto out;
	for (size_t i = 0; i < response->n; i++) {
		google__protobuf__any__init(&anys[i]);
		anys[i].type_url = url;
		anys[i].value.data = response->resources[i]->bytes;
		anys[i].value.len = response->resources[i]->len;
		list[i] = &anys[i];
	}
	message.type_url = url;
	message.version_info = version;
	message.nonce = nonce;
	message.resources = list;
	message.n_resources = response->n;
	size_t len = envoy__service__discovery__v3__discovery_response__get_packed_size(&message);
	bytes = malloc(len + 1);
	if (bytes) {
		envoy__service__discovery__v3__discovery_response__pack(&message, bytes);
		*ret_bytes = bytes;
		*ret_len = len;
	}
out:
	free(anys);
	free(list);
	return bytes ? 0 : -ENOMEM;
}
