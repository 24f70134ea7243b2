// SPDX-License-Identifier: Apache-2.0
// A client's TLS 1.3 at a pipe (pipe_tcp.h), and the handshake thread behind the proxy, both of
// them played from a record, one connection at a time. The first connection is made in earnest: a
// handshake of tlshs between two contexts, and records of the client's. All later ones have the
// same secrets, say the same and are told the same, byte for byte, so that nearly nothing is
// measured but the worker's part of a new connection.
// Thread: one.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PIPE_TLS_MAX 4096 // bytes of a flight, of what the client says, and of what it hears

struct lb_credential;
struct pipe_tls;
struct tlshs_link;

struct pipe_tls *pipe_tls_new(void);
// The frontend's, and the ring between the proxy and the thread. Borrowed.
struct lb_credential *pipe_tls_credential(const struct pipe_tls *);
struct tlshs_link *pipe_tls_link(struct pipe_tls *);

// The client's first bytes.
const uint8_t *pipe_tls_hello(const struct pipe_tls *, size_t *ret_len);
// The thread reads its orders and answers. Call it before the end of each turn.
void pipe_tls_turn(struct pipe_tls *);
// The client has heard the server's flight, `len` bytes: *text, the first that it says in plain
// text, becomes what it sends.
void pipe_tls_speak(struct pipe_tls *, size_t len, uint8_t *text, size_t *text_len);
// What it has heard of records becomes plain text.
void pipe_tls_hear(struct pipe_tls *, uint8_t *bytes, size_t *len);
