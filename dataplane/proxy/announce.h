// SPDX-License-Identifier: Apache-2.0
// What a connection to a backend begins with where its cluster wants PROXY headers (PP-20, PP-14):
// whose connection it is, before TLS or HTTP/2 says anything.
// Thread: the owning worker.
#pragma once

#include <stdbool.h>

struct h2_events;
struct lb_header;
struct proxy_client;
struct proxy_conn;
struct lb_silence;
struct tcp_conn;

// Queues the header, as the first that is sent; NULL = there is none. client: whose connection it
// is, NULL = our own. False = the chunks are exhausted.
[[nodiscard]] bool proxy_announce(struct proxy_conn *, struct tcp_conn *, const struct lb_header *,
	const struct proxy_client *client);
// The same, and then proxy_conn_start() as a client: this may fail likewise.
[[nodiscard]] bool proxy_announce_and_start(struct proxy_conn *, struct tcp_conn *,
	const struct lb_header *, const struct proxy_client *client, const struct h2_events *,
	const struct lb_silence *);
