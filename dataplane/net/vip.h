// SPDX-License-Identifier: Apache-2.0
// Prefixes that are ours beside the ports' addresses: what is routed to one is taken on any port.
// Those that answer are found by ARP and neighbor discovery, too: on the port whose subnet contains
// the address, on all where none does. The addresses of them that are served are announced, paced,
// and their groups reported.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/net.h"

void net_vip_fini(struct net *);
// Announces all that is served, from now on and again: a link came up.
void net_vip_announce_all(struct net *);
// What became due while it was silent is announced when it is not any more.
void net_vip_set_silent(struct net *, bool silent);
