// SPDX-License-Identifier: Apache-2.0
// Sizes of the dense id spaces that per-worker arrays are indexed by. A configuration beyond them
// is refused with an error that names the limit.
// Thread: any.
#pragma once

#define LB_MAX_FRONTENDS 64
#define LB_MAX_CLUSTERS 16384
#define LB_MAX_ENDPOINTS 131072
#define LB_MAX_WORKERS 64
