// SPDX-License-Identifier: Apache-2.0
// The resource types that Shunt subscribes to, in the order of requests.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/type.h"

#define RES_N_TYPES 4
extern const struct xds_type *const res_types[RES_N_TYPES];
