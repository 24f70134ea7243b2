// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_frontends.h"

#include "ctrl/base/strmap.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_address.h"
#include "ctrl/conf/config_numbers.h"
#include "ctrl/conf/config_vips.h"
#include "lb/base/container_of.h"
#include "lb/pick/limits.h"
#include "lb/vips.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CHAIN_PLACES 1024

// Frontends by name or by address and port: there may be thousands.
struct taken {
	struct strmap map;
	struct taken_link {
		struct strmap_link link;
		char key[IP_PORT_TEXT_MAX]; // of the address; names are their own
	} * links; // [n_frontends]
};

// Index of the one that has it already; -1 = none had, -2 = out of memory.
static int take(struct taken *t, unsigned i, const char *key)
{
	struct strmap_link *l = strmap_find(&t->map, key);
	if (l)
		return (int)(CONTAINER_OF(l, struct taken_link, link) - t->links);
	return strmap_add(&t->map, &t->links[i].link, key) ? -2 : -1;
}

static int check_taken(struct taken *names, struct taken *places, struct config_frontend *f,
	unsigned i, struct lb_err *reterr)
{
	char *place = places->links[i].key;
	struct ip_port at = {f->address_ip, f->port};
	ip_port_print(&at, place);
	int by_name = take(names, i, f->name);
	if (by_name >= 0)
		return lb_err_set(reterr, "name: '%s' is frontends[%d] already", f->name, by_name);
	int by_place = take(places, i, place);
	if (by_place >= 0)
		return lb_err_set(reterr, "port: %s:%u belongs to frontends[%d] already",
			f->address, f->port, by_place);
	return by_name == -1 && by_place == -1 ? 0 : lb_err_set(reterr, "out of memory");
}

// "a.example" or "*.example": what a name in SNI can be (RFC 6066 3), which is no address.
static bool is_server_name(const char *text)
{
	const char *name = strncmp(text, "*.", 2) == 0 ? text + 2 : text;
	size_t len = strlen(name);
	struct ip_addr ip;
	return len && name[0] != '.' && name[len - 1] != '.' && !strstr(name, "..") &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") ==
	               len &&
	       !ip_parse(name, &ip);
}

static int check_frontend_tls(const struct config_frontend_tls *t, struct lb_err *reterr)
{
	for (unsigned i = 0; t && i < t->n_sni; i++)
		if (!is_server_name(t->sni[i]))
			return lb_err_set(reterr,
				"tls.sni[%u]: '%s' is not a host name, like a.example or *.example",
				i, t->sni[i]);
	if (t && t->require_client_certificate && !t->ca)
		return lb_err_set(reterr,
			"tls.require_client_certificate: needs a ca, to judge certificates by");
	return 0;
}

static int check_proxy_protocol(struct config_proxy_protocol *p, struct lb_err *reterr)
{
	if (p->v1 && p->v2 && !*p->v1 && !*p->v2)
		return lb_err_set(reterr, "v1, v2: one of them must be true");
	p->prefixes = calloc(p->n_allow, sizeof(*p->prefixes));
	if (!p->prefixes)
		return lb_err_set(reterr, "out of memory");
	for (unsigned i = 0; i < p->n_allow; i++)
		if (config_prefix_parse(p->allow[i], &p->prefixes[i], reterr))
			return lb_err_within(reterr, "allow[%u]", i);
	return 0;
}

// Clients of the Listeners that a wildcard brings are a frontend's as well, whose name is ours.
static int add_by_listeners(struct config *c, struct lb_err *reterr)
{
	if (!c->n_frontends && c->listeners != CONFIG_LISTENERS_WILDCARD)
		return lb_err_set(reterr, "frontends: one is needed, or `listeners: wildcard`");
	if (c->listeners != CONFIG_LISTENERS_WILDCARD)
		return 0;
	if (!c->n_vips)
		return lb_err_set(reterr, "listeners: wildcard needs vips");
	if (c->n_frontends + 1 >= LB_MAX_FRONTENDS)
		return lb_err_set(reterr, "listeners: wildcard has no room beside %u frontends",
			c->n_frontends);
	struct config_frontend *list = realloc(c->frontends, (c->n_frontends + 1) * sizeof(*list));
	if (!list)
		return lb_err_set(reterr, "out of memory");
	c->frontends = list;
	struct config_frontend *f = &list[c->n_frontends++];
	*f = (struct config_frontend){
		.name = strdup("listeners"), .address = strdup("*"), .by_listeners = true};
	return f->name && f->address ? 0 : lb_err_set(reterr, "out of memory");
}

static int check_frontend(const struct config *c, unsigned i, struct lb_err *reterr)
{
	struct config_frontend *f = &c->frontends[i];
	if (f->by_listeners)
		return 0;
	if (!ip_parse(f->address, &f->address_ip))
		return lb_err_set(reterr, "address: '%s' is not an IP address", f->address);
	if (config_port_of(c, &f->address_ip) == c->n_ports && !config_vip_of(c, &f->address_ip))
		return lb_err_set(reterr,
			"address: %s is not an address of any port, and in no prefix of vips",
			f->address);
	if (f->target && f->listener)
		return lb_err_set(reterr, "listener: not with target");
	if (!f->target && f->authority)
		return lb_err_set(reterr, "authority: not without target");
	if (!f->target && f->tls)
		return lb_err_set(reterr, "tls: not without target, as the Listener says it");
	if (check_frontend_tls(f->tls, reterr))
		return -EINVAL;
	if (f->proxy_protocol && check_proxy_protocol(f->proxy_protocol, reterr))
		return lb_err_within(reterr, "proxy_protocol");
	uint32_t port = f->port;
	return config_number_check(CONFIG_PORT, &port, &port, reterr);
}

// At the addresses of Listeners as many sockets are listened at as beside frontends may be.
static void reserve_vips(struct config *c)
{
	unsigned most = LB_MAX_FRONTENDS - c->n_frontends;
	if (config_by_listeners(c) < c->n_frontends)
		c->n_vip_places = most < LB_MAX_VIPS ? most : LB_MAX_VIPS;
}

// Chains that their clients are still leaving have places, too.
static void reserve_places(struct config *c)
{
	unsigned most = LB_MAX_FRONTENDS - c->n_frontends;
	c->n_chain_places = 0;
	for (unsigned i = 0; i < c->n_frontends; i++)
		if (config_serves(c, i) && !c->frontends[i].target)
			c->n_chain_places = most < MAX_CHAIN_PLACES ? most : MAX_CHAIN_PLACES;
}

void config_reserve_places(struct config *c)
{
	reserve_places(c);
	reserve_vips(c);
}

int config_check_frontends(struct config *c, struct lb_err *reterr)
{
	if (add_by_listeners(c, reterr))
		return -EINVAL;
	struct taken names = {.links = calloc(c->n_frontends, sizeof(*names.links))};
	struct taken places = {.links = calloc(c->n_frontends, sizeof(*places.links))};
	int rc = names.links && places.links ? 0 : lb_err_set(reterr, "out of memory");
	for (unsigned i = 0; !rc && i < c->n_frontends; i++) {
		rc = check_frontend(c, i, reterr);
		if (!rc)
			rc = check_taken(&names, &places, &c->frontends[i], i, reterr);
		if (rc)
			lb_err_within(reterr, "frontends[%u]", i);
	}
	config_reserve_places(c);
	strmap_fini(&names.map);
	strmap_fini(&places.map);
	free(names.links);
	free(places.links);
	return rc;
}
