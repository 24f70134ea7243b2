// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/credentials.h"

#include "ctrl/base/strmap.h"
#include "ctrl/certs/certs.h"
#include "ctrl/certs/credential_maker.h"
#include "ctrl/certs/material.h"
#include "lb/base/backoff.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/rand.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define REST_NS (60 * NS_PER_SECOND)
#define AWAIT_TURNS 50
#define AWAIT_TURN_MS 5

struct entry {
	struct credentials *owner;
	struct strmap_link by_key;
	char *key; // owned
	struct lb_arena arena; // of want
	struct credential_want want;
	uint32_t id;
	uint32_t n_users; // 0 = goes when its job is done
	struct lb_credential *credential; // counted; NULL = none
	uint64_t version, since_ns;
	bool is_new; // nothing was made yet, well or not
	bool is_making; // the job is the maker's
	bool is_stale; // something changed meanwhile
	struct credential_job job;
	struct cert_material *held[4]; // counted: what the job is made of
	struct lb_err err;
	struct twheel_timer retry; // after a failure that no file's change would mend (TLS-191)
	struct backoff backoff;
};

struct credentials {
	struct credentials_conf conf;
	struct credential_maker *maker;
	struct strmap by_key;
	struct entry *entries[LB_MAX_CREDENTIALS]; // by id
	uint64_t free_ns[LB_MAX_CREDENTIALS]; // when the id may be used again
	uint32_t last_id;
	const char *refusal; // static: why the last want got no id
	uint64_t refused_ns; // when that was logged
	struct rand rand; // of backoffs
	struct cert_material *own_tickets; // counted; what there is without a file
};

static uint64_t now_ns(const struct credentials *c)
{
	return twheel_now(c->conf.wheel);
}

// Contexts.

static void serve(struct credentials *c, struct entry *e, struct lb_credential *credential)
{
	struct lb_credential *old = e->credential;
	e->credential = credential;
	e->since_ns = now_ns(c);
	c->conf.changed(c->conf.ctx, e->id, credential);
	lb_credential_put(old);
}

static void refuse(struct entry *e, const struct lb_err *err)
{
	bool is_news = strcmp(e->err.text, err->text) != 0;
	e->err = *err;
	if (is_news)
		log_warn("tls context refused", "id=%u error=%s serving_version=%" PRIu64, e->id,
			log_quote(err->text), e->credential ? e->version : 0);
}

static const struct cert_material *hold(struct entry *e, uint32_t i, struct cert_material *m)
{
	e->held[i] = m ? cert_material_get(m) : NULL;
	return m;
}

static void let_go(struct entry *e)
{
	for (uint32_t i = 0; i < sizeof(e->held) / sizeof(e->held[0]); i++) {
		cert_material_put(e->held[i]);
		e->held[i] = NULL;
	}
}

static struct str secret_of(const struct cert_material *tickets)
{
	return (struct str){tickets->ticket_secret.p, tickets->ticket_secret.len};
}

static bool judges_peers(const struct credential_want *w)
{
	return w->ca || w->system_roots;
}

static void make(struct credentials *c, struct entry *e)
{
	const struct certs *certs = c->conf.certs;
	const struct credential_want *w = &e->want;
	if (e->is_making) {
		e->is_stale = true;
		return;
	}
	twheel_cancel(c->conf.wheel, &e->retry);
	struct credential_parts *p = &e->job.parts;
	*p = (struct credential_parts){.system_roots = c->conf.system_roots};
	p->identity = hold(e, 0, w->identity ? certs_find(certs, w->identity) : NULL);
	p->ca = hold(e, 1, w->ca ? certs_find(certs, w->ca) : NULL);
	p->crls = hold(e, 2, judges_peers(w) ? certs_find_crls(certs) : NULL);
	p->awaits_crls = judges_peers(w) && certs_has_crl_directory(certs) && !p->crls;
	struct cert_material *tickets = certs_find_tickets(certs);
	p->ticket_secret = secret_of(hold(e, 3, tickets ? tickets : c->own_tickets));
	e->job.id = e->id;
	e->job.want = w;
	e->is_making = true;
	e->is_stale = false;
	credential_maker_give(c->maker, &e->job);
}

static void on_retry(struct twheel_timer *timer)
{
	struct entry *e = CONTAINER_OF(timer, struct entry, retry);
	make(e->owner, e);
}

static void plan_retry(struct credentials *c, struct entry *e, int rc)
{
	if (rc == -EAGAIN)
		twheel_arm(c->conf.wheel, &e->retry,
			now_ns(c) + backoff_next_ns(&e->backoff, &c->rand));
	else
		backoff_reset(&e->backoff);
}

