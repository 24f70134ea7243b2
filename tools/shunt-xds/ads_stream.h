// SPDX-License-Identifier: Apache-2.0
// The server's end of one ADS call, StreamAggregatedResources (state of the world) or
// DeltaAggregatedResources, without I/O: requests are fed in, and whenever the transport is free,
// it asks for the next response that is due. A response is a difference between two states, never a
// queue: a slow client costs no memory, and gets the latest state.
// Order within one change: clusters, endpoints, listeners, routes (make before break); listeners
// and routes that replace others wait a while for the answers to clusters and endpoints. Deletions
// come last (in SotW of clusters, in delta also of endpoints and routes): not while a response that
// may end the resource's use is unsent, unanswered or rejected (a client that rejects new routes
// keeps using the old ones), nor for a while after, in which the client asks for what the new ones
// name. A variant that another one replaces is deleted in the response that brings the other
// (TP2-S05).
// If the catalog has a source, resources that the source does not know yet are waited for, never
// reported as absent (TP2-P05): a client that may hold resources from an earlier stream gets a list
// of listeners or clusters only when the list is complete. Errors of the source are forwarded as
// they are (TP3), after the variant that stays in use.
// Every variant is sent with its constraints (TP2-S02). In SotW this takes a wrapper, as does a
// name that the resource does not contain (VHDS); wrappers are sent only to clients that subscribe
// by locators or announce that they can read them (RS-05).
// Thread: one owner. Time is passed in.
#pragma once

#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "tools/shunt-xds/subscription.h"

enum ads_protocol { ADS_SOTW, ADS_DELTA };

enum ads_request_kind {
	ADS_REQUEST_UNKNOWN_TYPE, // not served; no answer (PC-04)
	// Answers a response other than the last one: ignored in SotW (SW-05); in delta only its
	// subscription changes apply (SW-10).
	ADS_REQUEST_STALE,
	ADS_REQUEST_SUBSCRIBE, // the first of its type, or changed subscriptions
	ADS_REQUEST_ACK,
	ADS_REQUEST_NACK,
};

// A parsed request, for the log.
struct ads_request_result {
	enum ads_request_kind kind;
	const struct catalog_type *type; // NULL for UNKNOWN_TYPE
	uint64_t version; // of the response that is ACKed or NACKed
	size_t n_names; // present subscriptions, including those through wildcards
	bool wildcard;
};

// A variant of a name.
struct ads_item {
	const char *name; // borrowed
	struct xds_variant *variant; // counted
};

// Why a name has no resource, or no newer one.
struct ads_error {
	const char *name; // borrowed, as the word is
	const struct catalog_word *word;
};

// Valid until the next call on the stream or of the catalog's source.
struct ads_response {
	enum ads_protocol protocol;
	const struct resource_type_info *type;
	uint64_t version;
	uint64_t nonce;
	bool wraps; // SotW: resources that need it are sent in a wrapper
	const struct ads_item *resources;
	size_t n;
	const struct ads_item *removed; // delta; variant NULL = the name does not exist
	size_t n_removed;
	const struct ads_error *errors;
	size_t n_errors;
};

struct ads_stream;

// The catalog is borrowed and outlives the stream. NULL = out of memory.
struct ads_stream *ads_stream_new(enum ads_protocol, struct catalog *);
void ads_stream_free(struct ads_stream *); // NULL is fine

// Handles one request. Returns 0, -ENOMEM, -E2BIG (too many subscriptions) or -EMSGSIZE (too long
// for the catalog's source, which has the reason); on an error the stream must be ended.
[[nodiscard]] int ads_stream_feed_sotw(struct ads_stream *,
	const Envoy__Service__Discovery__V3__DiscoveryRequest *, uint64_t now_ns,
	struct ads_request_result *ret);
[[nodiscard]] int ads_stream_feed_delta(struct ads_stream *,
	const Envoy__Service__Discovery__V3__DeltaDiscoveryRequest *, uint64_t now_ns,
	struct ads_request_result *ret);

// Returns the next response for this client, which then counts as sent. 1 = *ret is set, 0 =
// nothing is due, -ENOMEM, -E2BIG.
[[nodiscard]] int ads_stream_drain(struct ads_stream *, uint64_t now_ns, struct ads_response *ret);
// When to call drain() without a request or change; UINT64_MAX = never.
uint64_t ads_stream_due_ns(const struct ads_stream *);

// The message, encoded; the caller frees it. 0 or -ENOMEM.
[[nodiscard]] int ads_response_encode(
	const struct ads_response *, uint8_t **ret_bytes, size_t *ret_len);
