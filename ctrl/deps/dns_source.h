// SPDX-License-Identifier: Apache-2.0
// The endpoints of one LOGICAL_DNS cluster: watches its name and makes one endpoint of all
// addresses found (gRFC A37, A61-D02). Part of the dependency manager.
// Thread: ctrl.
#pragma once

#include "ctrl/dns/resolver.h"

#include <stdbool.h>

struct res_cluster;
struct res_endpoints;

struct dns_source {
	struct dns_watch watch; // first member
	struct dns_resolver *resolver; // borrowed
	struct res_cluster *cluster; // counted; has name, port and hostname
	void (*on_news)(struct dns_source *); // never inside new()
	void *ctx;
	bool answered; // there has been an answer
	bool first; // in on_news: this is the first answer
	bool moved; // in on_news: the addresses changed, not only the error
	struct res_endpoints *endpoints; // counted; NULL = no address
	struct ip_port *addresses; // those in it, in the order of the first answer
	uint32_t n_addresses;
	char *error; // why there are none, or why they are outdated (A37-D03); NULL = no problem
	// Out of memory for an answer: the endpoints are outdated, and a new source is needed.
	bool out_of_memory;
};

// Reuses the endpoints of `old` (may be NULL) if they are equal, so that an unchanged answer keeps
// the same object. Returns NULL if out of memory, even for an answer already known.
struct dns_source *dns_source_new(struct dns_resolver *, struct res_cluster *,
	const struct dns_source *old, void (*on_news)(struct dns_source *), void *ctx);
void dns_source_free(struct dns_source *); // NULL is fine
// True if the cluster has the same name, port and hostname.
bool dns_source_fits(const struct dns_source *, const struct res_cluster *);
void dns_source_refresh(struct dns_source *); // DM-23
