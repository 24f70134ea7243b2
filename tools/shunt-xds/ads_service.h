// SPDX-License-Identifier: Apache-2.0
// Serves ADS: joins the calls of a gRPC server to the stream state machines, and the newest
// resource set to all of them.
// Thread: one owner, the one that dispatches the server.
#pragma once

#include "tools/shunt-xds/resource_set.h"

struct lb_err;
struct ads_service;

// Listens on the address and serves the set, which it takes (not when it fails).
// 0, -ENOMEM, or -EINVAL with the reason.
[[nodiscard]] int ads_service_new(const char *address, struct resource_set *,
	struct ads_service **ret, struct lb_err *reterr);
void ads_service_free(struct ads_service *); // NULL is fine

int ads_service_port(const struct ads_service *);
// Readable, or the time has come: dispatch. UINT64_MAX = no time.
int ads_service_fd(const struct ads_service *);
uint64_t ads_service_due_ns(const struct ads_service *);
void ads_service_dispatch(struct ads_service *, uint64_t now_ns);

// Takes the set, which was sealed against ads_service_set(), and tells the clients what differs.
void ads_service_publish(struct ads_service *, struct resource_set *, uint64_t now_ns);
const struct resource_set *ads_service_set(const struct ads_service *);
