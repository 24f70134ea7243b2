// SPDX-License-Identifier: Apache-2.0
// The messages that test_header.c judges, as data.
// Thread: any; read only.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum verdict { OK, MALFORMED, ANSWER_400 };

enum side { REQUEST, RESPONSE };
enum row_flag {
	NO_END = 1, // the last frame does not end the stream
	TO_HEAD = 2, // the response answers HEAD
	TO_CONNECT = 4,
	TO_GRPC = 8,
};

#define MAX_FIELDS 12
struct row {
	const char *name;
	enum side side;
	const char *head[2 * MAX_FIELDS];
	enum verdict ours;
	const char *informational[4]; // before a response's head
	const char *trailers[2 * MAX_FIELDS];
	bool has_trailers;
	bool has_body;
	size_t body;
	int flags;
	const char *differs; // nghttp2 says the opposite, because…
};

extern const struct row header_rows[];
extern const size_t n_header_rows;

// What a row's fields are mostly made of.
#define PSEUDO(method, scheme, authority, path)                                                    \
	":method", method, ":scheme", scheme, ":authority", authority, ":path", path
#define REQ PSEUDO("GET", "http", "a.test", "/")
#define POST PSEUDO("POST", "http", "a.test", "/")