// The context is its own.
static void settle(struct credentials *c, struct entry *e, int rc, struct tlshs_context *context)
{
	struct lb_credential *credential =
		context ? lb_credential_new(context, tlshs_context_put) : NULL;
	e->is_new = false;
	if (rc == 0 && !credential) {
		rc = -EAGAIN;
		lb_err_set(&e->job.err, "out of memory");
	}
	plan_retry(c, e, rc);
	if (!credential)
		refuse(e, &e->job.err);
	if (rc == -EACCES) // what was trusted before is not any more
		serve(c, e, NULL);
	if (!credential)
		return;
	e->err.text[0] = '\0';
	e->version++;
	serve(c, e, credential);
	log_info("tls context", "id=%u version=%" PRIu64 " certificate=%s ca=%s", e->id, e->version,
		log_quote(e->want.identity ? e->want.identity : ""),
		log_quote(e->want.ca ? e->want.ca : ""));
}

// Entries.

static void entry_free(struct entry *e)
{
	twheel_cancel(e->owner->conf.wheel, &e->retry);
	lb_credential_put(e->credential);
	let_go(e);
	lb_arena_fini(&e->arena);
	free(e->key);
	free(e);
}

static void forget(struct credentials *c, struct entry *e)
{
	if (e->credential)
		serve(c, e, NULL);
	strmap_remove(&c->by_key, &e->by_key);
	c->entries[e->id] = NULL;
	c->free_ns[e->id] = now_ns(c) + REST_NS;
	entry_free(e);
}

void credentials_dispatch(struct credentials *c)
{
	for (struct credential_job *j; (j = credential_maker_take(c->maker));) {
		struct entry *e = CONTAINER_OF(j, struct entry, job);
		e->is_making = false;
		let_go(e);
		settle(c, e, j->rc, j->context);
		if (!e->n_users)
			forget(c, e);
		else if (e->is_stale)
			make(c, e);
	}
}

static bool is_same(const char *a, const char *b)
{
	return a && strcmp(a, b) == 0;
}

void credentials_renew(struct credentials *c, const char *source)
{
	bool crls = strcmp(source, CERTS_CRLS) == 0, tickets = strcmp(source, CERTS_TICKETS) == 0;
	for (uint32_t id = 0; id < LB_MAX_CREDENTIALS; id++) {
		struct entry *e = c->entries[id];
		if (!e)
			continue;
		const struct credential_want *w = &e->want;
		if (is_same(w->identity, source) || is_same(w->ca, source) ||
			(crls && judges_peers(w)) || (tickets && w->role == TLSHS_SERVER))
			make(c, e);
	}
}

// The secret of tickets that is of this process.

static struct cert_material *make_tickets(void)
{
	char bytes[CERT_TICKET_SECRET];
	struct cert_material *m = NULL;
	if (getrandom(bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes))
		m = cert_material_of_tickets((struct str){bytes, sizeof(bytes)});
	explicit_bzero(bytes, sizeof(bytes));
	return m;
}

struct str credentials_own_tickets(const struct credentials *c)
{
	return certs_has_ticket_secret(c->conf.certs) ? STR("") : secret_of(c->own_tickets);
}

// Jobs under way hold the one before.
bool credentials_inherit_tickets(struct credentials *c, struct str secret)
{
	struct cert_material *m = NULL;
	if (!certs_has_ticket_secret(c->conf.certs))
		m = cert_material_of_tickets(secret);
	if (!m)
		return false;
	cert_material_put(c->own_tickets);
	c->own_tickets = m;
	credentials_renew(c, CERTS_TICKETS);
	return true;
}

static bool is_making(const struct credentials *c, bool only_servers)
{
	bool is = false;
	for (uint32_t id = 0; !is && id < LB_MAX_CREDENTIALS; id++) {
		const struct entry *e = c->entries[id];
		is = e && e->is_making && (!only_servers || e->want.role == TLSHS_SERVER);
	}
	return is;
}

bool credentials_are_being_made(const struct credentials *c)
{
	return is_making(c, false);
}

void credentials_await(struct credentials *c)
{
	struct pollfd p = {.fd = credentials_fd(c), .events = POLLIN};
	for (int i = 0; i < AWAIT_TURNS && is_making(c, true); i++) {
		(void)poll(&p, 1, AWAIT_TURN_MS);
		credentials_dispatch(c);
	}
}

// 0 is plain text, and at the last one nothing ever stands.
static uint32_t free_id(struct credentials *c)
{
	for (uint32_t i = 0; i < LB_NO_CREDENTIAL - 1; i++) {
		uint32_t id = c->last_id = c->last_id % (LB_NO_CREDENTIAL - 1) + 1;
		if (!c->entries[id] && c->free_ns[id] <= now_ns(c))
			return id;
	}
	return LB_NO_CREDENTIAL;
}

