// SPDX-License-Identifier: Apache-2.0
// What a request was answered with, whoever answered: the status of a gRPC call, or the class of
// plain HTTP's. Besides its cause (lb/pick/cause.h), which says whether anything kept the answer
// from being the backend's.
// Thread: any. Pure.
#pragma once

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

// status: 100 to 599, as HTTP/2's fields are let through; of another one, none.
static inline uint8_t lb_answer_http(uint16_t status)
{
	return status >= 100 && status < 600 ? (uint8_t)(LB_ANSWER_HTTP + status / 100 - 1)
	                                     : LB_ANSWER_NONE;
}
