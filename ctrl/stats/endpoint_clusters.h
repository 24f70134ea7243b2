// SPDX-License-Identifier: Apache-2.0
// Which clusters have some endpoints, by the endpoints' ids: a few names of each, since hundreds of
// clusters may share an endpoint. To add one costs the same whatever is wanted and was added.
// Thread: ctrl.
#pragma once

#include <stdint.h>

#define ENDPOINT_CLUSTERS_NAMED 8 // of an endpoint

struct endpoint_clusters;

// For as many endpoints at most. NULL = out of memory.
struct endpoint_clusters *endpoint_clusters_new(uint32_t n_endpoints);
void endpoint_clusters_free(struct endpoint_clusters *); // NULL is fine

// Once or several times, before clusters are added.
void endpoint_clusters_want(struct endpoint_clusters *, uint32_t id);
// It is nothing if that endpoint is not wanted. The name is borrowed until free(). All calls for a
// cluster come one after the other, and may tell of an endpoint more than once.
void endpoint_clusters_add(struct endpoint_clusters *, const char *cluster, uint32_t id);
// "a", "a, b", with ", ..." behind the last if there are more; "" of one that is not wanted. From
// malloc; NULL = out of memory.
char *endpoint_clusters_text(const struct endpoint_clusters *, uint32_t id);
