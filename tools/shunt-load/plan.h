// SPDX-License-Identifier: Apache-2.0
// What to send: paths with weights, fields and sizes; and which checks to make on answers.
// Thread: made on main, read by the polling thread.
#pragma once

#include "dataplane/h2/h2.h"
#include "lb/base/err.h"
#include "lb/base/rand.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_MAX_PATHS 1024
#define PLAN_MAX_FIELDS 64

enum plan_check {
	PLAN_CHECK_CONTENT, // each answer must match its request's id (shunt-load echo)
	PLAN_CHECK_SAME, // all answers to a path must be equal (any server with static content)
	PLAN_CHECK_STATUS, // HTTP status and gRPC status only
	PLAN_N_CHECKS,
};

struct plan_path {
	struct str text; // owned
	uint64_t until; // sum of the weights up to here
};

struct plan {
	enum plan_check check;
	bool is_grpc;
	bool id_in_field; // the body is too short to contain it
	uint32_t body_size, answer_size; // of content
	struct str method;
	struct str authority; // owned
	struct plan_path *paths; // owned
	uint32_t n_paths;
	// Fields of every request; names and values owned. One more place, for the id.
	struct field fields[PLAN_MAX_FIELDS + 1];
	size_t n_fields, n_own; // the first n_own are constants of ours
	char answer_text[24], length_text[24];
};

// Our own fields that tell the backend how to answer.
#define PLAN_ID_FIELD "x-load-id" // 16 hexadecimal digits
#define PLAN_ANSWER_FIELD "x-load-answer" // bytes of content wanted

// Without paths and body. Returns 0 or -ENOMEM.
[[nodiscard]] int plan_init(struct plan *, bool is_grpc, const char *authority);
void plan_fini(struct plan *);
// "/path" or "WEIGHT:/path". 0, -EINVAL with reterr, or -ENOMEM.
[[nodiscard]] int plan_add_path(struct plan *, const char *text, struct lb_err *reterr);
// Lines "name: value"; empty ones and those with # in front are skipped. The same errors.
[[nodiscard]] int plan_read_fields(struct plan *, const char *file, struct lb_err *reterr);
[[nodiscard]] int plan_add_field(struct plan *, struct str line, struct lb_err *reterr);
// Call last: sets checks and sizes. Without a path it adds "/", or gRPC's. Returns 0 or -ENOMEM.
[[nodiscard]] int plan_seal(
	struct plan *, enum plan_check, uint32_t body_size, uint32_t answer_size);

// Draws a path's index by weight.
uint32_t plan_draw(const struct plan *, struct rand *);
// Builds the request with this id to path i. fields: room for PLAN_MAX_FIELDS + 1; id_text: for the
// id.
void plan_request(const struct plan *, uint32_t path, uint64_t id, struct field *fields,
	char id_text[16], struct h2_message *ret);
