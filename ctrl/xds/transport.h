// SPDX-License-Identifier: Apache-2.0
// The way to one xDS server: streams of whole messages. The client asks and is called back; nothing
// is called back from inside a call of the client, so its state is never entered twice.
// Thread: ctrl.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct xds_server_conf;
struct lb_err;

struct xds_stream_events {
	// The message given to send() has left for a connected server (FM-04: timers start now).
	void (*on_sent)(void *ctx);
	// One message, borrowed for the call. The next comes only after stream_read().
	void (*on_message)(void *ctx, const uint8_t *bytes, size_t len);
	// The stream is over, for whatever reason; no event follows. The stream is still to be
	// freed.
	void (*on_closed)(void *ctx, const char *why);
};

struct xds_transport;
struct xds_stream;

struct xds_transport_ops {
	// Opens a stream of the gRPC method "/package.Service/Method", connecting first if need be.
	// The first message may be sent and read at once. NULL = out of memory.
	struct xds_stream *(*stream_new)(struct xds_transport *, const char *method,
		const struct xds_stream_events *, void *ctx);
	// Copies the message. One at a time: not again before on_sent. 0 or -ENOMEM.
	int (*stream_send)(struct xds_stream *, const uint8_t *bytes, size_t len);
	// Asks for one message. Not again before on_message.
	void (*stream_read)(struct xds_stream *);
	// Cancels; no event comes any more. May be called inside an event.
	void (*stream_free)(struct xds_stream *);
	void (*free)(struct xds_transport *); // its streams were freed before; NULL is not passed
};

struct xds_transport {
	const struct xds_transport_ops *ops;
};

// Makes the transports: one a server.
struct xds_transport_factory {
	// 0, -ENOMEM, or -EINVAL with the reason (credentials that cannot be loaded).
	int (*connect)(void *ctx, const struct xds_server_conf *, struct xds_transport **ret,
		struct lb_err *reterr);
	void *ctx;
};
