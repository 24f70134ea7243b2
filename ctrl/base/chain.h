// SPDX-License-Identifier: Apache-2.0
// A list through links inside its members: any member is taken out in constant time. A head or a
// member that is nowhere points to itself.
// Thread: one owner.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct xds_chain {
	struct xds_chain *next, *prev;
};

static inline void xds_chain_init(struct xds_chain *c)
{
	c->next = c->prev = c;
}

// Of a head: has it no members? Of a member: is it nowhere?
static inline bool xds_chain_empty(const struct xds_chain *c)
{
	return c->next == c;
}

// To the end. The member is nowhere yet.
static inline void xds_chain_add(struct xds_chain *head, struct xds_chain *c)
{
	c->prev = head->prev;
	c->next = head;
	head->prev->next = c;
	head->prev = c;
}

// Out of where it is; nowhere is fine.
static inline void xds_chain_remove(struct xds_chain *c)
{
	c->prev->next = c->next;
	c->next->prev = c->prev;
	xds_chain_init(c);
}
