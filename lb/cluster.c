// SPDX-License-Identifier: Apache-2.0
#include "lb/cluster.h"

#include "lb/base/check.h"
#include "lb/pick/picker.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct lb_cluster *lb_cluster_new(
	uint32_t id, const char *name, enum lb_state state, struct lb_picker *picker)
{
	size_t size = strlen(name) + 1;
	// The name begins where the struct is padded: there is one of these a change of state.
	size_t whole = offsetof(struct lb_cluster, name) + size;
	struct lb_cluster *c = malloc(whole > sizeof(*c) ? whole : sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct lb_cluster){
		.n_refs = 1, .id = id, .state = state, .picker = lb_picker_get(picker)};
	memcpy(c->name, name, size);
	return c;
}

struct lb_cluster *lb_cluster_get(struct lb_cluster *c)
{
	c->n_refs++;
	return c;
}

void lb_cluster_put(struct lb_cluster *c)
{
	if (!c)
		return;
	CHECK(c->n_refs > 0);
	if (--c->n_refs)
		return;
	lb_picker_put(c->picker);
	free(c);
}
