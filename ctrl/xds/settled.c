// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/settled.h"

#include <stddef.h>

void xds_settled_add(struct xds_settled_list *list, struct xds_settled *s)
{
	s->next = list->first;
	list->first = s;
}

void xds_settled_remove(struct xds_settled_list *list, struct xds_settled *s)
{
	if (list->following == s)
		list->following = s->next;
	for (struct xds_settled **at = &list->first; *at; at = &(*at)->next) {
		if (*at == s) {
			*at = s->next;
			return;
		}
	}
}

void xds_settled_run(struct xds_settled_list *list)
{
	for (struct xds_settled *s = list->first; s; s = list->following) {
		list->following = s->next;
		s->fn(s);
	}
	list->following = NULL;
}
