// SPDX-License-Identifier: Apache-2.0
// What the two modes of shunt-xds share: options, signals, time and waiting.
// Thread: main.
#pragma once

#include "ctrl/rpc/server.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct app_options {
	const char *folder; // serve
	const char *descriptors; // serve: a file; NULL = the one beside the program
	const char *upstream; // proxy: the path of a bootstrap
	const char *listen;
	struct rpc_server_tls tls; // cert NULL = in the clear
	bool is_delta; // proxy: protocol towards its server
	uint64_t grace_ns; // proxy
	size_t request_max; // proxy: bytes
	const char *state_dir; // proxy; NULL = nothing is kept
	bool verbose;
};

// The monotonic clock.
uint64_t app_now_ns(void);
// Waits until a descriptor is readable or the time has come; UINT64_MAX = no time.
void app_wait(struct pollfd *, unsigned n, uint64_t due_ns);

// Run until `signals` is readable. Return the exit code.
int app_serve(const struct app_options *, int signals);
int app_proxy(const struct app_options *, int signals);
