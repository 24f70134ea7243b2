// SPDX-License-Identifier: Apache-2.0
// What a worker notes of each request while there is an access log (lb/pick/access.h), and tells
// once the request is over (OPS-30 to OPS-34), to the logs that its listener has then (OPS-40).
// Callers ask first whether it is on: without a log that branch is all it costs. The fields of a
// request stay where it keeps them for another attempt (replay.h), and are copied only if they
// would be lost there, or are told: most requests are not.
// Thread: the owning worker.
#pragma once

#include "lb/base/ip.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h2_message;
struct lb_access_record;
struct proxy_client;
struct proxy_reply;
struct proxy_reply_form;
struct proxy_request;

struct proxy_access {
	bool is_on;
	bool is_traced; // trace.h
	uint8_t n_attempts;
	uint8_t version; // HTTP's: 20, 11 or 10
	uint16_t status; // HTTP's, that its client was told
	struct ip_port backend; // of the last attempt
	struct lb_access_record *record; // with its texts; NULL = they lie in the replay
	uint64_t received_ns, answered_ns; // of the client's last byte and the answer's first
};

// There may be a log: turns it on if there is one of shunt.yaml's or the listener's. Between
// begin() and routed() the message stays valid.
void proxy_access_begin(struct proxy_request *, const struct h2_message *);

// It is traced: turns it on for that.
void proxy_access_trace(struct proxy_request *, const struct h2_message *);

// The rest of these: it is on.

void proxy_access_routed(struct proxy_request *);
// What the replay holds of it is about to go.
void proxy_access_keep(struct proxy_request *);
// Something of its body or its trailers, and perhaps the last of it.
void proxy_access_request_data(struct proxy_request *);
// It was sent to a backend.
void proxy_access_sent(struct proxy_request *, const struct ip_port *);
// A backend's answer goes to the client. True = the replay is needed still.
bool proxy_access_answer(struct proxy_request *, uint16_t status);
// The proxy answers by itself.
void proxy_access_reply(struct proxy_request *, const struct proxy_reply *);
// Tells of it, if the filter says so or it is traced.
void proxy_access_over(struct proxy_request *);

// The same for one of which nothing else is kept: tells at once. There may be a log, and the form
// has the request's id.
void proxy_access_refuse(struct proxy_client *, const struct h2_message *,
	const struct proxy_reply *, const struct proxy_reply_form *);
