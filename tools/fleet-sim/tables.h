// SPDX-License-Identifier: Apache-2.0
// The tables that fleet-sim prints, one function each.
// Thread: one. False = out of memory.
#pragma once

#include <stdbool.h>

struct options;

bool tables_scale(const struct options *);
bool tables_load(const struct options *);
bool tables_subsets(const struct options *);
bool tables_requests(const struct options *);
bool tables_rolling(const struct options *);
bool tables_age(const struct options *);
