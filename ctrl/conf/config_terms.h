// SPDX-License-Identifier: Apache-2.0
// What of shunt.yaml workers hold connections and requests to, and a reload may change.
// Thread: any. Pure.
#pragma once

#include "lb/pick/terms.h"

struct config;

struct lb_terms config_terms(const struct config *); // number 0
