// SPDX-License-Identifier: Apache-2.0
// The gRPC port for operators' tools: what the xDS client holds (CSDS), whether the daemon serves
// (health), and what can be called here (reflection). It trusts who can reach it.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_err;
struct status_server;
struct twheel;
struct xds_bootstrap;
struct xds_entry_info;

struct status_server_conf {
	const char *listen; // "127.0.0.1:50052"
	const struct xds_bootstrap *bootstrap; // outlives it
	const char *user_agent_version; // likewise
	struct twheel *wheel;
	size_t max_unread_len; // of all answers of CSDS; what comes beyond waits
	uint64_t (*wall_ns)(void); // since 1970
	// Tells fn every watched resource, each once, in the call (xds_client_each).
	void (*each)(void *ctx, void (*fn)(void *, const struct xds_entry_info *), void *fn_ctx);
	void *ctx;
};

// 0, -EINVAL with the reason, or -errno. It says NOT_SERVING at first.
[[nodiscard]] int status_server_new(
	const struct status_server_conf *, struct status_server **ret, struct lb_err *reterr);
// Ends all calls; clients get a bounded part of a second to read what was sent. NULL is fine.
void status_server_free(struct status_server *);
int status_server_port(const struct status_server *);
// Readable when there is something to dispatch.
int status_server_fd(const struct status_server *);
void status_server_dispatch(struct status_server *);
void status_server_set_serving(struct status_server *, bool serving); // NULL is fine
