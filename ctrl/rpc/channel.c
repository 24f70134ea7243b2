// SPDX-License-Identifier: Apache-2.0
#include "ctrl/rpc/channel.h"

#include <grpc/grpc_security.h>

// libgrpc's own attempts to connect: a server that comes back is found soon.
#define RECONNECT_LEAST_MS 500
#define RECONNECT_MOST_MS 5000
#define ANSWER_MAX (64 << 10) // bytes
// Finds out that a server has gone without a word. More often than that most servers take it ill
// (gRFC A8).
#define KEEPALIVE_MS (5 * 60 * 1000)

grpc_channel *rpc_channel_new(const char *target)
{
	grpc_arg args[] = {
		{GRPC_ARG_INTEGER, (char[]){GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS},
			{.integer = RECONNECT_LEAST_MS}},
		{GRPC_ARG_INTEGER, (char[]){GRPC_ARG_MAX_RECONNECT_BACKOFF_MS},
			{.integer = RECONNECT_MOST_MS}},
		{GRPC_ARG_INTEGER, (char[]){GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH},
			{.integer = ANSWER_MAX}},
		{GRPC_ARG_INTEGER, (char[]){GRPC_ARG_KEEPALIVE_TIME_MS}, {.integer = KEEPALIVE_MS}},
		{GRPC_ARG_INTEGER, (char[]){GRPC_ARG_ENABLE_RETRIES}, {.integer = 0}},
		{GRPC_ARG_INTEGER, (char[]){GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL}, {.integer = 1}},
	};
	grpc_channel_args list = {sizeof(args) / sizeof(args[0]), args};
	grpc_channel_credentials *creds = grpc_insecure_credentials_create();
	grpc_channel *c = grpc_channel_create(target, creds, &list);
	grpc_channel_credentials_release(creds);
	return c;
}
