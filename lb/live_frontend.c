// SPDX-License-Identifier: Apache-2.0
#include "lb/live_frontend.h"

#include <stdlib.h>
#include <string.h>

void lb_frontend_conf_fini(struct lb_frontend_conf *c)
{
	free((void *)(uintptr_t)c->authority);
	free((void *)(uintptr_t)c->header.allow);
}

bool lb_frontend_conf_copy(struct lb_frontend_conf *c, const struct lb_frontend_conf *from)
{
	size_t len = from->header.n_allow * sizeof(from->header.allow[0]);
	struct ip_prefix *allow = len ? malloc(len) : NULL;
	if (allow)
		memcpy(allow, from->header.allow, len);
	*c = *from;
	c->header.allow = allow;
	c->authority = from->authority ? strdup(from->authority) : NULL;
	return (allow || !len) && (c->authority || !from->authority);
}

static void drop(struct lb_live_frontend *f)
{
	lb_frontend_conf_fini(&f->conf);
	free(f);
}

struct lb_live_frontend *lb_live_frontend_new(
	const struct lb_frontend_conf *conf, uint64_t number, uint64_t owner, bool is_left)
{
	struct lb_live_frontend *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->n_refs = 1;
	f->number = number;
	f->owner = owner;
	f->is_left = is_left;
	if (lb_frontend_conf_copy(&f->conf, conf))
		return f;
	drop(f);
	return NULL;
}

struct lb_live_frontend *lb_live_frontend_get(struct lb_live_frontend *f)
{
	if (f)
		f->n_refs++;
	return f;
}

void lb_live_frontend_put(struct lb_live_frontend *f)
{
	if (f && --f->n_refs == 0)
		drop(f);
}
