// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/credential.h"

#include "lb/base/check.h"

#include <errno.h>
#include <stdlib.h>

struct lb_credential *lb_credential_new(
	struct tlshs_context *taken, void (*put)(struct tlshs_context *))
{
	DCHECK(taken);
	struct lb_credential *c = malloc(sizeof(*c));
	if (!c) {
		put(taken);
		return NULL;
	}
	*c = (struct lb_credential){.tls = taken, .put = put, .n_refs = 1};
	return c;
}

struct lb_credential *lb_credential_get(struct lb_credential *c)
{
	c->n_refs++;
	return c;
}

void lb_credential_put(struct lb_credential *c)
{
	if (!c)
		return;
	CHECK(c->n_refs > 0);
	if (--c->n_refs)
		return;
	c->put(c->tls);
	free(c);
}

struct lb_credentials *lb_credentials_get(struct lb_credentials *c)
{
	if (c)
		c->n_refs++;
	return c;
}

void lb_credentials_put(struct lb_credentials *c)
{
	if (!c)
		return;
	CHECK(c->n_refs > 0);
	if (--c->n_refs)
		return;
	for (uint32_t i = 0; i < c->n; i++)
		lb_credential_put(c->list[i]);
	free(c);
}

// With room for this id. NULL = out of memory.
static struct lb_credentials *copy(const struct lb_credentials *from, uint32_t id)
{
	uint32_t n = from && from->n > id ? from->n : id + 1;
	struct lb_credentials *c = calloc(1, sizeof(*c) + n * sizeof(c->list[0]));
	if (!c)
		return NULL;
	c->n_refs = 1;
	c->n = n;
	for (uint32_t i = 0; from && i < from->n; i++)
		c->list[i] = from->list[i] ? lb_credential_get(from->list[i]) : NULL;
	return c;
}

int lb_credentials_set(struct lb_credentials **place, uint32_t id, struct lb_credential *credential)
{
	CHECK(id != LB_PLAIN_TEXT && id < LB_MAX_CREDENTIALS);
	struct lb_credentials *c = *place;
	if (lb_credentials_at(c, id) == credential)
		return 0;
	if (!c || c->n_refs > 1 || id >= c->n) {
		c = copy(*place, id);
		if (!c)
			return -ENOMEM;
		lb_credentials_put(*place);
		*place = c;
	}
	struct lb_credential *old = c->list[id];
	c->list[id] = credential ? lb_credential_get(credential) : NULL;
	lb_credential_put(old);
	return 0;
}