// Takes the key. NULL = out of memory.
static struct entry *entry_new(
	struct credentials *c, uint32_t id, char *key, const struct credential_want *want)
{
	struct entry *e = calloc(1, sizeof(*e));
	if (!e)
		goto err;
	e->owner = c;
	e->retry.fire = on_retry;
	e->id = id;
	e->is_new = true;
	if (credential_want_copy(&e->arena, want, &e->want) ||
		strmap_add(&c->by_key, &e->by_key, key))
		goto err;
	e->key = key;
	return c->entries[id] = e;
err:
	free(key);
	if (e)
		entry_free(e);
	return NULL;
}

// Whoever wanted it tries again each second.
static uint32_t refuse_want(struct credentials *c, const char *why)
{
	bool is_news = strcmp(c->refusal, why) != 0 || now_ns(c) >= c->refused_ns + REST_NS;
	c->refusal = why;
	if (!is_news)
		return LB_NO_CREDENTIAL;
	c->refused_ns = now_ns(c);
	log_error("tls context refused", "error=%s most=%d", log_quote(why), LB_NO_CREDENTIAL - 1);
	return LB_NO_CREDENTIAL;
}

uint32_t credentials_take(struct credentials *c, const struct credential_want *want)
{
	char *key = credential_want_key(want);
	if (!key)
		return refuse_want(c, "out of memory");
	struct strmap_link *l = strmap_find(&c->by_key, key);
	struct entry *e = l ? CONTAINER_OF(l, struct entry, by_key) : NULL;
	if (e) {
		free(key);
		e->n_users++;
		return e->id;
	}
	uint32_t id = free_id(c);
	if (id == LB_NO_CREDENTIAL) {
		free(key);
		return refuse_want(c, "too many tls contexts");
	}
	e = entry_new(c, id, key, want);
	if (!e)
		return refuse_want(c, "out of memory");
	e->n_users = 1;
	make(c, e);
	return e->id;
}

static struct entry *find(const struct credentials *c, uint32_t id)
{
	return id < LB_MAX_CREDENTIALS ? c->entries[id] : NULL;
}

void credentials_give(struct credentials *c, uint32_t id)
{
	struct entry *e = find(c, id);
	if (!e)
		return;
	CHECK(e->n_users > 0);
	if (--e->n_users == 0 && !e->is_making)
		forget(c, e);
}

struct lb_credential *credentials_at(const struct credentials *c, uint32_t id)
{
	const struct entry *e = find(c, id);
	return e ? e->credential : NULL;
}

bool credentials_is_new(const struct credentials *c, uint32_t id)
{
	const struct entry *e = find(c, id);
	return e && e->is_new;
}

const char *credentials_error(const struct credentials *c, uint32_t id)
{
	const struct entry *e = find(c, id);
	if (e)
		return e->err.text;
	return id == LB_PLAIN_TEXT ? "" : c->refusal;
}

int credentials_fd(const struct credentials *c)
{
	return credential_maker_fd(c->maker);
}

void credentials_each(
	const struct credentials *c, void (*fn)(void *, const struct credentials_info *), void *ctx)
{
	for (uint32_t id = 0; id < LB_MAX_CREDENTIALS; id++) {
		const struct entry *e = c->entries[id];
		if (!e)
			continue;
		const struct credentials_info info = {
			.want = &e->want,
			.error = e->err.text,
			.version = e->version,
			.since_ns = e->since_ns,
			.id = id,
			.n_users = e->n_users,
			.is_served = e->credential,
		};
		fn(ctx, &info);
	}
}

const char *const credentials_state_names[CREDENTIALS_N_STATES] = {
	"refusing", "served", "outdated"};

enum credentials_state credentials_state(const struct credentials_info *i)
{
	if (!i->is_served)
		return CREDENTIALS_REFUSING;
	return *i->error ? CREDENTIALS_OUTDATED : CREDENTIALS_SERVED;
}

struct credentials *credentials_new(const struct credentials_conf *conf)
{
	struct credentials *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->conf = *conf;
	c->refusal = "";
	c->maker = credential_maker_new();
	uint64_t seed;
	ssize_t n_seed = getrandom(&seed, sizeof(seed), 0);
	c->own_tickets = make_tickets();
	if (c->maker && c->own_tickets && n_seed == (ssize_t)sizeof(seed)) {
		rand_init(&c->rand, seed);
		return c;
	}
	credentials_free(c);
	return NULL;
}

void credentials_free(struct credentials *c)
{
	if (!c)
		return;
	if (c->maker)
		credential_maker_stop(c->maker);
	for (struct credential_job *j; c->maker && (j = credential_maker_take(c->maker));)
		tlshs_context_put(j->context);
	for (uint32_t id = 0; id < LB_MAX_CREDENTIALS; id++)
		if (c->entries[id])
			entry_free(c->entries[id]);
	strmap_fini(&c->by_key);
	credential_maker_free(c->maker);
	cert_material_put(c->own_tickets);
	free(c);
}
