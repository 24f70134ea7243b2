// SPDX-License-Identifier: Apache-2.0
// The command line.
// Thread: main.
#pragma once

#include "dataplane/net/net.h"
#include "lb/base/err.h"
#include "tools/shunt-load/echo.h"
#include "tools/shunt-load/plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define OPTIONS_MAX_EAL 32

enum command { COMMAND_RUN = 1, COMMAND_ECHO = 2 };

struct device_options {
	const char *device; // NULL = none
	struct net_prefix addresses[NET_MAX_ADDRESSES];
	uint32_t n_addresses;
	struct ip_addr gateway, gateway6; // all zero = none
};

// Texts are borrowed from argv.
struct options {
	enum command command;
	struct device_options client, echo;
	// What the client sends.
	struct ip_port to;
	const char *authority; // NULL = the target's address
	const char *paths[PLAN_MAX_PATHS];
	uint32_t n_paths;
	const char *headers; // file; NULL = none
	bool is_grpc, is_http1;
	uint32_t body_size, answer_size;
	bool has_answer_size; // false = as long as the body
	enum plan_check check;
	uint32_t n_conns, n_streams, n_idle, per_conn;
	uint64_t n_requests, duration_ns, warm_up_ns, hold_ns, timeout_ns, rate;
	uint64_t seed;
	bool has_seed, probe, tls;
	// How the echo backend answers.
	uint32_t listen; // port
	uint32_t max_conns, max_streams, echo_size;
	enum echo_fault fault;
	uint32_t fault_every;
	const char *certificate, *key; // files; NULL = plain text
	// The process.
	uint32_t mtu; // of the devices; 0 = their own
	int64_t core; // -1 = the last usable one
	const char *eal[OPTIONS_MAX_EAL];
	uint32_t n_eal;
	bool json, quiet, nap;
};

// Returns 0, 1 if help was requested, or -EINVAL with reterr.
[[nodiscard]] int options_read(int argc, char **argv, struct options *, struct lb_err *reterr);
void options_help(FILE *);
