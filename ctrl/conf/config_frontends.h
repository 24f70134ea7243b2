// SPDX-License-Identifier: Apache-2.0
// Checks of shunt.yaml's frontends. Part of ctrl/conf/config_check.c, after the ports.
// Thread: ctrl, before anything else starts.
#pragma once

struct config;
struct lb_err;

// Parses their addresses and prefixes, and counts places for chains. Returns 0, or -EINVAL with
// reterr (also if out of memory).
[[nodiscard]] int config_check_frontends(struct config *, struct lb_err *reterr);
// Its number of frontends has changed: as many places for filter chains and for addresses of
// Listeners as there may be beside.
void config_reserve_places(struct config *);
