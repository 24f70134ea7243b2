// SPDX-License-Identifier: Apache-2.0
// Sizes of the dense id spaces that index per-worker arrays, and of what a resource may have. A
// configuration that exceeds one is rejected with an error that names the limit.
// Thread: any.
#pragma once

#define LB_MAX_FRONTENDS 4096
#define LB_MAX_CLUSTERS 16384
#define LB_MAX_ENDPOINTS 131072
#define LB_MAX_WORKERS 64
#define LB_MAX_MEMBERS 262144 // of all leaves together
#define LB_MAX_SLOTS 131072 // nodes that keep a place in each worker (lb_node_env.slot_take)
#define LB_MAX_LEAVES 32768 // leaf clusters, those of aggregates once more each
#define LB_MAX_VHOSTS 262144 // of one RouteConfiguration
#define LB_MAX_COUNTED_VHOSTS 1024 // virtual hosts whose requests are counted apart
#define LB_MAX_LOADS 131072 // localities and drop categories that are reported on
