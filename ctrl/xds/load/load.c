// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/load/load.h"

#include "lb/base/container_of.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Clusters

static void locality_free(struct xds_load_locality *l)
{
	for (struct xds_load_metric *m = l->metrics, *next; m; m = next) {
		next = m->next;
		free(m);
	}
	free(l);
}

static void cluster_free(struct xds_load_cluster *c)
{
	for (struct xds_load_locality *l = c->localities, *next; l; l = next) {
		next = l->next;
		locality_free(l);
	}
	strmap_fini(&c->by_place);
	for (struct xds_load_drop *d = c->drops, *next; d; d = next) {
		next = d->next;
		free(d);
	}
	free(c->key);
	free(c->name);
	free(c->service);
	free(c);
}

struct xds_load_cluster *xds_load_cluster_add(
	struct xds_load *load, const char *name, const char *service, uint64_t now_ns)
{
	char *key;
	if (asprintf(&key, "%zu %s %s", strlen(name), name, service) < 0)
		return NULL;
	struct strmap_link *link = strmap_find(&load->by_key, key);
	if (link) {
		free(key);
		return CONTAINER_OF(link, struct xds_load_cluster, link);
	}
	struct xds_load_cluster *c = calloc(1, sizeof(*c));
	if (!c) {
		free(key);
		return NULL;
	}
	c->key = key;
	c->name = strdup(name);
	c->service = strdup(service);
	c->since_ns = now_ns;
	c->localities_end = &c->localities;
	if (!c->name || !c->service || strmap_add(&load->by_key, &c->link, c->key)) {
		cluster_free(c);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&load->clusters, c, order);
	load->n++;
	load->n_gone++;
	return c;
}

void xds_load_cluster_remove(struct xds_load *load, struct xds_load_cluster *c)
{
	strmap_remove(&load->by_key, &c->link);
	TAILQ_REMOVE(&load->clusters, c, order);
	load->n--;
	load->n_gone -= c->n_refs == 0;
	cluster_free(c);
}

void xds_load_init(struct xds_load *load)
{
	*load = (struct xds_load){0};
	TAILQ_INIT(&load->clusters);
}

void xds_load_fini(struct xds_load *load)
{
	while (!TAILQ_EMPTY(&load->clusters))
		xds_load_cluster_remove(load, TAILQ_FIRST(&load->clusters));
	strmap_fini(&load->by_key);
}

// Counting

static bool is_at(const struct xds_load_locality *l, const struct xds_load_place *p)
{
	return l && strcmp(l->place.region, p->region) == 0 &&
	       strcmp(l->place.zone, p->zone) == 0 && strcmp(l->place.sub_zone, p->sub_zone) == 0;
}

char *xds_load_place_key(const struct xds_load_place *p)
{
	char *key;
	// Lengths, so that no other place has the same text.
	if (asprintf(&key, "%zu %zu %s%s%s", strlen(p->region), strlen(p->zone), p->region, p->zone,
		    p->sub_zone) < 0)
		return NULL;
	return key;
}

size_t xds_load_place_size(const struct xds_load_place *p)
{
	return strlen(p->region) + strlen(p->zone) + strlen(p->sub_zone) + 3;
}

struct xds_load_place xds_load_place_copy(const struct xds_load_place *p, char *at)
{
	size_t region = strlen(p->region) + 1, zone = strlen(p->zone) + 1;
	return (struct xds_load_place){.region = memcpy(at, p->region, region),
		.zone = memcpy(at + region, p->zone, zone),
		.sub_zone = strcpy(at + region + zone, p->sub_zone)};
}

