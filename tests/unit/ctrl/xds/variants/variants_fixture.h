// SPDX-License-Identifier: Apache-2.0
// Constraints and parameters as tests write them, and a second opinion on constraints: trees of the
// test's own, with an encoder and an evaluator that share nothing with ctrl/xds.
// Thread: the test's.
#pragma once

#include "lb/base/rand.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xds_constraints;
struct xds_params;

// From protobuf's JSON form, with ' for ". CHECKs that it is right. NULL = unconstrained.
struct xds_constraints *constraints_of(const char *json);
// "env=prod version=v1"; "" = the empty set.
struct xds_params *params_of(const char *text);

enum twin_kind { TWIN_ANY, TWIN_VALUE, TWIN_EXISTS, TWIN_OR, TWIN_AND, TWIN_NOT };
#define TWIN_KIDS 3
#define TWIN_KEYS 3
#define TWIN_VALUES 3 // 0 is ""; the last is mentioned in no tree
#define TWIN_ABSENT -1

struct twin {
	enum twin_kind kind;
	int key, value;
	unsigned n;
	struct twin *kids[TWIN_KIDS];
};
// A value for each key, or TWIN_ABSENT.
struct twin_params {
	int values[TWIN_KEYS];
};

// A tree at most so deep; twin_free().
struct twin *twin_new(struct rand *, unsigned depth);
void twin_free(struct twin *);
bool twin_match(const struct twin *, const struct twin_params *);
// The canonical encoding (free).
uint8_t *twin_encode(const struct twin *, size_t *ret_len);
struct xds_constraints *twin_constraints(const struct twin *);
struct xds_params *twin_params(const struct twin_params *);
// Steps through all parameter sets, from all TWIN_ABSENT on; false after the last.
bool twin_next(struct twin_params *);
