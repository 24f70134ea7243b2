// SPDX-License-Identifier: Apache-2.0
// A cache of variants whose contents are numbers, and its news as a text.
// Thread: the test's.
#pragma once

#include "ctrl/xds/variants/variants.h"

#include <stdbool.h>

#define WORLD_TEXT 1024

struct world {
	struct xds_variants *cache;
	int round; // of versions; 0 = none
	char text[WORLD_TEXT]; // of the last world_news() and world_dump()
};

void world_init(struct world *, bool keeps_all, bool newest_wins);
void world_fini(struct world *); // checks that no content is left over
long world_n_contents(void); // alive, of all worlds
int world_number(const struct xds_variant *); // its content; 0 = NULL

// Constraints in protobuf's JSON form with ' for ", and parameters like "env=prod version=v1". Of
// number 1 in round 7 the version is "v1.7", in round 0 "v1".
int world_try_set(struct world *, const char *name, const char *json, int number, struct lb_err *);
int world_try_set_of(
	struct world *, const char *name, struct xds_constraints *, int number, struct lb_err *);
int world_try_remove(struct world *, const char *name, const char *json, struct lb_err *);
int world_try_keep(struct world *, const char *name, const char *json, struct lb_err *);
int world_try_sub(struct world *, const char *name, const char *params, struct xds_sub **ret);
// The same, which must succeed.
void world_set(struct world *, const char *name, const char *json, int number);
void world_remove(struct world *, const char *name, const char *json);
void world_keep(struct world *, const char *name, const char *json);
struct xds_sub *world_sub(struct world *, const char *name, const char *params);

// All that is to be drained: "r{env=prod}: 1 > 2; …", with 0 for nothing and "!" for newly
// ambiguous.
const char *world_news(struct world *);
// All variants: "r 1 env=prod; …"
const char *world_dump(struct world *);
