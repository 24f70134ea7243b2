// SPDX-License-Identifier: Apache-2.0
// The gRPC port for operators' tools: the xDS client's resources (CSDS), health, and reflection.
// Anyone whose connection it is given is trusted.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct status_server;
struct twheel;
struct xds_bootstrap;
struct xds_entry_info;

struct status_server_conf {
	const struct xds_bootstrap *bootstrap; // outlives it
	const char *user_agent_version; // likewise
	struct twheel *wheel;
	size_t max_unread_len; // of all CSDS answers; further ones wait
	uint64_t (*wall_ns)(void); // since 1970
	// Calls fn once for every watched resource (xds_client_each).
	void (*each)(void *ctx, void (*fn)(void *, const struct xds_entry_info *), void *fn_ctx);
	void *ctx;
	// As struct rpc_server_conf has it.
	void (*wait)(void *ctx, int fd, int timeout_ms);
	void (*cut)(void *ctx);
	void *end_ctx;
};

// Returns 0 or -errno. Reports NOT_SERVING at first.
[[nodiscard]] int status_server_new(const struct status_server_conf *, struct status_server **ret);
// Ends all calls; waits a bounded part of a second for clients to read. NULL is fine.
void status_server_free(struct status_server *);
void status_server_connect(struct status_server *, int fd); // a client; takes the descriptor
// Readable when there is something to dispatch.
int status_server_fd(const struct status_server *);
void status_server_dispatch(struct status_server *);
void status_server_set_serving(struct status_server *, bool serving); // NULL is fine
