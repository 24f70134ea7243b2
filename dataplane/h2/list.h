// SPDX-License-Identifier: Apache-2.0
// Intrusive circular list: streams that wait for a turn, in order, with removal in O(1).
// Thread: the owner's.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct h2_link {
	struct h2_link *next, *prev; // NULL while on no list
};

static inline void h2_list_init(struct h2_link *head)
{
	head->next = head->prev = head;
}

static inline bool h2_list_empty(const struct h2_link *head)
{
	return head->next == head;
}

static inline bool h2_link_on(const struct h2_link *l)
{
	return l->next != NULL;
}

static inline void h2_list_append(struct h2_link *head, struct h2_link *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

// On no list = nothing.
static inline void h2_list_remove(struct h2_link *l)
{
	if (!l->next)
		return;
	l->prev->next = l->next;
	l->next->prev = l->prev;
	l->next = l->prev = NULL;
}
