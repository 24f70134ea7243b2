// SPDX-License-Identifier: Apache-2.0
// The transport to one xDS server: streams of whole messages. No callback runs inside a call of the
// client, so that the client is never re-entered.
// Thread: ctrl.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct xds_server_conf;
struct lb_err;

struct xds_stream_events {
	// The message given to send() was sent to a connected server (FM-04: timers start now).
	void (*on_sent)(void *ctx);
	// One message. It lasts until stream_read() asks for the next one, or the stream is freed.
	void (*on_message)(void *ctx, const uint8_t *bytes, size_t len);
	// The stream ended for any reason; no event follows. The caller must still free it.
	void (*on_closed)(void *ctx, const char *why);
};

struct xds_transport;
struct xds_stream;

struct xds_transport_ops {
	// Opens a stream of the gRPC method "/package.Service/Method", and connects if necessary.
	// The caller may send and read at once. Returns NULL if out of memory.
	struct xds_stream *(*stream_new)(struct xds_transport *, const char *method,
		const struct xds_stream_events *, void *ctx);
	// Copies the message. Not to be called again before on_sent. Returns 0 or -ENOMEM.
	int (*stream_send)(struct xds_stream *, const uint8_t *bytes, size_t len);
	// Requests one message. Not to be called again before on_message.
	void (*stream_read)(struct xds_stream *);
	// Says that no message follows; the server ends the stream once it has read all. No message
	// is under way. Once a stream.
	void (*stream_end)(struct xds_stream *);
	// Cancels the stream; no event follows. May be called inside an event.
	void (*stream_free)(struct xds_stream *);
	void (*free)(struct xds_transport *); // after its streams are freed; never called with NULL
};

struct xds_transport {
	const struct xds_transport_ops *ops;
};

// Makes the transports, one per server.
struct xds_transport_factory {
	// Returns 0, -ENOMEM, or -EINVAL with the reason (credentials that cannot be loaded).
	int (*connect)(void *ctx, const struct xds_server_conf *, struct xds_transport **ret,
		struct lb_err *reterr);
	void *ctx;
};
