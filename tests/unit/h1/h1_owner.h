// SPDX-License-Identifier: Apache-2.0
// An owner of one HTTP/1.1 connection for tests, with a log of all that it heard, one line per
// event and bodies joined, so that a test compares one string. Not a test.
// Thread: the test's.
#pragma once

#include "dataplane/h1/h1.h"

#define OWNER_HEADER_BYTES 61440
#define OWNER_HEADER_FIELDS 128

struct owner {
	struct pool chunks;
	struct h1_context *ctx;
	struct h1_conn *conn;
	struct buf out;
	char log[1 << 17];
	size_t log_len;
	bool in_body; // the log ends with body bytes
	bool leaves; // requests are not answered
	const struct h1_message *answer; // NULL = 204
	const char *body; // of the answer, NULL = none
	size_t n_requests;
};

// Makes the context with so many chunks; 0 or -ENOMEM.
int owner_init(struct owner *, uint32_t n_chunks);
void owner_fini(struct owner *);
// A new connection, with log and output empty.
void owner_connect(struct owner *);
// Feeds pieces of `step` bytes (0 = all at once), and what was left behind an answer again. Then
// refuses what failed, as the proxy would. Returns the number of bytes consumed.
size_t owner_feed(struct owner *, const char *bytes, size_t len, size_t step);
// Writes "closed" or the status of the refusal, if any, to the log's end. Returns the log.
const char *owner_log(struct owner *);
// Output so far, terminated; the output is empty then. Valid until the next call.
const char *owner_output(struct owner *);
