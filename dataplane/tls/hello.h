// SPDX-License-Identifier: Apache-2.0
// What a ClientHello says before anybody answers it: which server it is for (RFC 6066 3) and which
// protocols its client speaks (RFC 7301 3.1), as Envoy's tls_inspector finds it (A36-38). Whether
// the rest of the hello is good is the handshake's question.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

#include <stddef.h>
#include <stdint.h>

#define TLS_HELLO_MAX (16u << 10) // bytes of the message, as tlshs takes them (TH-114)
#define TLS_HELLO_STREAM_MAX (TLS_HELLO_MAX + 1024) // … with the heads of its records

enum tls_hello_state {
	TLS_HELLO_MORE, // it is not complete
	TLS_HELLO_DONE,
	TLS_HELLO_NONE, // the bytes are something else, or no good hello
	TLS_HELLO_TOO_LARGE,
};

// Borrowed from the bytes that were read.
struct tls_hello {
	struct str server_name; // in lower case; "" = none
	struct str protocols; // of ALPN, each behind a byte with its length; "" = none
	size_t need; // of MORE: look again when there are so many bytes
};

// Reads a connection's first bytes, which it changes: copies of what has come. max: so many of them
// a hello may take, and no more are looked at; 0, or more than that = TLS_HELLO_STREAM_MAX.
enum tls_hello_state tls_hello_read(uint8_t *bytes, size_t len, size_t max, struct tls_hello *ret);
