// SPDX-License-Identifier: Apache-2.0
#include "ctrl/deps/dns_source.h"

#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "lb/base/container_of.h"
#include "lb/route/domains.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool contains(const struct dns_source *s, const struct ip_port *addr)
{
	for (uint32_t i = 0; i < s->n_addresses; i++)
		if (ip_port_eq(&s->addresses[i], addr))
			return true;
	return false;
}

// In whatever order (PF-08). No address is twice in an answer.
static bool same_addresses(const struct dns_source *s, const struct dns_answer *a)
{
	if (s->n_addresses != a->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (!contains(s, &a->addresses[i]))
			return false;
	return true;
}

// 0 or -ENOMEM.
static int keep_addresses(struct dns_source *s, const struct dns_answer *a)
{
	struct ip_port *list = NULL;
	struct res_endpoints *endpoints = NULL;
	if (same_addresses(s, a))
		return 0;
	if (a->n) {
		const char *host = s->cluster->dns.host;
		bool v6 = strchr(host, ':'); // RFC 3986 3.2.2
		char name[320];
		snprintf(name, sizeof(name), "%s%.256s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "",
			(unsigned)s->cluster->dns.port);
		// What auto_host_rewrite writes: as A81 has it, unless the resource says better.
		const char *hostname = s->cluster->dns.hostname;
		if (!*hostname && lb_authority_is_valid(str_from(name)))
			hostname = name;
		endpoints = res_endpoints_of_addresses(name, a->addresses, a->n, hostname);
		list = malloc(a->n * sizeof(*list));
		if (!endpoints || !list) {
			if (endpoints)
				xds_res_put(&endpoints->base);
			free(list);
			return -ENOMEM;
		}
		memcpy(list, a->addresses, a->n * sizeof(*list));
	}
	if (s->endpoints)
		xds_res_put(&s->endpoints->base);
	free(s->addresses);
	s->endpoints = endpoints;
	s->addresses = list;
	s->n_addresses = a->n;
	return 0;
}

static int keep(struct dns_source *s, const struct dns_answer *a)
{
	char *error = *a->error ? strdup(a->error) : NULL;
	if ((*a->error && !error) || keep_addresses(s, a)) {
		free(error);
		return -ENOMEM;
	}
	free(s->error);
	s->error = error;
	return 0;
}

static void on_answer(struct dns_watch *w, const struct dns_answer *a)
{
	struct dns_source *s =
		CONTAINER_OF(w, struct dns_source, watch); // watch is the first member
	const struct res_endpoints *before = s->endpoints;
	s->out_of_memory = keep(s, a);
	s->moved = s->out_of_memory || s->endpoints != before;
	s->first = !s->out_of_memory && !s->answered;
	s->answered |= s->first;
	if (s->on_news)
		s->on_news(s);
}

static bool same_place(const struct res_cluster *a, const struct res_cluster *b)
{
	return a->dns.port == b->dns.port && strcmp(a->dns.host, b->dns.host) == 0 &&
	       strcmp(a->dns.hostname, b->dns.hostname) == 0;
}

bool dns_source_fits(const struct dns_source *s, const struct res_cluster *c)
{
	return same_place(s->cluster, c);
}

// An answer that is the same as before then keeps the same object. 0 or -ENOMEM.
static int inherit(struct dns_source *s, const struct dns_source *old)
{
	if (!old->endpoints)
		return 0;
	s->addresses = malloc(old->n_addresses * sizeof(*s->addresses));
	if (!s->addresses)
		return -ENOMEM;
	memcpy(s->addresses, old->addresses, old->n_addresses * sizeof(*s->addresses));
	s->n_addresses = old->n_addresses;
	s->endpoints = res_endpoints_from(xds_res_get(&old->endpoints->base));
	return 0;
}

struct dns_source *dns_source_new(struct dns_resolver *resolver, struct res_cluster *c,
	const struct dns_source *old, void (*on_news)(struct dns_source *), void *ctx)
{
	struct dns_source *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct dns_source){
		.watch.on_answer = on_answer,
		.resolver = resolver,
		.cluster = res_cluster_from(xds_res_get(&c->base)),
		.ctx = ctx,
	};
	if (old && dns_source_fits(old, c) && inherit(s, old)) {
		dns_source_free(s);
		return NULL;
	}
	if (resolver->ops->watch(resolver, c->dns.host, c->dns.port, &s->watch) ||
		s->out_of_memory) {
		dns_source_free(s);
		return NULL;
	}
	s->on_news = on_news;
	return s;
}

void dns_source_free(struct dns_source *s)
{
	if (!s)
		return;
	s->resolver->ops->cancel(s->resolver, &s->watch);
	if (s->endpoints)
		xds_res_put(&s->endpoints->base);
	xds_res_put(&s->cluster->base);
	free(s->addresses);
	free(s->error);
	free(s);
}

void dns_source_refresh(struct dns_source *s)
{
	s->resolver->ops->refresh(s->resolver, &s->watch);
}
