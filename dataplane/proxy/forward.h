// SPDX-License-Identifier: Apache-2.0
// Forwards fields, body and flow control between a request's two streams, both ways. Each side's
// window opens only as the other side's bytes leave (HX-24).
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proxy_request;

// The stream's user is the request, or NULL if the stream has none any more. _data and _sent
// implement on_data and on_sent of h2_events.

// From the client, after its HEADERS.
void proxy_forward_request_data(
	struct h2_conn *, struct h2_stream *client, const uint8_t *, size_t len, bool end_stream);
void proxy_forward_request_trailers(struct proxy_request *, const struct h2_message *);
// n bytes were sent to the backend.
void proxy_forward_request_sent(struct h2_conn *, struct h2_stream *upstream, size_t n);

// From the backend.
void proxy_forward_response_head(struct proxy_request *, const struct h2_message *);
void proxy_forward_response_data(
	struct h2_conn *, struct h2_stream *upstream, const uint8_t *, size_t len, bool end_stream);
void proxy_forward_response_trailers(struct proxy_request *, const struct h2_message *);
// n bytes were sent to the client.
void proxy_forward_response_sent(struct h2_conn *, struct h2_stream *client, size_t n);