// NULL = out of memory.
static struct xds_load_locality *locality_new(
	struct xds_load_cluster *c, const struct xds_load_place *p, const char *key)
{
	size_t len = strlen(key) + 1;
	struct xds_load_locality *l = calloc(1, sizeof(*l) + len + xds_load_place_size(p));
	if (!l)
		return NULL;
	memcpy(l->texts, key, len);
	l->place = xds_load_place_copy(p, l->texts + len);
	if (strmap_add(&c->by_place, &l->link, l->texts)) {
		free(l);
		return NULL;
	}
	*c->localities_end = l;
	c->localities_end = &l->next;
	return l;
}

static struct xds_load_locality *find_or_make(
	struct xds_load_cluster *c, const struct xds_load_place *p)
{
	char *key = xds_load_place_key(p);
	if (!key)
		return NULL;
	struct strmap_link *link = strmap_find(&c->by_place, key);
	struct xds_load_locality *l =
		link ? CONTAINER_OF(link, struct xds_load_locality, link) : locality_new(c, p, key);
	free(key);
	return l;
}

// NULL = out of memory.
static struct xds_load_locality *locality_of(
	struct xds_load_cluster *c, const struct xds_load_place *p)
{
	struct xds_load_locality *l = c->here;
	if (is_at(l, p))
		return l;
	l = l ? l->next : c->localities;
	if (!is_at(l, p))
		l = find_or_make(c, p);
	if (l)
		c->here = l;
	return l;
}

int xds_load_add_requests(struct xds_load_cluster *c, const struct xds_load_place *p,
	const struct xds_load_requests *r)
{
	struct xds_load_locality *l = locality_of(c, p);
	if (!l)
		return -ENOMEM;
	l->issued.unsent += r->issued;
	l->ok.unsent += r->ok;
	l->error.unsent += r->error;
	l->in_progress += r->in_progress;
	l->present = true;
	return 0;
}

int xds_load_add_drops(struct xds_load_cluster *c, const char *category, uint64_t n)
{
	struct xds_load_drop *d = c->drops;
	while (d && strcmp(d->category, category) != 0)
		d = d->next;
	if (!d) {
		size_t len = strlen(category) + 1;
		d = calloc(1, sizeof(*d) + len);
		if (!d)
			return -ENOMEM;
		memcpy(d->category, category, len);
		d->next = c->drops;
		c->drops = d;
	}
	d->n.unsent += n;
	return 0;
}

int xds_load_add_metric(struct xds_load_cluster *c, const struct xds_load_place *p,
	const char *name, uint64_t n, double total)
{
	struct xds_load_locality *l = locality_of(c, p);
	if (!l)
		return -ENOMEM;
	unsigned n_names = 0;
	struct xds_load_metric *m = l->metrics;
	while (m && strcmp(m->name, name) != 0) {
		m = m->next;
		n_names++;
	}
	if (!m) {
		if (n_names == XDS_LOAD_MAX_METRICS)
			return -ENOSPC;
		size_t len = strlen(name) + 1;
		m = calloc(1, sizeof(*m) + len);
		if (!m)
			return -ENOMEM;
		memcpy(m->name, name, len);
		m->next = l->metrics;
		l->metrics = m;
	}
	m->n.unsent += n;
	m->unsent_total += total;
	l->present = true;
	return 0;
}

void xds_load_begin_harvest(struct xds_load *load)
{
	for (struct xds_load_cluster *c = TAILQ_FIRST(&load->clusters); c;
		c = TAILQ_NEXT(c, order)) {
		for (struct xds_load_locality *l = c->localities; l; l = l->next) {
			l->in_progress = 0; // LR-06: a gauge
			l->present = false;
		}
	}
}

// Reporting

static void move_count(struct xds_load_count *n, enum xds_load_move move)
{
	switch (move) {
	case XDS_LOAD_TAKE:
		n->sending = n->unsent;
		n->unsent = 0;
		break;
	case XDS_LOAD_GIVE_BACK:
		n->unsent += n->sending;
		n->sending = 0;
		break;
	case XDS_LOAD_DONE:
		n->sending = 0;
		break;
	case XDS_LOAD_FORGET:
		n->unsent = 0;
		break;
	}
}

