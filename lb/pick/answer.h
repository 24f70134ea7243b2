// SPDX-License-Identifier: Apache-2.0
// What a request was answered with, whoever answered: the status of a gRPC call, or the class of
// plain HTTP's. Besides its cause (lb/pick/cause.h), which says whether anything kept the answer
// from being the backend's.
// Thread: any. Pure.
#pragma once

#include "lb/base/grpc_status.h"

#include <stdbool.h>
#include <stdint.h>

enum lb_answer {
	LB_ANSWER_GRPC, // + status, 0 to 16
	LB_ANSWER_GRPC_OTHER = 17, // a number that gRPC doesn't know
	LB_ANSWER_HTTP, // + class - 1: 1xx to 5xx
	LB_ANSWER_NONE = LB_ANSWER_HTTP + 5, // the request ended before its status was known
	LB_N_ANSWERS,
};

static inline uint8_t lb_answer_grpc(int status)
{
	return status >= 0 && status < LB_ANSWER_GRPC_OTHER ? (uint8_t)status
	                                                    : LB_ANSWER_GRPC_OTHER;
}

// Statuses that say that the server failed, and not its client (OpenTelemetry, semantic conventions
// for gRPC).
#define LB_GRPC_SERVER_ERRORS                                                                      \
	(1u << GRPC_UNKNOWN | 1u << GRPC_DEADLINE_EXCEEDED | 1u << GRPC_UNIMPLEMENTED |            \
		1u << GRPC_INTERNAL | 1u << GRPC_UNAVAILABLE | 1u << GRPC_DATA_LOSS)

// status: 100 to 599, as HTTP/2's fields are let through; of another one, none.
static inline uint8_t lb_answer_http(uint16_t status)
{
	return status >= 100 && status < 600 ? (uint8_t)(LB_ANSWER_HTTP + status / 100 - 1)
	                                     : LB_ANSWER_NONE;
}

// That of a server that failed: of plain HTTP 5xx.
static inline bool lb_answer_is_failure(uint8_t answer)
{
	return (LB_GRPC_SERVER_ERRORS | 1u << (LB_ANSWER_HTTP + 4)) >> answer & 1;
}
