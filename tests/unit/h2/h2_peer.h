// SPDX-License-Identifier: Apache-2.0
// An end of a connection for tests: context, connection, output buffer, and a log of everything its
// owner heard, one word per event, so that a test compares one string. Raw frames for the other
// end. Not a test.
// Thread: the test's.
#pragma once

#include "dataplane/h2/frame.h"
#include "dataplane/h2/h2.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>

#define PEER_MAX_STREAMS 256

struct peer_stream {
	struct h2_stream *stream; // NULL once closed
	uint32_t id;
	size_t received, sent;
	bool closed;
	enum h2_error code;
	bool by_peer, unprocessed;
	char *body; // what arrived
	bool got_end;
};

struct peer {
	struct pool *chunks; // of the world
	struct h2_conf conf;
	struct h2_context *ctx;
	struct h2_conn *conn;
	struct buf out;
	uint64_t now_ns;
	char log[65536];
	size_t log_len;
	bool log_data; // data events are in the log, too
	bool consume; // at once
	uint64_t round_trip_ns;
	struct peer_stream streams[PEER_MAX_STREAMS];
	size_t n_streams;
	// Scripted owner; NULL = only log.
	void (*on_message)(struct peer *, struct h2_stream *, const struct h2_message *);
	void (*on_data)(struct peer *, struct h2_stream *, const uint8_t *, size_t, bool);
	void (*on_sent)(struct peer *, struct h2_stream *, size_t);
	void (*on_closed)(struct peer *, struct h2_stream *);
	void (*on_window)(struct peer *, struct h2_stream *, bool is_short);
	void *user;
};

struct h2_conf peer_conf(void);
void peer_init(struct peer *, struct pool *chunks, const struct h2_conf *);
// NULL of the same name as h2_conn_new's.
struct h2_conn *peer_connect(struct peer *, enum h2_role);
void peer_disconnect(struct peer *, enum h2_error);
void peer_fini(struct peer *);
struct peer_stream *peer_stream_of(struct peer *, uint32_t id);
struct peer_stream *peer_add_stream(struct peer *, struct h2_stream *);
void peer_clear_log(struct peer *);
uint64_t peer_counter(const struct peer *, const char *name);

// Moves what `from` has to send into `to`, at most n bytes. Returns how many.
size_t peer_carry(struct peer *from, struct peer *to, size_t n);
// Pumps and carries both ways until nothing moves.
void peer_settle(struct peer *a, struct peer *b);

// Raw frames, as the test plays the other end.
struct raw {
	uint8_t data[262144];
	size_t len;
};
void raw_bytes(struct raw *, const void *, size_t len);
void raw_frame(struct raw *, uint8_t type, uint8_t flags, uint32_t id, const void *, size_t len);
void raw_u32_frame(struct raw *, uint8_t type, uint32_t id, uint32_t value);
// Literal fields without indexing: "name", "value" pairs, NULL at the end.
size_t raw_fields(uint8_t *out, const char *const *fields);
void raw_headers(struct raw *, uint32_t id, bool end_stream, const char *const *fields);
void raw_preface(struct raw *, enum h2_role ours); // preface and empty SETTINGS, as that role
// Feeds all of it and empties it.
size_t peer_feed(struct peer *, struct raw *);
// Pumps, and the text of every frame in the output, one line each; the output is emptied.
// e.g. "SETTINGS ack", "RST_STREAM 1 PROTOCOL_ERROR", "DATA 1 5 end".
const char *peer_frames(struct peer *);

extern const char *const get_request[];
extern const char *const ok_response[];
