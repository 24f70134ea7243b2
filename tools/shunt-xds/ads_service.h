// SPDX-License-Identifier: Apache-2.0
// Serves ADS, state of the world and delta: connects a gRPC server's calls to the stream state
// machines, and reports changes of the catalog to all of them.
// Thread: one owner, the one that dispatches the server.
#pragma once

#include <stdint.h>

struct catalog;
struct lb_err;
struct rpc_server_tls;
struct ads_service;

// Listens on the address, with TLS unless that is NULL, and serves the catalog, which is borrowed
// and outlives the service. 0, -ENOMEM, or -EINVAL with the reason.
[[nodiscard]] int ads_service_new(const char *address, const struct rpc_server_tls *,
	struct catalog *, struct ads_service **ret, struct lb_err *reterr);
void ads_service_free(struct ads_service *); // NULL is fine

int ads_service_port(const struct ads_service *);
// When the descriptor is readable or the time has come, call dispatch. UINT64_MAX = no time.
int ads_service_fd(const struct ads_service *);
uint64_t ads_service_due_ns(const struct ads_service *);
void ads_service_dispatch(struct ads_service *, uint64_t now_ns);

// The catalog has changed: sends clients the differences.
void ads_service_publish(struct ads_service *, uint64_t now_ns);
