// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/certs.h"

#include "ctrl/certs/material.h"
#include "ctrl/certs/reader.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	struct certs *owner;
	struct twheel_timer timer; // the next reading at the interval
	struct cert_material *material; // counted; NULL = none was good yet
	uint64_t version, since_ns, failed_ns;
	uint64_t n_changed, n_unchanged, n_failed;
	bool is_expected; // another process has some
	bool told_late, told_early; // of this version: it has expired, it is not valid yet
	struct lb_err err;
};

struct certs {
	struct certs_conf conf;
	struct cert_source *sources; // [n of max], as entries
	struct entry *entries;
	uint32_t n, max;
	struct cert_reader *reader;
};

static uint32_t index_of(const struct entry *e)
{
	return (uint32_t)(e - e->owner->entries);
}

static const struct cert_source *source_of(const struct entry *e)
{
	return &e->owner->sources[index_of(e)];
}

// The first of ours that ends; without ours, of those whom we trust.
static const struct cert_info *first_to_end(const struct cert_material *m)
{
	return cert_list_first_to_end(m->chain.n ? &m->chain : &m->cas);
}

static int64_t wall_s(const struct certs *c)
{
	return (int64_t)(c->conf.wall_ns() / NS_PER_SECOND);
}

// Once, when it is seen: that it is not valid now, which is no reason to have nothing.
static void tell_dates(struct entry *e)
{
	int64_t now_s = wall_s(e->owner);
	const struct cert_info *i = e->material ? first_to_end(e->material) : NULL;
	bool late = i && i->not_after_s < now_s;
	bool early = i && i->not_before_s > now_s;
	if (late == e->told_late && early == e->told_early)
		return;
	if (late)
		log_warn("certificate expired", "provider=%s subject=%s seconds_ago=%" PRId64,
			log_quote(source_of(e)->name), log_quote(i->subject),
			now_s - i->not_after_s);
	else if (early)
		log_warn("certificate not valid yet", "provider=%s subject=%s in_seconds=%" PRId64,
			log_quote(source_of(e)->name), log_quote(i->subject),
			i->not_before_s - now_s);
	e->told_late = late;
	e->told_early = early;
}

static void refuse(struct entry *e, const struct lb_err *err)
{
	bool is_news = strcmp(e->err.text, err->text) != 0;
	e->err = *err;
	e->failed_ns = twheel_now(e->owner->conf.wheel);
	e->n_failed++;
	if (is_news)
		log_warn("certificates refused", "provider=%s error=%s serving_version=%" PRIu64,
			log_quote(source_of(e)->name), log_quote(err->text), e->version);
}

static void install(struct entry *e, struct cert_material *m)
{
	cert_material_put(e->material);
	e->material = m;
	e->version++;
	e->n_changed++;
	e->since_ns = twheel_now(e->owner->conf.wheel);
	e->told_late = e->told_early = false;
	const struct cert_info *i = first_to_end(m);
	log_info("certificates", "provider=%s version=%" PRIu64 " subject=%s crls=%u",
		log_quote(source_of(e)->name), e->version, log_quote(i ? i->subject : ""),
		m->crls.n);
	if (m->chain.n && !m->chain.list[0].may_sign) // TLS-254
		log_warn("certificate may not sign", "provider=%s subject=%s",
			log_quote(source_of(e)->name), log_quote(m->chain.list[0].subject));
	if (e->owner->conf.changed)
		e->owner->conf.changed(e->owner->conf.ctx, source_of(e)->name);
}

// Takes the material; NULL = it was bad.
static void settle(struct entry *e, struct cert_material *m, struct lb_err *err)
{
	// Of CRLs that are bad there is nothing earlier that could stand in for them.
	if (m && m->crls.n_bad && !e->material) {
		cert_material_put(m);
		m = NULL;
	}
	if (m && *err->text && e->material && cert_crls_keep(&m->crls, &e->material->crls)) {
		cert_material_put(m);
		m = NULL;
		lb_err_set(err, "out of memory");
	}
	if (*err->text)
		refuse(e, err);
	else
		e->err.text[0] = '\0';
	if (m && e->material && cert_material_eq(m, e->material)) {
		e->n_unchanged++;
		cert_material_put(m);
	} else if (m) {
		install(e, m);
	}
	tell_dates(e);
}

