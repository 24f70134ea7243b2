// SPDX-License-Identifier: Apache-2.0
// The server's end of one ADS call, StreamAggregatedResources (state of the world) or
// DeltaAggregatedResources, without I/O: requests go in, and whenever the transport is free, it
// asks for the next response that is due. What is due is a difference between two states, never a
// queue: a slow client costs out of memory, and gets the latest.
//
// Order within one change: clusters, endpoints, listeners, routes (make before break); listeners
// and routes that replace others wait a while for the answers to clusters and endpoints. What is
// gone is taken away last (in SotW that concerns clusters, in delta also endpoints and routes): not
// while a response that may end its use is unsent, unanswered or refused (a client that refuses new
// routes goes on with the old ones), nor for a while after, in which the client asks for what the
// new ones name. A variant that another takes the place of is taken away with the response that
// brings the other (TP2-S05).
//
// Where the catalog has a source, what that does not know yet is waited for, never told as absent
// (TP2-P05): a client that may hold something of an earlier stream is not sent a list of listeners
// or clusters before the list is whole. Errors of the source are told as they are (TP3), after the
// variant that they leave in use.
//
// Constraints go along with every variant that has them (TP2-S02); in SotW that takes a wrapper, as
// does a name that the resource does not give itself (VHDS), and only clients are sent it that
// asked by locators or say that they can read it (RS-05).
// Thread: one owner. Time is passed in.
#pragma once

#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "tools/shunt-xds/subscription.h"

enum ads_protocol { ADS_SOTW, ADS_DELTA };

enum ads_request_kind {
	ADS_REQUEST_UNKNOWN_TYPE, // not served; no answer (PC-04)
	// Answers a response that is not the last one: in SotW ignored (SW-05), in delta only the
	// changed subscriptions count (SW-10).
	ADS_REQUEST_STALE,
	ADS_REQUEST_SUBSCRIBE, // the first of its type, or changed subscriptions
	ADS_REQUEST_ACK,
	ADS_REQUEST_NACK,
};

// One request as it was understood, for the log.
struct ads_request_result {
	enum ads_request_kind kind;
	const struct catalog_type *type; // NULL for UNKNOWN_TYPE
	uint64_t version; // of the response that is accepted or refused
	size_t n_names; // that the client is subscribed to now, under wildcards too
	bool wildcard;
};

// A variant of a name.
struct ads_item {
	const char *name; // borrowed
	struct xds_variant *variant; // counted
};

// Why a name has nothing, or nothing newer.
struct ads_error {
	const char *name; // borrowed, as the word is
	const struct catalog_word *word;
};

// Valid until the next call on the stream, or of the catalog's source.
struct ads_response {
	enum ads_protocol protocol;
	const struct resource_type_info *type;
	uint64_t version;
	uint64_t nonce;
	bool wraps; // SotW: what says more than the resource itself does goes in a wrapper
	const struct ads_item *resources;
	size_t n;
	const struct ads_item *removed; // delta; variant NULL = there is none of that name
	size_t n_removed;
	const struct ads_error *errors;
	size_t n_errors;
};

struct ads_stream;

// The catalog is borrowed and outlives the stream. NULL = out of memory.
struct ads_stream *ads_stream_new(enum ads_protocol, struct catalog *);
void ads_stream_free(struct ads_stream *); // NULL is fine

// Takes one request in. 0, -ENOMEM, -E2BIG (too many subscriptions) or -EMSGSIZE (too long for the
// catalog's source, which says why): the stream is of no use any more.
[[nodiscard]] int ads_stream_feed_sotw(struct ads_stream *,
	const Envoy__Service__Discovery__V3__DiscoveryRequest *, uint64_t now_ns,
	struct ads_request_result *ret);
[[nodiscard]] int ads_stream_feed_delta(struct ads_stream *,
	const Envoy__Service__Discovery__V3__DeltaDiscoveryRequest *, uint64_t now_ns,
	struct ads_request_result *ret);

// The next response that this client should get, which counts as sent. 1 = *ret is set, 0 = nothing
// is due, -ENOMEM, -E2BIG.
[[nodiscard]] int ads_stream_drain(struct ads_stream *, uint64_t now_ns, struct ads_response *ret);
// When drain() is worth a call though neither a request nor a change has come; UINT64_MAX = never.
uint64_t ads_stream_due_ns(const struct ads_stream *);

// The message, encoded; the caller frees it. 0 or -ENOMEM.
[[nodiscard]] int ads_response_encode(
	const struct ads_response *, uint8_t **ret_bytes, size_t *ret_len);
