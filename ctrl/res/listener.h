// SPDX-License-Identifier: Apache-2.0
// envoy.config.listener.v3.Listener as plain data: the api_listener's HttpConnectionManager
// (CL-02, A31-*, FLT-*), or a socket listener with one in each of its filter chains (A36-*).
// Thread: ctrl.
#pragma once

#include "ctrl/res/access_log.h"
#include "ctrl/res/listener_filter.h"
#include "ctrl/res/warnings.h"
#include "ctrl/xds/type.h"
#include "lb/base/container_of.h"
#include "lb/base/ip.h"
#include "lb/route/filter.h"
#include "lb/route/forwarding.h"
#include "lb/route/timeouts.h"
#include "lb/route/tracing.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_chain_match;
struct res_route_config;
struct res_tls;

struct res_chain {
	// Counted: its HttpConnectionManager, as an api_listener's. Its bytes are the chain's.
	struct res_listener *http;
	const struct res_tls *tls; // NULL = plain text
};

struct res_socket {
	const char *host; // as it came
	struct ip_port address;
	bool is_ip; // else the host is a name, which is no frontend's address
	const struct ip_port *addresses; // of IP: this one and additional_addresses
	uint32_t n_addresses;
	struct res_listener_filters filters;
	struct lb_chain_match *match; // counted; by index in chains
	struct res_chain *chains; // in their order, and behind them the default one, if any
	uint32_t n_chains; // without the default one
	bool has_default;
};

struct res_listener {
	struct xds_res base;
	bool is_api; // false: a socket listener, which serves no target (DM-08); the rest is empty
	const struct res_socket *socket; // NULL = not a socket listener
	const char *rds_name; // NULL = the routes are inline
	struct res_route_config *routes; // counted; NULL = by rds_name
	const struct lb_filter *filters; // in order; all but the router
	uint32_t n_filters;
	uint64_t max_stream_duration_ns; // LB_NO_TIMEOUT = none (A31-T01)
	struct lb_forwarding forwarding; // HX-50
	struct lb_tracing tracing; // OPS-163; off = it says nothing of that
	struct res_access_logs access_logs; // those that are understood (OPS-40)
	uint64_t stream_idle_ns; // 0 = not configured, LB_NO_TIMEOUT = none (TH-98)
	struct res_warnings warnings;
};

extern const struct xds_type res_type_listener;

bool res_socket_has(const struct res_socket *, const struct ip_port *);

static inline struct res_listener *res_listener_from(struct xds_res *r)
{
	return CONTAINER_OF(r, struct res_listener, base); // base is the first member
}
