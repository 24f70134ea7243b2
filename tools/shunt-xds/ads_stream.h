// SPDX-License-Identifier: Apache-2.0
// The server's end of one StreamAggregatedResources call (state of the world), without I/O:
// requests go in, and whenever the transport is free, it asks for the next response that is due.
// What is due is a difference between two states, never a queue: a slow client costs no memory,
// and gets the latest.
// Thread: one owner. Time is passed in.
#pragma once

#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "tools/shunt-xds/subscription.h"

enum ads_request_kind {
	ADS_REQUEST_UNKNOWN_TYPE, // not served; no answer (PC-04)
	ADS_REQUEST_STALE, // answers a response that is not the last one; ignored (SW-05)
	ADS_REQUEST_SUBSCRIBE, // the first of its type, or a changed list of names
	ADS_REQUEST_ACK,
	ADS_REQUEST_NACK,
};

// One request as it was understood, for the log.
struct ads_request_result {
	enum ads_request_kind kind;
	enum resource_type type; // not for UNKNOWN_TYPE
	uint64_t version; // the one that is accepted or refused
	size_t n_names;
	bool wildcard;
};

// Valid until the next call on the stream.
struct ads_response {
	enum resource_type type;
	uint64_t version;
	uint64_t nonce;
	struct resource *const *resources; // borrowed
	size_t n;
};

struct ads_stream;

struct ads_stream *ads_stream_new(void); // NULL = no memory
void ads_stream_free(struct ads_stream *); // NULL is fine

// Takes one request in. 0 or -ENOMEM.
[[nodiscard]] int ads_stream_feed(struct ads_stream *,
	const Envoy__Service__Discovery__V3__DiscoveryRequest *, uint64_t now_ns,
	struct ads_request_result *ret);

// The next response that this client should get of this set, and remembers it as sent. The set is
// sealed and newer than or equal to that of the call before, and outlives the next call.
// 1 = *ret is set, 0 = nothing is due, -ENOMEM.
[[nodiscard]] int ads_stream_drain(struct ads_stream *, const struct resource_set *,
	uint64_t now_ns, struct ads_response *ret);
// When drain() is worth a call though nothing new has come in; UINT64_MAX = never.
uint64_t ads_stream_due_ns(const struct ads_stream *);

// The message, encoded; the caller frees it. 0 or -ENOMEM.
[[nodiscard]] int ads_response_encode(
	const struct ads_response *, uint8_t **ret_bytes, size_t *ret_len);
