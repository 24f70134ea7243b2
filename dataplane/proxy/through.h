// SPDX-License-Identifier: Apache-2.0
// A connection through an HTTP proxy (gRFC A86): CONNECT and its answer first, then the bytes of
// what is behind the proxy. It stands between TCP and the connection's own tcp_conn_ops, which hear
// that it is established when the proxy has opened the way, and nothing of it before. HC-08 to
// HC-14.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/connect_answer.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_conn;

struct proxy_through_conf {
	const struct ip_port *target; // the endpoint, copied
	const struct tcp_conn_ops *behind; // borrowed; their user is the proxy_conn
	// In place of behind->on_closed() where the way was never open: why, and whether TCP still
	// has the connection, which is then to be aborted.
	void (*on_refused)(struct proxy_conn *, const char *why, bool has_tcp);
};

// Beside its connection, for as long as that has TCP. All zero = there is no proxy.
struct proxy_through {
	struct proxy_conn *conn;
	struct proxy_through_conf conf;
	struct ip_port target;
	struct proxy_connect_answer answer;
	bool is_asked, is_open;
};

// Connects to the proxy, as tcp_connect() does.
struct tcp_conn *proxy_through_connect(struct proxy_through *, struct proxy_conn *,
	const struct proxy_through_conf *, const struct tcp_flow *to_proxy, uint64_t timeout_ns);
// The time to connect is over. NULL = it is not the proxy that is waited for; else why it fails,
// which is counted.
const char *proxy_through_time_out(const struct proxy_through *);
