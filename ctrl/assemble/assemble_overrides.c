// SPDX-License-Identifier: Apache-2.0
// What operators say of endpoints, applied to the clusters that have them.
#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/assemble/cluster_set.h"
#include "ctrl/assemble/overrides.h"

#include <errno.h>

const struct overrides *assembler_overrides(const struct assembler *a)
{
	return a->tree_env.overrides;
}

// All clusters, since any may be an aggregate with that leaf; those without it see no change.
int assembler_apply_overrides(struct assembler *a, struct lb_err *reterr)
{
	int first = 0;
	for (uint32_t i = 0; i < cluster_set_count(a->clusters); i++) {
		int err = cluster_tree_refresh(cluster_set_at(a->clusters, i)->tree,
			first ? &(struct lb_err){.text = ""} : reterr);
		first = first ? first : err;
	}
	return first;
}

int assembler_override(struct assembler *a, const char *cluster, const struct ip_port *address,
	struct override what, struct lb_err *reterr)
{
	struct override before = overrides_find(a->tree_env.overrides, cluster, address, 1);
	if (overrides_set(a->tree_env.overrides, cluster, address, what, reterr))
		return -EINVAL;
	if (!assembler_apply_overrides(a, reterr))
		return 0;
	// Without memory even for this, the next update does it.
	if (!overrides_set(a->tree_env.overrides, cluster, address, before, &(struct lb_err){0}))
		(void)assembler_apply_overrides(a, &(struct lb_err){0});
	return -EINVAL;
}
