// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/wire.h"

#include "ctrl/xds/bootstrap/node.h"
#include "ctrl/xds/variants/params.h"
#include "ctrl/xds/variants/variants.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_INVALID_ARGUMENT 3

char *xds_wire_text(const char *s)
{
	return (char *)(uintptr_t)s;
}

void xds_wire_clean(char *text)
{
	for (size_t i = 0, left = strlen(text); left;) {
		size_t n = proto_utf8_len((const uint8_t *)text + i, left);
		if (n == 0) {
			text[i] = '?';
			n = 1;
		}
		i += n;
		left -= n;
	}
}

int xds_wire_head_init(struct xds_wire_head *h, const struct xds_node *node, const char *error)
{
	if (node)
		h->node = node->msg;
	google__rpc__status__init(&h->error);
	h->error.code = STATUS_INVALID_ARGUMENT;
	h->error.message = NULL;
	if (!error)
		return 0;
	h->error.message = strdup(error);
	if (!h->error.message)
		return -ENOMEM;
	xds_wire_clean(h->error.message);
	return 0;
}

void xds_wire_head_fini(struct xds_wire_head *h)
{
	free(h->error.message);
}

int xds_wire_add_locator(Envoy__Service__Discovery__V3__ResourceLocator ***list, size_t *n,
	size_t room, const struct xds_sub *sub, struct lb_arena *arena)
{
	if (!*list)
		*list = lb_arena_alloc(arena, room, sizeof(**list));
	Envoy__Service__Discovery__V3__ResourceLocator *l =
		*list ? xds_params_locator(sub->params, sub->name, arena) : NULL;
	if (!l)
		return -ENOMEM;
	(*list)[(*n)++] = l;
	return 0;
}

int xds_wire_locator(
	const struct xds_params *params, const char *name, uint8_t **ret, size_t *ret_len)
{
	struct lb_arena arena = {0};
	Envoy__Service__Discovery__V3__ResourceLocator *l =
		xds_params_locator(params, name, &arena);
	int rc = l ? proto_pack(&l->base, ret, ret_len) : -ENOMEM;
	lb_arena_fini(&arena);
	return rc;
}
