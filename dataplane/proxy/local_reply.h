// SPDX-License-Identifier: Apache-2.0
// Local replies: answers that the proxy itself makes (HX-02, HX-03). A reply's own text is for the
// operator and for trusted clients; strangers get its cause's (TH-95).
// Thread: the owning worker; pure but for the stream.
#pragma once

#include "dataplane/h2/h2.h"
#include "lb/pick/cause.h"

#include <stdbool.h>
#include <stddef.h>

struct proxy_reply {
	enum lb_cause cause;
	uint16_t http_status;
	int grpc_status;
	struct str text; // borrowed; may name clusters and addresses
};
// What a reply looks like to its client.
struct proxy_reply_form {
	bool is_grpc;
	bool with_body; // plain HTTP alone, if the client takes it at once (TH-86)
	bool with_details; // its own text, and x-shunt-cause
	struct str request_id; // x-request-id; borrowed; empty = none
	uint64_t *body_len; // grows by what is sent of a body; NULL = nobody asks
};

// The reply for a cause, with this text.
struct proxy_reply proxy_reply_for(enum lb_cause, struct str text);
// The reply to a request that is malformed, or came too late or with too much: its status, 0 = it
// is told none.
struct proxy_reply proxy_reply_for_bad(uint16_t status, struct str text);
// The reply for a backend's RST_STREAM before its response (HX-19).
struct proxy_reply proxy_reply_for_reset(enum h2_error);
// The gRPC status that a client derives from an HTTP status without grpc-status (gRPC's "HTTP to
// gRPC Status Code Mapping").
int proxy_grpc_of_http(uint16_t status);

// Longer texts are cut.
#define PROXY_GRPC_MESSAGE_MAX 1024
// Percent-encodes for grpc-message (gRPC over HTTP/2, "Status-Message"): writes at most
// PROXY_GRPC_MESSAGE_MAX bytes to out and returns how many.
size_t proxy_grpc_message(struct str text, char *out);

// What replies have behind the fields of their kind: the cause and the id, if the form says so.
// Returns how many; they borrow from both.
#define PROXY_REPLY_ADDED 2
size_t proxy_reply_add_fields(const struct proxy_reply *, const struct proxy_reply_form *,
	struct field to[PROXY_REPLY_ADDED]);

// Sends the whole answer with END_STREAM. False = pools exhausted: the caller resets the stream.
[[nodiscard]] bool proxy_reply_send(
	struct h2_stream *, const struct proxy_reply *, const struct proxy_reply_form *);
// Sends gRPC's status and text in trailers, after the part of the answer already sent. False
// likewise.
[[nodiscard]] bool proxy_reply_send_trailers(
	struct h2_stream *, const struct proxy_reply *, const struct proxy_reply_form *);
