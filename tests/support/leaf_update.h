// SPDX-License-Identifier: Apache-2.0
// An update of a leaf from plain lists, as tests write them.
// Thread: the test's.
#pragma once

#include "lb/leaf/leaf.h"
#include "lb/pick/leaf_endpoints.h"

#include <errno.h>

// config's endpoints do not count. As lb_leaf_update().
static inline int leaf_update(struct lb_leaf *leaf, const struct lb_leaf_config *config,
	const struct lb_leaf_priority *list, uint32_t n)
{
	const struct ip_port *second;
	struct lb_leaf_config c = *config;
	c.endpoints = lb_leaf_endpoints_new(list, n, &second);
	int err = c.endpoints ? lb_leaf_update(leaf, &c) : -ENOMEM;
	lb_leaf_endpoints_put(c.endpoints);
	return err;
}
