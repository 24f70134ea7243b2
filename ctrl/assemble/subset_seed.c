// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/subset_seed.h"

#include "ctrl/conf/config.h"
#include "lb/index/hash.h"

#include <string.h>
#include <unistd.h>

#define HOST_NAME_SIZE 256

// Each is hashed by what those before it gave, so that they can't be mistaken for each other.
uint64_t subset_seed(const struct config *config, const char *node_id, uint64_t chance)
{
	const char *text = config->xds ? config->xds->subset_seed : NULL;
	char host[HOST_NAME_SIZE] = "";
	if (!text)
		return chance;
	gethostname(host, sizeof(host) - 1); // without one, the node's id is all there is
	uint64_t hash = lb_xxh64(text, strlen(text));
	hash = lb_xxh64_seeded(hash, node_id, strlen(node_id));
	return lb_xxh64_seeded(hash, host, strlen(host));
}
