// SPDX-License-Identifier: Apache-2.0
// A doubly linked list through links inside its members, in order. Removes any member in constant
// time without the list's head, which no list of <sys/queue.h> with append can do. CONTAINER_OF
// leads from a link to its member.
// Thread: one owner.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// A head or a member's link. The list is a ring through its head.
struct list_link {
	struct list_link *next, *prev; // NULL if the member is on no list
};

static inline void list_init(struct list_link *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list_link *head)
{
	return head->next == head;
}

// True if the member is on a list.
static inline bool list_linked(const struct list_link *l)
{
	return l->next != NULL;
}

// The first and the last member's link; NULL if the list is empty.
static inline struct list_link *list_first(const struct list_link *head)
{
	return list_empty(head) ? NULL : head->next;
}

static inline struct list_link *list_last(const struct list_link *head)
{
	return list_empty(head) ? NULL : head->prev;
}

// The link behind a member's; NULL if the member is the last one.
static inline struct list_link *list_after(const struct list_link *head, const struct list_link *l)
{
	return l->next == head ? NULL : l->next;
}

// Appends a member that is on no list.
static inline void list_append(struct list_link *head, struct list_link *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

// Inserts a member that is on no list behind another one, or in front of all if `at` is the head.
static inline void list_insert(struct list_link *at, struct list_link *l)
{
	list_append(at->next, l);
}

// Removes a member. No effect if it is on no list.
static inline void list_remove(struct list_link *l)
{
	if (!l->next)
		return;
	l->prev->next = l->next;
	l->next->prev = l->prev;
	l->next = l->prev = NULL;
}

// Moves all members of `from` to the end of `to`.
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
