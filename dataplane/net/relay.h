// SPDX-License-Identifier: Apache-2.0
// The second chance of GLB: a segment that no connection of ours knows goes to the next host that
// its packet names, where one may be left from before the tier chose anew. Private to this folder.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/tunnel.h"

// in has a next hop. True = the packet is on its way there, or lost; else it is ours to process.
[[nodiscard]] bool relay_input(
	struct net *, const struct tunnel_packet *, const struct tunnel_inner *in);
