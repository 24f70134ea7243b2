// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/security.h"

#include "lb/base/check.h"
#include "lb/pick/credential.h"

#include <stdlib.h>

struct lb_security *lb_security_new_as(const struct lb_security_conf *conf)
{
	static const struct ip_port none;
	struct str name = conf->server_name, tlvs = conf->header.tlvs;
	struct lb_security *s = malloc(sizeof(*s) + name.len + 1 + tlvs.len);
	if (!s)
		return NULL;
	*s = (struct lb_security){.n_refs = 1,
		.credential = conf->credential,
		.proxy = conf->proxy ? *conf->proxy : none,
		.header = conf->header};
	DCHECK(s->credential != LB_PLAIN_TEXT || s->proxy.port || s->header.version);
	if (name.len)
		memcpy(s->server_name, name.p, name.len);
	s->server_name[name.len] = '\0';
	s->header.tlvs.p = s->server_name + name.len + 1;
	if (tlvs.len)
		memcpy(s->server_name + name.len + 1, tlvs.p, tlvs.len);
	return s;
}

struct lb_security *lb_security_new(uint32_t credential, struct str server_name)
{
	const struct lb_security_conf conf = {.credential = credential, .server_name = server_name};
	return lb_security_new_as(&conf);
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

bool lb_security_is(const struct lb_security *s, const struct lb_security_conf *conf)
{
	const struct ip_port *proxy = lb_security_proxy(s);
	return s->credential == conf->credential && !proxy == !conf->proxy &&
	       (!proxy || ip_port_eq(proxy, conf->proxy)) &&
	       str_eq(str_from(s->server_name), conf->server_name) &&
	       s->header.version == conf->header.version &&
	       str_eq(s->header.tlvs, conf->header.tlvs) &&
	       tlv_types_eq(&s->header.passed, &conf->header.passed);
}

bool lb_security_eq(const struct lb_security *a, const struct lb_security *b)
{
	if (a == b)
		return true;
	if (!a || !b)
		return false;
	const struct lb_security_conf conf = {.credential = b->credential,
		.server_name = str_from(b->server_name),
		.proxy = lb_security_proxy(b),
		.header = b->header};
	return lb_security_is(a, &conf);
}
