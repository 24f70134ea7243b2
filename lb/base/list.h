// SPDX-License-Identifier: Apache-2.0
// A list through links inside its members, in order. Any member is taken out in constant time and
// without its head, which <sys/queue.h> has for no list that also appends. CONTAINER_OF leads from
// a link to its member.
// Thread: one owner.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// A head or a member's link. The list is a ring through its head.
struct list_link {
	struct list_link *next, *prev; // NULL in a member that is on no list
};

static inline void list_init(struct list_link *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list_link *head)
{
	return head->next == head;
}

// Is the member on a list?
static inline bool list_linked(const struct list_link *l)
{
	return l->next != NULL;
}

// To the end. The member is on no list yet.
static inline void list_append(struct list_link *head, struct list_link *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

// On no list = nothing.
static inline void list_remove(struct list_link *l)
{
	if (!l->next)
		return;
	l->prev->next = l->next;
	l->next->prev = l->prev;
	l->next = l->prev = NULL;
}

// Moves all of `from` behind what `to` holds.
static inline void list_splice(struct list_link *to, struct list_link *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	from->prev->next = to;
	to->prev->next = from->next;
	to->prev = from->prev;
	list_init(from);
}
