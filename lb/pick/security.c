// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/security.h"

#include "lb/base/check.h"
#include "lb/pick/credential.h"

#include <stdlib.h>

static struct lb_security *make(
	const struct ip_port *proxy, uint32_t credential, struct str server_name)
{
	struct lb_security *s = malloc(sizeof(*s) + server_name.len + 1);
	if (!s)
		return NULL;
	*s = (struct lb_security){.n_refs = 1, .credential = credential, .proxy = *proxy};
	if (server_name.len)
		memcpy(s->server_name, server_name.p, server_name.len);
	s->server_name[server_name.len] = '\0';
	return s;
}

struct lb_security *lb_security_new(uint32_t credential, struct str server_name)
{
	static const struct ip_port none;
	DCHECK(credential != LB_PLAIN_TEXT);
	return make(&none, credential, server_name);
}

struct lb_security *lb_security_new_through(
	const struct ip_port *proxy, uint32_t credential, struct str server_name)
{
	DCHECK(proxy->port);
	return make(proxy, credential, server_name);
}

struct lb_security *lb_security_get(struct lb_security *s)
{
	if (s)
		s->n_refs++;
	return s;
}

void lb_security_put(struct lb_security *s)
{
	if (!s)
		return;
	CHECK(s->n_refs > 0);
	if (--s->n_refs == 0)
		free(s);
}

bool lb_security_eq(const struct lb_security *a, const struct lb_security *b)
{
	if (a == b)
		return true;
	return a && b && a->credential == b->credential && ip_port_eq(&a->proxy, &b->proxy) &&
	       strcmp(a->server_name, b->server_name) == 0;
}
