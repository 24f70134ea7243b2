// SPDX-License-Identifier: Apache-2.0
// A server's catalog and clients of it in words, through messages as they stand on the wire; no
// I/O. A delta client remembers what it was told, as a client would.
// Thread: the test's.
#pragma once

#include "lb/base/time.h"
#include "tools/shunt-xds/ads_stream.h"

struct server {
	struct catalog *catalog;
	uint64_t now_ns;
};

// A variant in a client's cache.
struct held {
	enum resource_type type;
	char name[24], constraints[96], version[256], body[32];
};

#define HELD_MAX 64
struct peer {
	struct server *server;
	enum ads_protocol protocol;
	struct ads_stream *stream;
	struct ads_request_result result; // of the last request
	uint64_t nonce[N_RESOURCE_TYPES]; // of the last response
	bool is_started[N_RESOURCE_TYPES]; // asked on this stream
	bool wraps; // says that it can read wrapped resources
	struct held held[HELD_MAX]; // delta
	size_t n_held;
	char text[2048]; // of the last response
};

void server_init(struct server *, bool newest_wins); // as catalog_new()
void server_fini(struct server *); // no stream is left
// All that is there from now on: "C:blue=1 R:r=2{env=prod&!version=v1}": type letter (C, E, L, R),
// name=body, constraints (all of; "!" = not, a key alone = exists).
void server_publish(struct server *, const char *words);
enum resource_type type_of(char letter);

void peer_open(struct peer *, struct server *, enum ads_protocol);
void peer_close(struct peer *);
// A new stream; what a delta client holds it keeps.
void peer_reopen(struct peer *);

// SotW. names: "a b{env=prod,version=v1}": a plain name, a locator.
void peer_ask(struct peer *, char letter, const char *names, const char *nonce, bool nack);
// Delta. "+a -b{env=prod}": subscribes and unsubscribes. The first on a stream tells what is held.
void peer_change(struct peer *, char letter, const char *changes, const char *nonce, bool nack);
// Delta, of any type, with names as they are; as ads_stream_feed_delta().
[[nodiscard]] int peer_want(struct peer *, const char *url, char **names, size_t n);
const char *peer_nonce(const struct peer *, char letter); // of the last response
// Accepts the last response; names are SotW's, or delta's changes.
void peer_ack(struct peer *, char letter, const char *names);
// As the first or a new subscription: without a nonce.
void peer_subscribe(struct peer *, char letter, const char *names);

// The next response, as it is decoded: "C blue=1 r=2{env=prod} -green -r{NOT env=prod}": type,
// resources, what is removed, and errors as "!name=code:text". "" = none is due.
const char *peer_next(struct peer *);
#define NEXT(peer, expected) assert_string_equal(peer_next(peer), expected)

// A server and one client of it, as cmocka's setup and teardown want them.
struct script {
	struct server server;
	struct peer peer;
};
int script_init(void **state, enum ads_protocol);
int script_fini(void **state);
