// SPDX-License-Identifier: Apache-2.0
// The one error of ICMP that is sent: what a tunnel has brought is too long for the way that it
// would have to go on (RFC 2003 4.1; RFC 2473 8.1). Private to this folder.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/tunnel.h"

// Tells the sender of the packet within, which carries a segment, that mtu bytes are the most
// (RFC 1191 4; RFC 4443 3.2). From the address that it was for: the client's answers come from
// there, and networks on the way need not know another one of ours. Within a rate of its own.
void too_big_tell(struct net *, const struct tunnel_inner *, uint32_t mtu);
