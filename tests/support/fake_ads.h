// SPDX-License-Identifier: Apache-2.0
// A scripted xDS server behind the transport vtable: it keeps what the client sent and says what
// the test tells it to. It CHECKs the client's side of the contract: one send and one read at a
// time. It gives way where memory is short.
// Thread: the test's.
#pragma once

#include "ctrl/base/slice.h"
#include "ctrl/xds/transport.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"

#include <stdbool.h>

#define FAKE_ADS_MAX_SENT 256

struct twheel;

struct fake_ads {
	const struct xds_stream_events *events; // of the open stream
	void *ctx;
	struct xds_stream *stream; // NULL = none open
	bool sending; // a message was taken and on_sent not called yet
	bool reading; // the client asks for a message
	bool refuse; // connect() fails
	const char *refuse_why; // and says so; NULL = some reason
	// The client's, turned after each message, without time passing, until it has taken it in;
	// NULL = it does so at once, or the test turns it.
	struct twheel *wheel;
	unsigned n_streams; // opened so far
	unsigned n_transports;
	unsigned n_connects; // so far
	bool delta; // the method of the last stream was the incremental one
	// Requests: incremental ones of streams that were.
	ProtobufCMessage *sent[FAKE_ADS_MAX_SENT];
	unsigned n_sent, n_read; // read by the test with fake_ads_next() or …_next_delta()
	unsigned n_stale; // of those: sent on earlier streams
};

// How much a client of a test does in a turn: one step if SHUNT_TEST_SLICE is in the environment.
struct slice fake_ads_slice(void);

struct xds_transport_factory fake_ads_factory(struct fake_ads *);
void fake_ads_fini(struct fake_ads *); // the client was freed before

// Lets the messages under way arrive, until nothing is sent any more.
void fake_ads_settle(struct fake_ads *);
// The next request that the test has not seen, after settling; NULL = none. Valid until fini.
// CHECKs that it is of this type.
const Envoy__Service__Discovery__V3__DiscoveryRequest *fake_ads_next(struct fake_ads *);
const Envoy__Service__Discovery__V3__DeltaDiscoveryRequest *fake_ads_next_delta(struct fake_ads *);
// The same without settling: what has been handed over already.
const ProtobufCMessage *fake_ads_arrived(struct fake_ads *);
// Frees what the test has seen: requests from before are not valid any more.
void fake_ads_forget(struct fake_ads *);
// CHECKs that the client reads.
void fake_ads_say(struct fake_ads *, const uint8_t *bytes, size_t len);
void fake_ads_close(struct fake_ads *, const char *why);

// One entry of a response.
struct fake_resource {
	const char *type_url; // NULL = the response's
	const uint8_t *bytes;
	size_t len;
	const char *wrapper_name; // not NULL = wrapped in a Resource of this name
	const char *version; // of an incremental response's resource
	int error_code; // not 0 = in resource_errors, by its wrapper's name, and without bytes
	// Of this variant, by its wrapper's name (TP2-T06); borrowed; NULL = none.
	Envoy__Service__Discovery__V3__DynamicParameterConstraints *constraints;
	bool is_removed; // incremental: in removed_resource_names, without bytes
};
// The bytes of a response (free).
uint8_t *fake_ads_encode(const char *type_url, const char *version, const char *nonce,
	const struct fake_resource *, size_t n, size_t *ret_len);
void fake_ads_respond(struct fake_ads *, const char *type_url, const char *version,
	const char *nonce, const struct fake_resource *, size_t n);
// An incremental one; all resources have wrapper names.
uint8_t *fake_ads_encode_delta(const char *type_url, const char *nonce,
	const struct fake_resource *, size_t n, const char *const *removed, size_t n_removed,
	size_t *ret_len);
