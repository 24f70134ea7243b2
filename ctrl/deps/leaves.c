// SPDX-License-Identifier: Apache-2.0
#include "ctrl/deps/leaves.h"

#include "ctrl/deps/nodes.h"
#include "ctrl/res/cluster.h"

#include <stddef.h>

static void descend(
	struct nodes *nodes, const struct res_cluster *c, unsigned depth, struct leaves *l);

static void visit(struct nodes *nodes, const char *name, unsigned depth, struct leaves *l)
{
	struct node *n = node_find(&nodes->clusters, name);
	// A cluster is in the configuration unless it is too deep below every route, and from an
	// aggregate that no route names the depth is not known: it shares the fault of its roots
	// (DM-16). Too deep a one may be watched all the same, for requests that hold it.
	if (depth == LEAVES_MAX_DEPTH || !n || !n->taken) {
		l->too_deep = name;
		return;
	}
	if (cluster_node_of(n)->seen == nodes->n_flattenings) // A37-G03
		return;
	cluster_node_of(n)->seen = nodes->n_flattenings;
	const char *error;
	const struct res_cluster *c = node_cluster(n, &error);
	if (!c) { // A37-G10
		if (l->n_faulty < LEAVES_MAX_FAULTY_TOLD)
			l->faulty[l->n_faulty] = n;
		l->n_faulty++;
	} else if (c->kind == RES_CLUSTER_AGGREGATE) {
		descend(nodes, c, depth, l);
	} else {
		l->list[l->n++] = n;
	}
}

static void descend(
	struct nodes *nodes, const struct res_cluster *c, unsigned depth, struct leaves *l)
{
	for (uint32_t i = 0; i < c->n_children && !l->too_deep; i++)
		visit(nodes, c->children[i], depth + 1, l);
}

void leaves_find(struct nodes *nodes, const struct node *root, struct leaves *l)
{
	nodes->n_flattenings++;
	*l = (struct leaves){.list = l->list};
	visit(nodes, node_name(root), 0, l);
}
