// SPDX-License-Identifier: Apache-2.0
// HAProxy's `show info`: the process.
// Thread: ctrl.
#pragma once

#include "ctrl/stats/haproxy_field.h"

struct haproxy_ids;
struct show;

// Client connections that all workers can have at once.
uint64_t haproxy_info_max_clients(const struct show *);
// The whole answer, from malloc; NULL = out of memory.
char *haproxy_info(const struct show *, struct haproxy_ids *, enum haproxy_form);
