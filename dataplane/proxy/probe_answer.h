// SPDX-License-Identifier: Apache-2.0
// What an endpoint answered to a health check, and what that means (AHC-02).
// Thread: the owning worker. Pure. Its input is untrusted.
#pragma once

#include "lb/base/str.h"
#include "lb/pick/check.h"
#include "lb/pick/probe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h2_message;

// All zero at first.
struct proxy_probe_answer {
	uint16_t status; // of HTTP; 0 = none yet
	bool has_grpc_status;
	bool is_too_long; // more came than is kept
	uint32_t grpc_status;
	uint32_t len;
	uint8_t bytes[LB_CHECK_MAX_RECEIVE];
};

struct proxy_verdict {
	enum lb_probe_result result;
	char why[LB_PROBE_WHY_MAX]; // "" if it passed
};

// Of a check that got no answer to judge.
struct proxy_verdict proxy_verdict_failed(const char *why);

// A response's head, or its trailers.
void proxy_probe_answer_head(struct proxy_probe_answer *, const struct h2_message *);
// False = there is more than is kept; that is dropped.
bool proxy_probe_answer_body(struct proxy_probe_answer *, const uint8_t *, size_t len);
static inline struct str proxy_probe_answer_bytes(const struct proxy_probe_answer *a)
{
	return (struct str){(const char *)a->bytes, a->len};
}
// Of the whole answer to a check by HTTP or gRPC.
struct proxy_verdict proxy_probe_judge(const struct lb_check *, const struct proxy_probe_answer *);
