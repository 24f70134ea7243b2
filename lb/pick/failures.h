// SPDX-License-Identifier: Apache-2.0
// The last requests of a worker that failed, with the details that their clients may not see. A
// ring: new ones go over the oldest, and whoever reads an entry that is written meanwhile notices.
// Thread: one writes; any may read.
#pragma once

#include "lb/base/ip.h"
#include "lb/base/str.h"
#include "lb/pick/cause.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_FAILURES 1024 // that a worker keeps
#define LB_FAILURE_ID_MAX 64
#define LB_FAILURE_NO_GRPC 255
#define LB_FAILURE_ATTEMPTS 5 // that are kept of each, the last ones

// What is kept of each text, with the NUL at its end; longer ones are cut.
#define LB_FAILURE_TEXTS(X)                                                                        \
	X(cluster, 120)                                                                            \
	X(text, 344)                                                                               \
	X(id, LB_FAILURE_ID_MAX + 8) /* x-request-id */                                            \
	X(method, 16)                                                                              \
	X(authority, 128)                                                                          \
	X(path, 256)                                                                               \
	X(vhost, 96) /* names of where it was routed; "" = none, or it serves no more */           \
	X(route, 96)

#define X(name, size) LB_FAILURE_##name,
enum lb_failure_text { LB_FAILURE_TEXTS(X) LB_FAILURE_N_TEXTS };
#undef X

// One that was sent to a backend, or a pick that failed and counts as one (has_backend is false).
struct lb_failure_attempt {
	struct ip_port backend;
	uint32_t after_us; // its begin, from the request's
	uint32_t took_us;
	uint8_t cause; // enum lb_cause; OK = the backend answered, with grpc_status
	uint8_t grpc_status; // LB_FAILURE_NO_GRPC = the backend answered in plain HTTP
	bool has_backend;
};

struct lb_failure {
	uint64_t began_ns, at_ns; // of the worker's clock; at its end
	struct ip_port backend;
	uint16_t frontend;
	uint8_t cause; // enum lb_cause; OK = the backend answered so
	bool has_backend; // one was chosen
	uint8_t n_kept; // of attempts[]
	// Of the backend's answer, if that is the cause.
	uint8_t grpc_status; // LB_FAILURE_NO_GRPC = plain HTTP
	uint16_t http_status; // 0 = not known
	uint32_t n_attempts; // in all
	uint32_t route_index; // in its virtual host's resource; UINT32_MAX = not known
	_Alignas(8) struct lb_failure_attempt attempts[LB_FAILURE_ATTEMPTS];
#define X(name, size) _Alignas(8) char name[size];
	LB_FAILURE_TEXTS(X)
#undef X
};
struct lb_failures;

struct lb_failures *lb_failures_new(void); // NULL = out of memory
void lb_failures_free(struct lb_failures *); // NULL is fine

// Writes one; its texts come apart, so that no more is copied than they have.
void lb_failures_add(struct lb_failures *, const struct lb_failure *,
	const struct str texts[LB_FAILURE_N_TEXTS]);
// How many were ever written.
uint64_t lb_failures_count(const struct lb_failures *);
// Reads one by its number, from 0 on. False = it has not come yet, is being written, or was
// overwritten.
[[nodiscard]] bool lb_failures_read(
	const struct lb_failures *, uint64_t number, struct lb_failure *ret);
