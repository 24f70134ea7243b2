// SPDX-License-Identifier: Apache-2.0
// show certs: what certificate providers and the directory of CRLs have, what is wrong with their
// files, and how handshakes ended.
#include "ctrl/assemble/workers.h"
#include "ctrl/certs/certs.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/certs/material.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "lb/base/twheel.h"
#include "tlshs/sessions.h"

#include <string.h>
#include <time.h>

struct dump {
	const struct show *show;
	int64_t now_s; // wall clock
	json_t *providers, *certificates, *crls, *contexts, *handshakes;
};

// "2026-11-30T12:00:00Z"
static void set_date(json_t *row, const char *key, int64_t s)
{
	char text[32] = "";
	time_t t = (time_t)s;
	struct tm tm;
	if (gmtime_r(&t, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	show_set_text(row, key, text);
}

static void set_age(const struct dump *d, json_t *row, const char *key, uint64_t ns)
{
	uint64_t now_ns = twheel_now(d->show->conf.wheel);
	json_object_set_new(row, key, ns ? json_real(show_seconds(now_ns - ns)) : json_null());
}

static void add_provider(struct dump *d, const struct certs_info *i)
{
	json_t *row = json_object();
	show_set_text(row, "provider", i->source->name);
	show_set_u64(row, "version", i->version);
	set_age(d, row, "since_s", i->material ? i->since_ns : 0);
	json_object_set_new(row, "watched", json_boolean(i->watched));
	show_set_u64(row, "changed", i->n_changed);
	show_set_u64(row, "unchanged", i->n_unchanged);
	show_set_u64(row, "failed", i->n_failed);
	set_age(d, row, "failed_s", i->failed_ns);
	show_set_text(row, "error", i->error);
	json_array_append_new(d->providers, row);
}

static void add_list(
	struct dump *d, const struct certs_info *i, const char *kind, const struct cert_list *list)
{
	for (uint32_t k = 0; k < list->n; k++) {
		const struct cert_info *c = &list->list[k];
		json_t *row = json_object();
		show_set_text(row, "provider", i->source->name);
		show_set_text(row, "kind", kind);
		show_set_text(row, "subject", c->subject);
		show_set_text(row, "sans", c->sans);
		show_set_text(row, "issuer", c->issuer);
		set_date(row, "not_before", c->not_before_s);
		set_date(row, "not_after", c->not_after_s);
		json_object_set_new(row, "seconds_left", json_integer(c->not_after_s - d->now_s));
		json_array_append_new(d->certificates, row);
	}
}

static void add_crls(struct dump *d, const struct cert_crls *crls)
{
	for (uint32_t k = 0; k < crls->n; k++) {
		const struct cert_crl_file *f = &crls->list[k];
		json_t *row = json_object();
		show_set_text(row, "file", f->name);
		show_set_u64(row, "crls", f->n_crls);
		show_set_text(row, "issuers", f->issuers);
		json_object_set_new(row, "next_update_s",
			f->next_update_s ? json_integer(f->next_update_s - d->now_s) : json_null());
		json_array_append_new(d->crls, row);
	}
}

static void add_source(void *ctx, const struct certs_info *i)
{
	struct dump *d = ctx;
	add_provider(d, i);
	if (!i->material)
		return;
	add_list(d, i, "own", &i->material->chain);
	add_list(d, i, i->material->has_bundles ? "spiffe" : "ca", &i->material->cas);
	add_crls(d, &i->material->crls);
}

static void add_context(void *ctx, const struct credentials_info *i)
{
	struct dump *d = ctx;
	json_t *row = json_object();
	show_set_u64(row, "id", i->id);
	show_set_text(row, "role", i->want->role == TLSHS_SERVER ? "server" : "client");
	show_set_text(row, "certificate", i->want->identity ? i->want->identity : "");
	show_set_text(row, "ca",
		i->want->ca             ? i->want->ca
		: i->want->system_roots ? "system roots"
					: "");
	show_set_u64(row, "users", i->n_users);
	show_set_text(row, "state", credentials_state_names[credentials_state(i)]);
	show_set_u64(row, "version", i->version);
	set_age(d, row, "since_s", i->since_ns);
	show_set_text(row, "error", i->error);
	json_array_append_new(d->contexts, row);
}

// How handshakes ended; what never happened is left out.
static void add_handshakes(struct dump *d, const char *with, const char *group)
{
	for (enum tlshs_outcome o = 0; o < TLSHS_N_OUTCOMES; o++) {
		const char *name = tlshs_outcome_name(o);
		uint64_t n = workers_counter(d->show->conf.workers, group, name);
		if (!n)
			continue;
		json_t *row = json_object();
		show_set_text(row, "with", with);
		show_set_text(row, "outcome", name);
		show_set_text(row, "tls_result", tlshs_result_names[tlshs_outcome_result(o)]);
		show_set_u64(row, "handshakes", n);
		json_array_append_new(d->handshakes, row);
	}
}

// Of handshakes with backends: what is kept of them to resume. No row before there was any.
static json_t *sessions(void)
{
	const struct counter_set set = tlshs_sessions_counters();
	json_t *row = json_object(), *list = json_array();
	uint64_t n = 0;
	show_set_u64(row, "sessions", tlshs_sessions_n());
	for (uint32_t i = 0; i < set.n; i++) {
		n += counter_read(&set.values[i]);
		show_set_u64(row, set.names[i], counter_read(&set.values[i]));
	}
	if (n)
		json_array_append(list, row);
	json_decref(row);
	return list;
}

static int64_t wall_s(const struct show *s)
{
	return (int64_t)(s->conf.wall_ns() / NS_PER_SECOND);
}

json_t *show_certs(const struct show *s, struct show_args *args)
{
	struct dump d = {.show = s,
		.providers = json_array(),
		.certificates = json_array(),
		.crls = json_array(),
		.contexts = json_array(),
		.handshakes = json_array()};
	if (s->conf.certs) {
		d.now_s = wall_s(s);
		certs_each(s->conf.certs, add_source, &d);
	}
	if (s->conf.credentials)
		credentials_each(s->conf.credentials, add_context, &d);
	add_handshakes(&d, "clients", "tls_clients");
	add_handshakes(&d, "backends", "tls_backends");
	return json_pack("{so so so so so so}", "providers", d.providers, "certificates",
		d.certificates, "crls", d.crls, "contexts", d.contexts, "handshakes", d.handshakes,
		"sessions", sessions());
}
