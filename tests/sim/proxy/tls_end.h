// SPDX-License-Identifier: Apache-2.0
// A peer's end of TLS on a TCP connection of the simulated wire: a handshake of tlshs in place,
// then records.
// Thread: one.
#pragma once

#include "dataplane/buf/buf.h"
#include "dataplane/tcp/tcp.h"
#include "dataplane/tls/tls.h"
#include "tlshs/handshake.h"

struct tls_end_conf {
	struct tlshs_context *context; // borrowed; NULL = plain text
	struct tls_context *records; // borrowed
	const char *server_name;
	uint32_t piece; // bytes that are written to TCP at a time, in a turn each; 0 = all
	bool hangs_up; // when a handshake has failed: FIN behind the alert
};

struct tls_end {
	const struct tls_end_conf *conf;
	struct tcp_conn *tcp; // NULL = it is gone
	struct pool *chunks;
	struct tlshs_handshake *handshake;
	struct tlshs_result result;
	struct tls_conn *tls;
	struct buf plain; // what is to be sealed
	struct buf out; // what is to be written
	size_t (*on_plain)(void *user, const uint8_t *, size_t len);
	void *user;
	enum tlshs_outcome outcome; // once the handshake has ended
	uint8_t alert; // of the proxy, or ours
	bool ended, failed, by_peer, eof;
	bool mute; // sends nothing any more
	uint32_t corrupt; // of so many bytes to be written the next one is changed; 0 = none
};

void tls_end_init(struct tls_end *, const struct tls_end_conf *, struct tcp_conn *,
	struct pool *chunks, size_t (*on_plain)(void *, const uint8_t *, size_t), void *user);
void tls_end_fini(struct tls_end *); // twice is fine
// Returns how much was taken.
size_t tls_end_feed(struct tls_end *, const uint8_t *, size_t len);
// True = there is more to write.
bool tls_end_pump(struct tls_end *);
// close_notify behind all that was written.
void tls_end_shutdown(struct tls_end *);
