// SPDX-License-Identifier: Apache-2.0
// The endpoints of one cluster as session affinity and authority rewriting know them (gRFC A55,
// A60, A75, A81): all priorities together, each endpoint with every address it has, its host name,
// and whether sessions may stay with it. Immutable; made anew when the endpoints change, shared by
// the lb_cluster objects until then. Not for picking: that is the picker's.
// Thread: new/get/put on ctrl; find on workers. Pure.
#pragma once

#include "lb/base/ip.h"
#include "lb/base/str.h"
#include "lb/endpoint.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_hosts;

struct lb_host {
	// NULL = the endpoint has left the cluster, where a picker may still hold it (lb-tree.md
	// RR-04); requests to it need the texts, sessions end.
	struct lb_endpoint *endpoint; // counted
	struct str hostname; // "" = none (A81)
	// As a cookie lists them (routing.md SA-06): "10.0.0.1:80,[fd00::1]:80"; the one in use is
	// the first, the others follow in the order of EDS.
	struct str addresses;
	// The endpoint's health is in the cluster's override_host_status (SA-12). A DRAINING
	// endpoint is here only with this, and gets no other requests (SA-13).
	bool is_session_target;
};

// The builder's input: borrowed for the call.
struct lb_host_conf {
	struct lb_endpoint *endpoint; // the hosts take their own reference
	const struct ip_port *addresses; // the endpoint's own first
	uint32_t n_addresses; // >= 1
	struct str hostname;
	bool is_session_target;
};

// Of equal addresses the first endpoint counts. `before`, which may be NULL, is what these replace:
// endpoints that left are known for a few updates more. Count 1. NULL = no memory.
struct lb_hosts *lb_hosts_new(
	const struct lb_host_conf *, uint32_t n, const struct lb_hosts *before);
struct lb_hosts *lb_hosts_get(struct lb_hosts *);
void lb_hosts_put(struct lb_hosts *); // NULL is fine
// The endpoint with this address, be it the one in use or another; NULL = none. hosts may be NULL.
const struct lb_host *lb_hosts_find(const struct lb_hosts *, const struct ip_port *);
