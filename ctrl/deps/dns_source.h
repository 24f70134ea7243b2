// SPDX-License-Identifier: Apache-2.0
// The endpoints of one LOGICAL_DNS cluster: its name is watched, and all addresses found become one
// endpoint (gRFC A37, A61-D02). Part of the dependency manager.
// Thread: ctrl.
#pragma once

#include "ctrl/dns/resolver.h"

#include <stdbool.h>

struct res_cluster;
struct res_endpoints;

struct dns_source {
	struct dns_watch watch; // first member
	struct dns_resolver *resolver; // borrowed
	struct res_cluster *cluster; // counted; where name, port and hostname stand
	void (*on_news)(struct dns_source *); // never inside new()
	void *ctx;
	bool answered; // what follows is known
	bool first; // in on_news: this made it so
	bool moved; // in on_news: there are other addresses, not just another error
	struct res_endpoints *endpoints; // counted; NULL = no address
	struct ip_port *addresses; // those in it, in the order of the first time
	uint32_t n_addresses;
	char *error; // why there are none, or why they are old (A37-D03); NULL = nothing is wrong
	// There was no memory for an answer: what is known is out of date. A new source knows it.
	bool out_of_memory;
};

// Takes over the endpoints of `old` (may be NULL) if they are the same: an unchanged answer keeps
// the same object. NULL = out of memory, also for an answer that is known already.
struct dns_source *dns_source_new(struct dns_resolver *, struct res_cluster *,
	const struct dns_source *old, void (*on_news)(struct dns_source *), void *ctx);
void dns_source_free(struct dns_source *); // NULL is fine
// The cluster has the same name, port and hostname.
bool dns_source_fits(const struct dns_source *, const struct res_cluster *);
void dns_source_refresh(struct dns_source *); // DM-23