static void on_interval(struct twheel_timer *timer)
{
	struct entry *e = CONTAINER_OF(timer, struct entry, timer);
	struct twheel *wheel = e->owner->conf.wheel;
	uint64_t now = twheel_now(wheel), wait = source_of(e)->refresh_ns;
	cert_reader_ask(e->owner->reader, index_of(e));
	if (wait < UINT64_MAX - now)
		twheel_arm(wheel, timer, now + wait);
}

void certs_dispatch(struct certs *c)
{
	for (struct cert_reading *f = cert_reader_take(c->reader), *next; f; f = next) {
		next = f->next;
		settle(&c->entries[f->source], f->material, &f->err);
		free(f);
	}
}

int certs_fd(const struct certs *c)
{
	return cert_reader_fd(c->reader);
}

// Birth

static struct cert_source provider_source(const struct xds_cert_provider_conf *p)
{
	return (struct cert_source){
		.name = p->name, .files = &p->files, .refresh_ns = p->files.refresh_ns};
}

static struct cert_source crl_source(const char *directory, uint64_t refresh_ns)
{
	return (struct cert_source){
		.name = CERTS_CRLS, .crl_directory = directory, .refresh_ns = refresh_ns};
}

static struct cert_source ticket_source(const char *path, uint64_t refresh_ns)
{
	return (struct cert_source){
		.name = CERTS_TICKETS, .ticket_secret = path, .refresh_ns = refresh_ns};
}

static void read_first(struct certs *c, uint32_t i)
{
	struct entry *e = &c->entries[i];
	e->owner = c;
	struct cert_material *m = NULL;
	struct lb_err err = {""};
	struct twheel *wheel = e->owner->conf.wheel;
	if (cert_material_load(source_of(e), &m, &err) == -ENOMEM)
		lb_err_set(&err, "out of memory");
	settle(e, m, &err);
	e->timer.fire = on_interval;
	uint64_t now = twheel_now(wheel), wait = source_of(e)->refresh_ns;
	if (wait < UINT64_MAX - now)
		twheel_arm(wheel, &e->timer, now + wait);
}

struct certs *certs_new(const struct certs_conf *conf)
{
	const struct xds_bootstrap *b = conf->bootstrap;
	struct certs *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->conf = *conf;
	c->max = b->n_cert_providers + XDS_MORE_PROVIDERS + 2;
	c->sources = calloc(c->max, sizeof(*c->sources));
	c->entries = calloc(c->max, sizeof(*c->entries));
	if (!c->sources || !c->entries)
		goto err;
	for (uint32_t i = 0; i < b->n_cert_providers; i++)
		c->sources[c->n++] = provider_source(&b->cert_providers[i]);
	if (conf->crl_directory)
		c->sources[c->n++] = crl_source(conf->crl_directory, conf->crl_refresh_ns);
	if (conf->ticket_secret)
		c->sources[c->n++] = ticket_source(conf->ticket_secret, conf->crl_refresh_ns);
	c->reader = cert_reader_new(c->sources, c->n, c->max);
	if (!c->reader)
		goto err;
	for (uint32_t i = 0; i < c->n; i++)
		read_first(c, i);
	return c;
err:
	certs_free(c);
	return NULL;
}

void certs_add(struct certs *c, const struct xds_cert_provider_conf *p)
{
	CHECK(c->n < c->max);
	c->sources[c->n++] = provider_source(p);
	read_first(c, c->n - 1);
	cert_reader_add(c->reader); // which sees what changes from now on
}

void certs_free(struct certs *c)
{
	if (!c)
		return;
	cert_reader_free(c->reader);
	for (uint32_t i = 0; c->entries && i < c->n; i++) {
		if (c->entries[i].owner)
			twheel_cancel(c->conf.wheel, &c->entries[i].timer);
		cert_material_put(c->entries[i].material);
	}
	free(c->entries);
	free(c->sources);
	free(c);
}

// Views

