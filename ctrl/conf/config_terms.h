// SPDX-License-Identifier: Apache-2.0
// What of shunt.yaml workers hold connections and requests to, and a reload may change.
// Thread: any. Pure.
#pragma once

#include "lb/live_frontend.h"
#include "lb/pick/terms.h"

struct config;
struct config_frontend;

struct lb_terms config_terms(const struct config *); // number 0
// Borrows from it.
struct lb_frontend_conf config_frontend_terms(const struct config_frontend *);
