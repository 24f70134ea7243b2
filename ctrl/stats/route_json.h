// SPDX-License-Identifier: Apache-2.0
// Routes, their policies and filters for display: as JSON, with the names of gRFC A28's service
// config where it has any, and as a line of text.
// Thread: ctrl.
#pragma once

#include "lb/route/filter.h"
#include "lb/route/route.h"

#include <jansson.h>

struct res_route;

// Adds "prefix", "headers", "match_fraction", … to the object.
void route_json_matchers(json_t *object, const struct res_route *);
// What a route specifies besides its action; NULL = nothing. trusted: authority rewriting applies.
json_t *route_json_policy(const struct lb_route_policy *, bool trusted);
// Filters of a decoded resource, not of a chain: those are compiled.
json_t *route_json_filter(const struct lb_filter *);
json_t *route_json_filters(const struct lb_filter *, uint32_t n); // an array

// `prefix "/a", header k exact "v", 20 % of the requests` of an object that
// route_json_matchers() filled. From malloc; NULL = out of memory.
char *route_text_matchers(const json_t *route);
char *route_text_header(const struct lb_header_match_conf *); // `k exact "v"`
// "1.5s"; "none" for LB_NO_TIMEOUT.
const char *route_text_duration(uint64_t ns, char text[32]);
// In percent, with as few digits as possible: "20", "0.0001".
const char *route_text_percent(double share, char text[32]);
