// SPDX-License-Identifier: Apache-2.0
// Who a client has proven to be: its certificate, which the handshake has verified.
// Thread: the owning worker.
#pragma once

#include "lb/route/peer_info.h"
#include "tlshs/result.h"

struct proxy_peer { // not to be moved
	struct tlshs_peer certificate;
	const char *own_uris; // of our certificate, as struct tlshs_result has them
	struct lb_san sans[TLSHS_MAX_SANS]; // views of the certificate's names
};

// Of a handshake in which it was.
void proxy_peer_set(struct proxy_peer *, const struct tlshs_result *);
// Sets what the certificate says; the views are the peer's.
void proxy_peer_tell(const struct proxy_peer *, struct lb_peer_info *);
