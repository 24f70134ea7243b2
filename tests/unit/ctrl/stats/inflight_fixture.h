// SPDX-License-Identifier: Apache-2.0
// The stats socket's commands that ask workers for something, and a test that plays the worker.
// Thread: the test's.
#pragma once

#include "ctrl/stats/show.h"
#include "ctrl/stats/stats_server.h"
#include "lb/pick/link.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <jansson.h>

extern const struct stats_caller anybody;
extern struct show *show;
extern uint32_t ids[2]; // of the endpoints 10.0.0.1 and 10.0.0.2
extern const struct told_endpoint inflight_backends[2];
extern const struct res_vhost inflight_vhost;

int inflight_set_up(void **state); // cmocka's
int inflight_tear_down(void **state);

struct stats_follow *begin(const char *command); // of anybody, whose answer is yet to come
char *look(struct stats_follow *); // what has come, from malloc; NULL = it is yet to come
json_t *end(struct stats_follow *); // all has come: its data
struct lb_inflight *expect_question(struct world *); // that the worker is asked
void let_pass(struct world *, uint64_t ns);
void tell_request(struct lb_inflight *, uint64_t began_ns);
void tell_conn(struct lb_inflight *, uint64_t began_ns, uint32_t endpoint);
