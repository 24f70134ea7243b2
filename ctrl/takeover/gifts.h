// SPDX-License-Identifier: Apache-2.0
// What who serves gives to the newer process, each with a message of its own.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct takeover_conf;
struct takeover_peer;

void takeover_gifts_resources(const struct takeover_conf *, struct takeover_peer *); // if any
void takeover_gifts_listeners(const struct takeover_conf *, struct takeover_peer *);
void takeover_gifts_sources(const struct takeover_conf *, struct takeover_peer *); // their names
uint32_t takeover_gifts_n_sources(const struct takeover_conf *); // how many of these there are
