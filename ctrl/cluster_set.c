// SPDX-License-Identifier: Apache-2.0
#include "ctrl/cluster_set.h"

#include "ctrl/deps/depmgr.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "lb/balancer.h"
#include "lb/connectivity.h"
#include "lb/hosts.h"
#include "lb/limits.h"
#include "lb/policy.h"
#include "lb/subchannel.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct cluster_set {
	struct cluster_set_env env;
	struct cluster **sorted; // owned; by name
	struct strmap by_name; // the same ones
	uint32_t n, room;
	// Ids given back, oldest first, so that one rests as long as possible.
	uint32_t *free_ids; // ring of LB_MAX_CLUSTERS
	uint32_t free_head, n_free;
	uint32_t next_id; // never given away so far
};

struct cluster_set *cluster_set_new(const struct cluster_set_env *env)
{
	struct cluster_set *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->env = *env;
	s->free_ids = calloc(LB_MAX_CLUSTERS, sizeof(*s->free_ids));
	if (!s->free_ids) {
		free(s);
		return NULL;
	}
	return s;
}

static void put_subchannels(struct cluster_set *s, struct lb_subchannel **list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		lb_connectivity_put(s->env.connectivity, list[i]);
	free(list);
}

static void cluster_free(struct cluster_set *s, struct cluster *c)
{
	lb_balancer_free(c->balancer);
	lb_hosts_put(c->hosts);
	put_subchannels(s, c->subchannels, c->n_subchannels);
	xds_res_put(c->endpoints ? &c->endpoints->base : NULL);
	free(c->note);
	free(c->name);
	free(c);
}

void cluster_set_free(struct cluster_set *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++)
		cluster_free(s, s->sorted[i]);
	strmap_fini(&s->by_name);
	free(s->sorted);
	free(s->free_ids);
	free(s);
}

uint32_t cluster_set_count(const struct cluster_set *s)
{
	return s->n;
}

struct cluster *cluster_set_at(const struct cluster_set *s, uint32_t index)
{
	return s->sorted[index];
}

// Where the name stands, or would stand.
static uint32_t place_of(const struct cluster_set *s, const char *name, bool *ret_found)
{
	uint32_t low = 0, high = s->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(s->sorted[middle]->name, name);
		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = false;
	return low;
}

struct cluster *cluster_set_find(const struct cluster_set *s, const char *name)
{
	struct strmap_link *l = strmap_find(&s->by_name, name);
	return l ? (struct cluster *)((char *)l - offsetof(struct cluster, by_name)) : NULL;
}

static bool take_id(struct cluster_set *s, uint32_t *ret)
{
	if (s->next_id < LB_MAX_CLUSTERS) {
		*ret = s->next_id++;
		return true;
	}
	if (s->n_free == 0)
		return false;
	*ret = s->free_ids[s->free_head];
	s->free_head = (s->free_head + 1) % LB_MAX_CLUSTERS;
	s->n_free--;
	return true;
}

static void give_id_back(struct cluster_set *s, uint32_t id)
{
	s->free_ids[(s->free_head + s->n_free++) % LB_MAX_CLUSTERS] = id;
}

static bool make_room(struct cluster_set *s)
{
	if (s->n < s->room)
		return true;
	uint32_t room = s->room ? 2 * s->room : 16;
	struct cluster **list = realloc(s->sorted, room * sizeof(struct cluster *));
	if (!list)
		return false;
	s->sorted = list;
	s->room = room;
	return true;
}

static struct cluster *cluster_new(struct cluster_set *s, const char *name, uint32_t id)
{
	struct cluster *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	struct lb_balancer_env env = {s->env.connectivity, s->env.on_change, s->env.ctx};
	c->id = id;
	c->name = strdup(name);
	c->note = strdup("");
	c->balancer = lb_balancer_new(id, name, &env);
	if (!c->name || !c->note || !c->balancer) {
		cluster_free(s, c);
		return NULL;
	}
	return c;
}

