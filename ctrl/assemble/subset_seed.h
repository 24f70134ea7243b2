// SPDX-License-Identifier: Apache-2.0
// What random subsets of endpoints are chosen by (lb/leaf/subset.h; A68-04).
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct config;

// Chance, unless the configuration says otherwise: then it is the same for this text, this host and
// this node of xDS, whenever the process starts.
uint64_t subset_seed(const struct config *, const char *node_id, uint64_t chance);
