// SPDX-License-Identifier: Apache-2.0
// What an HTTP proxy answers to CONNECT (RFC 9110 9.3.6, RFC 9112 4 and 5): a status line and
// fields, fed in any pieces. Nothing of it is kept but the status. HC-10 to HC-12.
// Thread: any. Pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Of all that comes before the way is open, informational answers included.
#define PROXY_CONNECT_ANSWER_MAX 8192

enum proxy_connect_state {
	PROXY_CONNECT_MORE, // it is not complete
	PROXY_CONNECT_OPEN, // what follows comes from behind the proxy
	// None of these is left again.
	PROXY_CONNECT_REFUSED, // by a status that is not 2xx
	PROXY_CONNECT_MALFORMED, // it is no answer of HTTP/1.1 or 1.0
	PROXY_CONNECT_TOO_LONG,
};

struct proxy_connect_answer { // all zero at first
	uint16_t status; // REFUSED: which one
	uint16_t n; // bytes so far
	uint8_t state; // enum proxy_connect_state
	uint8_t part; // where in the head the next byte is
	uint8_t n_part; // how many bytes of this part came
};

// Takes bytes of the connection, and sets *ret_used to how many of them are the answer's.
enum proxy_connect_state proxy_connect_answer_feed(
	struct proxy_connect_answer *, const uint8_t *, size_t len, size_t *ret_used);