struct cluster *cluster_set_obtain(struct cluster_set *s, const char *name, struct lb_err *reterr)
{
	bool found;
	uint32_t place = place_of(s, name, &found);
	if (found)
		return s->sorted[place];
	uint32_t id;
	if (!take_id(s, &id)) {
		lb_err_set(reterr, "cluster '%s': more than %d clusters", name, LB_MAX_CLUSTERS);
		return NULL;
	}
	struct cluster *c = make_room(s) ? cluster_new(s, name, id) : NULL;
	if (c && strmap_add(&s->by_name, &c->by_name, c->name)) {
		cluster_free(s, c);
		c = NULL;
	}
	if (!c) {
		give_id_back(s, id);
		lb_err_set(reterr, "cluster '%s': out of memory", name);
		return NULL;
	}
	memmove(&s->sorted[place + 1], &s->sorted[place],
		(s->n - place) * sizeof(struct cluster *));
	s->sorted[place] = c;
	s->n++;
	return c;
}

void cluster_set_drop(struct cluster_set *s, struct cluster *c)
{
	bool found;
	uint32_t place = place_of(s, c->name, &found);
	if (!found)
		return;
	strmap_remove(&s->by_name, &c->by_name);
	s->n--;
	memmove(&s->sorted[place], &s->sorted[place + 1],
		(s->n - place) * sizeof(struct cluster *));
	give_id_back(s, c->id);
	cluster_free(s, c);
}

// Configuration.

static bool is_usable(const struct res_endpoint *e)
{
	return e->health == RES_HEALTH_UNKNOWN || e->health == RES_HEALTH_HEALTHY;
}

// Usable endpoints of one priority, all localities together. list may be NULL to count.
static uint32_t collect(const struct res_priority *p, struct lb_policy_endpoint *list)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->n_localities; i++) {
		const struct res_locality *l = &p->localities[i];
		for (uint32_t j = 0; j < l->n_endpoints; j++) {
			if (!is_usable(&l->endpoints[j]))
				continue;
			if (list)
				list[n] = (struct lb_policy_endpoint){
					l->endpoints[j].addr, l->endpoints[j].weight};
			n++;
		}
	}
	return n;
}

// The first priority that has a usable endpoint serves.
static int choose_endpoints(
	const struct res_endpoints *e, struct lb_policy_endpoint **ret, uint32_t *ret_n)
{
	*ret = NULL;
	*ret_n = 0;
	for (uint32_t i = 0; e && i < e->n_priorities; i++) {
		uint32_t n = collect(&e->priorities[i], NULL);
		if (n == 0)
			continue;
		*ret = calloc(n, sizeof(**ret));
		if (!*ret)
			return -ENOMEM;
		*ret_n = collect(&e->priorities[i], *ret);
		return 0;
	}
	return 0;
}

// Those that requests may go to, in any priority: the usable ones, and those that only sessions
// may use. list may be NULL to count.
static uint32_t collect_hosts(
	const struct res_endpoints *e, uint32_t session_health, const struct res_endpoint **list)
{
	uint32_t n = 0;
	for (uint32_t i = 0; e && i < e->n_priorities; i++) {
		const struct res_priority *p = &e->priorities[i];
		for (uint32_t j = 0; j < p->n_localities; j++) {
			for (uint32_t k = 0; k < p->localities[j].n_endpoints; k++) {
				const struct res_endpoint *at = &p->localities[j].endpoints[k];
				if (!is_usable(at) && !(session_health >> at->health & 1))
					continue;
				if (list)
					list[n] = at;
				n++;
			}
		}
	}
	return n;
}

// What the cluster has of its endpoints, for one configuration.
struct holding {
	uint32_t n;
	struct lb_subchannel **subchannels; // owned; counted
	struct lb_hosts *hosts; // counted
};

static void holding_fini(struct cluster_set *s, struct holding *h)
{
	lb_hosts_put(h->hosts);
	put_subchannels(s, h->subchannels, h->n);
}

static int hold_subchannels(struct cluster_set *s, const struct res_endpoint *const *list,
	uint32_t n, struct holding *h)
{
	h->subchannels = calloc((size_t)n + 1, sizeof(struct lb_subchannel *));
	if (!h->subchannels)
		return -ENOMEM;
	for (; h->n < n; h->n++) {
		h->subchannels[h->n] = lb_connectivity_get(s->env.connectivity, &list[h->n]->addr);
		if (!h->subchannels[h->n])
			return -ENOMEM;
	}
	return 0;
}