static void move_metric(struct xds_load_metric *m, enum xds_load_move move)
{
	move_count(&m->n, move);
	switch (move) {
	case XDS_LOAD_TAKE:
		m->sending_total = m->unsent_total;
		m->unsent_total = 0;
		break;
	case XDS_LOAD_GIVE_BACK:
		m->unsent_total += m->sending_total;
		m->sending_total = 0;
		break;
	case XDS_LOAD_DONE:
		m->sending_total = 0;
		break;
	case XDS_LOAD_FORGET:
		m->unsent_total = 0;
		break;
	}
}

void xds_load_move(struct xds_load_cluster *c, enum xds_load_move move)
{
	for (struct xds_load_locality *l = c->localities; l; l = l->next) {
		move_count(&l->issued, move);
		move_count(&l->ok, move);
		move_count(&l->error, move);
		for (struct xds_load_metric *m = l->metrics; m; m = m->next)
			move_metric(m, move);
	}
	for (struct xds_load_drop *d = c->drops; d; d = d->next)
		move_count(&d->n, move);
}

static bool count_is_told(const struct xds_load_count *n)
{
	return n->unsent == 0 && n->sending == 0;
}

static bool locality_is_told(const struct xds_load_locality *l)
{
	if (!count_is_told(&l->issued) || !count_is_told(&l->ok) || !count_is_told(&l->error))
		return false;
	for (const struct xds_load_metric *m = l->metrics; m; m = m->next)
		if (!count_is_told(&m->n))
			return false;
	return true;
}

bool xds_load_is_told(const struct xds_load_cluster *c)
{
	for (const struct xds_load_locality *l = c->localities; l; l = l->next)
		if (!locality_is_told(l))
			return false;
	for (const struct xds_load_drop *d = c->drops; d; d = d->next)
		if (!count_is_told(&d->n))
			return false;
	return true;
}

static uint64_t untold_of(const struct xds_load_count *n)
{
	return n->unsent + n->sending;
}

uint64_t xds_load_n_untold(const struct xds_load *load)
{
	uint64_t n = 0;
	for (const struct xds_load_cluster *c = TAILQ_FIRST(&load->clusters); c;
		c = TAILQ_NEXT(c, order)) {
		for (const struct xds_load_locality *l = c->localities; l; l = l->next)
			n += untold_of(&l->ok) + untold_of(&l->error);
		for (const struct xds_load_drop *d = c->drops; d; d = d->next)
			n += untold_of(&d->n);
	}
	return n;
}

bool xds_load_is_zero(const struct xds_load_cluster *c)
{
	for (const struct xds_load_locality *l = c->localities; l; l = l->next) {
		if (l->issued.sending || l->ok.sending || l->error.sending || l->in_progress)
			return false;
		for (const struct xds_load_metric *m = l->metrics; m; m = m->next)
			if (m->n.sending)
				return false;
	}
	for (const struct xds_load_drop *d = c->drops; d; d = d->next)
		if (d->n.sending)
			return false;
	return true;
}

static void tidy_metrics(struct xds_load_locality *l)
{
	for (struct xds_load_metric **at = &l->metrics; *at;) {
		struct xds_load_metric *m = *at;
		if (!count_is_told(&m->n)) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		free(m);
	}
}

void xds_load_tidy(struct xds_load_cluster *c)
{
	c->here = NULL; // the next harvest begins with the first
	for (struct xds_load_locality **at = &c->localities; *at;) {
		struct xds_load_locality *l = *at;
		tidy_metrics(l);
		if (l->present || !locality_is_told(l)) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		if (!*at)
			c->localities_end = at;
		strmap_remove(&c->by_place, &l->link);
		locality_free(l);
	}
	for (struct xds_load_drop **at = &c->drops; *at;) {
		struct xds_load_drop *d = *at;
		if (!count_is_told(&d->n)) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		free(d);
	}
}