struct cert_material *certs_find(const struct certs *c, const char *provider)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->sources[i].files && strcmp(c->sources[i].name, provider) == 0)
			return c->entries[i].material;
	return NULL;
}

struct cert_material *certs_find_crls(const struct certs *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->sources[i].crl_directory)
			return c->entries[i].material;
	return NULL;
}

bool certs_has_crl_directory(const struct certs *c)
{
	return c->conf.crl_directory;
}

struct cert_material *certs_find_tickets(const struct certs *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->sources[i].ticket_secret)
			return c->entries[i].material;
	return NULL;
}

bool certs_has_ticket_secret(const struct certs *c)
{
	return c->conf.ticket_secret;
}

void certs_expect(struct certs *c, const char *source)
{
	for (uint32_t i = 0; i < c->n; i++)
		c->entries[i].is_expected |= strcmp(c->sources[i].name, source) == 0;
}

bool certs_lacks(const struct certs *c, struct lb_err *ret)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct entry *e = &c->entries[i];
		const struct cert_source *s = &c->sources[i];
		if (!e->is_expected || e->material || s->ticket_secret)
			continue;
		if (s->files)
			lb_err_set(ret, "certificate provider \"%.64s\": %s", s->name, e->err.text);
		else
			lb_err_set(ret, "%s: %s", s->name, e->err.text);
		return true;
	}
	return false;
}

void certs_each(const struct certs *c, void (*fn)(void *, const struct certs_info *), void *fn_ctx)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct entry *e = &c->entries[i];
		struct certs_info info = {
			.source = &c->sources[i],
			.material = e->material,
			.version = e->version,
			.since_ns = e->since_ns,
			.error = e->err.text,
			.failed_ns = e->failed_ns,
			.n_changed = e->n_changed,
			.n_unchanged = e->n_unchanged,
			.n_failed = e->n_failed,
			.watched = cert_reader_watches(c->reader),
		};
		fn(fn_ctx, &info);
	}
}

static int check_source(const struct cert_source *s, struct lb_err *err)
{
	struct cert_material *m = NULL;
	int rc = cert_material_load(s, &m, err);
	cert_material_put(m);
	return !rc && *err->text ? -EINVAL : rc;
}

// The same of all servers that are reached by TLS with files (A65).
static int check_servers(const struct xds_server_conf *list, uint32_t n, struct lb_err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < n; i++) {
		struct cert_source s = {.name = list[i].uri, .files = &list[i].files};
		rc = list[i].creds == XDS_CREDS_TLS ? check_source(&s, err) : 0;
		if (rc == -EINVAL)
			lb_err_within(err, "xDS server \"%.128s\"", s.name);
	}
	return rc;
}

int certs_check_provider(const struct xds_cert_provider_conf *p, struct lb_err *err)
{
	struct cert_source s = provider_source(p);
	int rc = check_source(&s, err);
	if (rc == -EINVAL)
		lb_err_within(err, "certificate provider \"%.64s\"", s.name);
	return rc;
}

static int check_providers(const struct xds_bootstrap *b, struct lb_err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < b->n_cert_providers; i++)
		rc = certs_check_provider(&b->cert_providers[i], err);
	return rc;
}

int certs_check_servers(const struct xds_bootstrap *b, struct lb_err *err)
{
	int rc = check_servers(b->servers, b->n_servers, err);
	for (uint32_t i = 0; !rc && i < b->n_authorities; i++)
		rc = check_servers(b->authorities[i].servers, b->authorities[i].n_servers, err);
	return rc;
}

int certs_check(const struct xds_bootstrap *b, const char *crl_directory, const char *ticket_secret,
	struct lb_err *err)
{
	int rc = certs_check_servers(b, err);
	if (!rc)
		rc = check_providers(b, err);
	if (!rc && crl_directory) {
		struct cert_source s = crl_source(crl_directory, 0);
		rc = check_source(&s, err);
		if (rc == -EINVAL)
			lb_err_within(err, "%s", CERTS_CRLS);
	}
	if (rc || !ticket_secret)
		return rc;
	struct cert_source s = ticket_source(ticket_secret, 0);
	return check_source(&s, err);
}