static int make_hosts(const struct cluster *c, const struct res_endpoint *const *list,
	uint32_t session_health, struct holding *h)
{
	size_t n_addresses = 0;
	for (uint32_t i = 0; i < h->n; i++)
		n_addresses += 1 + res_endpoint_more(list[i])->n_additional;
	struct lb_host_conf *conf = calloc((size_t)h->n + 1, sizeof(*conf));
	struct ip_port *addresses = calloc(n_addresses + 1, sizeof(*addresses));
	struct ip_port *next = addresses;
	for (uint32_t i = 0; conf && addresses && i < h->n; i++) {
		const struct res_endpoint *e = list[i];
		const struct res_endpoint_more *more = res_endpoint_more(e);
		conf[i] = (struct lb_host_conf){
			.endpoint = lb_subchannel_endpoint(h->subchannels[i]),
			.addresses = next,
			.n_addresses = 1 + more->n_additional,
			.hostname = str_from(more->hostname),
			.is_session_target = session_health >> e->health & 1,
		};
		*next++ = e->addr;
		for (uint32_t j = 0; j < more->n_additional; j++)
			*next++ = more->additional[j];
	}
	if (conf && addresses)
		h->hosts = lb_hosts_new(conf, h->n, c->hosts);
	free(conf);
	free(addresses);
	return h->hosts ? 0 : -ENOMEM;
}

static int hold(struct cluster_set *s, const struct cluster *c, const struct res_endpoints *e,
	uint32_t session_health, struct holding *h)
{
	uint32_t n = collect_hosts(e, session_health, NULL);
	const struct res_endpoint **list =
		calloc((size_t)n + 1, sizeof(const struct res_endpoint *));
	if (!list)
		return -ENOMEM;
	collect_hosts(e, session_health, list);
	int err = hold_subchannels(s, list, n, h);
	if (!err)
		err = make_hosts(c, list, session_health, h);
	free(list);
	return err;
}

// What was held before is put last: endpoints that stay are never let go.
static void replace_holding(struct cluster_set *s, struct cluster *c, struct holding *h)
{
	struct holding old = {c->n_subchannels, c->subchannels, c->hosts};
	c->subchannels = h->subchannels;
	c->n_subchannels = h->n;
	c->hosts = h->hosts;
	holding_fini(s, &old);
}

static int balance(struct cluster_set *s, struct cluster *c, const struct xds_cluster_config *conf)
{
	uint32_t session_health = conf->cluster->session_health;
	bool same_hosts =
		c->hosts && conf->endpoints == c->endpoints && session_health == c->session_health;
	struct holding h = {0};
	struct lb_policy_endpoint *list = NULL;
	uint32_t n;
	int err = choose_endpoints(conf->endpoints, &list, &n);
	if (!err && !same_hosts)
		err = hold(s, c, conf->endpoints, session_health, &h);
	if (!err && !same_hosts)
		err = lb_balancer_set_hosts(c->balancer, h.hosts);
	if (!err) {
		struct lb_policy_config policy = {list, n, conf->resolution_note};
		err = lb_balancer_update(c->balancer, &policy);
	}
	free(list);
	if (err)
		holding_fini(s, &h);
	else if (!same_hosts)
		replace_holding(s, c, &h);
	return err;
}

static int fail(struct cluster_set *s, struct cluster *c, const struct xds_cluster_config *conf)
{
	int err = lb_balancer_set_hosts(c->balancer, NULL);
	if (!err)
		err = lb_balancer_fail(c->balancer, conf->error);
	if (err)
		return err;
	struct holding none = {0};
	replace_holding(s, c, &none);
	return 0;
}

int cluster_configure(struct cluster_set *s, struct cluster *c,
	const struct xds_cluster_config *conf, struct lb_err *reterr)
{
	bool failed = !conf->cluster;
	const char *note = failed ? conf->error : conf->resolution_note;
	uint32_t session_health = failed ? 0 : conf->cluster->session_health;
	if (c->configured && failed == c->failed && conf->endpoints == c->endpoints &&
		session_health == c->session_health && strcmp(note, c->note) == 0)
		return 0;
	char *copy = strdup(note);
	if (!copy || (failed ? fail(s, c, conf) : balance(s, c, conf))) {
		free(copy);
		lb_err_set(reterr, "cluster '%s': out of memory, or more than %d endpoints in all",
			c->name, LB_MAX_ENDPOINTS);
		return -ENOMEM;
	}
	if (conf->endpoints)
		xds_res_get(&conf->endpoints->base);
	if (c->endpoints)
		xds_res_put(&c->endpoints->base);
	c->endpoints = conf->endpoints;
	c->session_health = session_health;
	c->configured = true;
	c->failed = failed;
	free(c->note);
	c->note = copy;
	return 0;
}
