// SPDX-License-Identifier: Apache-2.0
// Records by the TLS library itself, of a handshake that has ended with ok: for connections of the
// control plane, which carry little. What workers carry has records of its own (dataplane/tls). The
// peer's bytes and those for it pass by tlshs_handshake_gather() and tlshs_handshake_drain(), as
// those of the handshake do.
// Thread: the handshake's.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tlshs_handshake;

// Moves up to `room` bytes of the peer's text. 0 = there are none until more is gathered; -EPIPE =
// the peer has said that none will follow (close_notify), and may be written to still; -EBADMSG =
// it breaks the rules, and mostly there is an alert for it, or sends much else than text.
ssize_t tlshs_records_read(struct tlshs_handshake *, uint8_t *to, size_t room);
// False = out of memory: the connection is of no use any more. All else waits to be drained.
[[nodiscard]] bool tlshs_records_write(struct tlshs_handshake *, const uint8_t *, size_t len);
// Tells the peer that nothing follows.
void tlshs_records_end(struct tlshs_handshake *);
