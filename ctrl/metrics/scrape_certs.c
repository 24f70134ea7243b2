// SPDX-License-Identifier: Apache-2.0
// Metrics of certificates: how long they last, how their files were read, what is made of them, and
// how handshakes by them end (gRFC A118).
#include "ctrl/assemble/workers.h"
#include "ctrl/certs/certs.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/certs/material.h"
#include "ctrl/metrics/scrape_inside.h"
#include "lb/base/time.h"

static void count(void *ctx, const struct certs_info *i)
{
	++*(uint32_t *)ctx;
}

static uint32_t over_certs(const struct scrape *s)
{
	uint32_t n = 0;
	if (s->conf.certs)
		certs_each(s->conf.certs, count, &n);
	return n > 0; // there are few: all in one step
}

struct dates {
	struct scrape *scrape;
	enum metric_id id;
};

static void tell_dates_of(const struct dates *d, const struct certs_info *i, const char *kind,
	const struct cert_list *list)
{
	const struct cert_info *first = cert_list_first_to_end(list);
	if (!first)
		return;
	double from_s = d->id == METRIC_ID_CERTIFICATE_LIFETIME
	                        ? (double)first->not_before_s
	                        : (double)(d->scrape->conf.wall_ns() / NS_PER_SECOND);
	scrape_tell(d->scrape, d->id, (double)first->not_after_s - from_s,
		LABELS(i->source->name, kind));
}

static void add_dates(void *ctx, const struct certs_info *i)
{
	if (!i->material)
		return;
	tell_dates_of(ctx, i, "own", &i->material->chain);
	tell_dates_of(ctx, i, i->material->has_bundles ? "spiffe" : "ca", &i->material->cas);
}

static void add_version(void *ctx, const struct certs_info *i)
{
	scrape_tell(
		ctx, METRIC_ID_CERTIFICATE_VERSION, (double)i->version, LABELS(i->source->name));
}

static void add_readings(void *ctx, const struct certs_info *i)
{
	const char *name = i->source->name;
	enum metric_id id = METRIC_ID_CERTIFICATE_READINGS;
	scrape_tell(ctx, id, (double)i->n_changed, LABELS(name, "changed"));
	scrape_tell(ctx, id, (double)i->n_unchanged, LABELS(name, "unchanged"));
	scrape_tell(ctx, id, (double)i->n_failed, LABELS(name, "failed"));
}

static void add_failing(void *ctx, const struct certs_info *i)
{
	scrape_tell(
		ctx, METRIC_ID_CERTIFICATE_FAILING, i->error[0] != '\0', LABELS(i->source->name));
}

static void tell_dates(struct scrape *s, enum metric_id id, uint32_t i)
{
	struct dates d = {s, id};
	certs_each(s->conf.certs, add_dates, &d);
}

static void tell_version(struct scrape *s, enum metric_id id, uint32_t i)
{
	certs_each(s->conf.certs, add_version, s);
}

static void tell_readings(struct scrape *s, enum metric_id id, uint32_t i)
{
	certs_each(s->conf.certs, add_readings, s);
}

static void tell_failing(struct scrape *s, enum metric_id id, uint32_t i)
{
	certs_each(s->conf.certs, add_failing, s);
}

struct context_counts {
	uint32_t n[2][CREDENTIALS_N_STATES]; // by role
};

static void count_context(void *ctx, const struct credentials_info *i)
{
	((struct context_counts *)ctx)->n[i->want->role][credentials_state(i)]++;
}

static uint32_t over_credentials(const struct scrape *s)
{
	return s->conf.credentials != NULL;
}

static void tell_contexts(struct scrape *s, enum metric_id id, uint32_t i)
{
	struct context_counts k = {0};
	credentials_each(s->conf.credentials, count_context, &k);
	for (uint32_t state = 0; state < CREDENTIALS_N_STATES; state++) {
		const char *name = credentials_state_names[state];
		scrape_tell(s, id, k.n[TLSHS_SERVER][state], LABELS("server", name));
		scrape_tell(s, id, k.n[TLSHS_CLIENT][state], LABELS("client", name));
	}
}

// Outcomes that share a word are one sample.
static void tell_handshakes(struct scrape *s, enum metric_id id, uint32_t i)
{
	const char *group = id == METRIC_ID_TLS_CLIENT ? "tls_backends" : "tls_clients";
	uint64_t sums[TLSHS_N_RESULTS] = {0}, resumed = 0;
	for (enum tlshs_outcome o = 0; o < TLSHS_N_OUTCOMES; o++) {
		uint64_t n = workers_counter(s->conf.workers, group, tlshs_outcome_name(o));
		*(o == TLSHS_resumed ? &resumed : &sums[tlshs_outcome_result(o)]) += n;
	}
	for (enum tlshs_result_word r = 0; r < TLSHS_N_RESULTS; r++)
		scrape_tell(
			s, id, (double)sums[r], LABELS(tlshs_result_names[r], "FULL_HANDSHAKE"));
	scrape_tell(s, id, (double)resumed,
		LABELS(tlshs_result_names[TLSHS_RESULT_SUCCESS], "RESUMED_HANDSHAKE"));
}

const struct scrape_family scrape_certs[] = {
	{METRIC_ID_CERTIFICATE_LEFT, over_certs, tell_dates},
	{METRIC_ID_CERTIFICATE_LIFETIME, over_certs, tell_dates},
	{METRIC_ID_CERTIFICATE_VERSION, over_certs, tell_version},
	{METRIC_ID_CERTIFICATE_READINGS, over_certs, tell_readings},
	{METRIC_ID_CERTIFICATE_FAILING, over_certs, tell_failing},
	{METRIC_ID_TLS_CONTEXTS, over_credentials, tell_contexts},
	{METRIC_ID_TLS_CLIENT, scrape_over_once, tell_handshakes},
	{METRIC_ID_TLS_SERVER, scrape_over_once, tell_handshakes},
};
const uint32_t scrape_n_certs = sizeof(scrape_certs) / sizeof(scrape_certs[0]);
