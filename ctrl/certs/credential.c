// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/credential.h"

#include "ctrl/base/printout.h"
#include "ctrl/certs/material.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Wants.

static int no_memory(struct lb_err *err)
{
	lb_err_set(err, "out of memory");
	return -EAGAIN;
}

static int copy_text(struct lb_arena *a, const char *from, const char **ret)
{
	*ret = from ? lb_arena_strdup(a, from) : NULL;
	return from && !*ret ? -ENOMEM : 0;
}

static int copy_sans(
	struct lb_arena *a, const struct credential_want *w, const struct lb_san_matcher_conf **ret)
{
	struct lb_san_matcher_conf *list = lb_arena_alloc(a, w->n_sans, sizeof(*list));
	*ret = list;
	for (uint32_t i = 0; list && i < w->n_sans; i++) {
		list[i] = w->sans[i];
		if (!lb_arena_copy(a, w->sans[i].text, &list[i].text))
			return -ENOMEM;
	}
	return list ? 0 : -ENOMEM;
}

static int copy_names(struct lb_arena *a, const struct credential_want *w, const char *const **ret)
{
	const char **list = lb_arena_alloc(a, w->n_server_names, sizeof(*list));
	*ret = list;
	for (uint32_t i = 0; list && i < w->n_server_names; i++)
		if (copy_text(a, w->server_names[i], &list[i]))
			return -ENOMEM;
	return list ? 0 : -ENOMEM;
}

int credential_want_copy(
	struct lb_arena *a, const struct credential_want *w, struct credential_want *ret)
{
	*ret = *w;
	return copy_text(a, w->identity, &ret->identity) || copy_text(a, w->ca, &ret->ca) ||
	                       copy_sans(a, w, &ret->sans) || copy_names(a, w, &ret->server_names)
	               ? -ENOMEM
	               : 0;
}

// With its length, so that no other list of texts looks the same.
static void print_text(FILE *f, const char *text)
{
	if (text)
		fprintf(f, " %zu:%s", strlen(text), text);
	else
		fprintf(f, " -");
}

static int compare_sans(const void *left, const void *right)
{
	const struct lb_san_matcher_conf *a = *(const struct lb_san_matcher_conf *const *)left;
	const struct lb_san_matcher_conf *b = *(const struct lb_san_matcher_conf *const *)right;
	if (a->kinds != b->kinds)
		return a->kinds < b->kinds ? -1 : 1;
	if (a->match != b->match)
		return a->match < b->match ? -1 : 1;
	if (a->ignore_case != b->ignore_case)
		return a->ignore_case ? 1 : -1;
	return str_order(a->text, b->text);
}

// Any of them is enough, so that neither order nor repetition says anything (TLS-281). False = out
// of memory.
static bool print_sans(FILE *f, const struct credential_want *w)
{
	const struct lb_san_matcher_conf **list = calloc((size_t)w->n_sans + 1, sizeof(*list));
	for (uint32_t i = 0; list && i < w->n_sans; i++)
		list[i] = &w->sans[i];
	if (list && w->n_sans)
		qsort(list, w->n_sans, sizeof(*list), compare_sans);
	for (uint32_t i = 0; list && i < w->n_sans; i++) {
		const struct lb_san_matcher_conf *m = list[i];
		if (i && compare_sans(&list[i - 1], &list[i]) == 0)
			continue;
		fprintf(f, " san %u %d %d %zu:%.*s", m->kinds, m->match, m->ignore_case,
			m->text.len, (int)m->text.len, m->text.p);
	}
	bool is_whole = list;
	free(list);
	return is_whole;
}

char *credential_want_key(const struct credential_want *w)
{
	struct printout p;
	FILE *f = printout_begin(&p);
	if (!f)
		return NULL;
	fprintf(f, "%d%d%d%d %u", w->role, w->system_roots, w->require_peer_certificate,
		w->sni_is_san, w->max_sessions);
	print_text(f, w->identity);
	print_text(f, w->ca);
	bool is_whole = print_sans(f, w);
	for (uint32_t i = 0; i < w->n_server_names; i++)
		print_text(f, w->server_names[i]);
	char *key = printout_end(&p);
	if (is_whole)
		return key;
	free(key);
	return NULL;
}

// Whom to accept by name: looked at by handshakes' threads, several at a time.

struct judge {
	struct lb_san_matchers *sans;
	bool sni_is_san;
};

static void judge_free(void *arg)
{
	struct judge *j = arg;
	if (j)
		lb_san_matchers_free(j->sans);
	free(j);
}

static bool accepts(const void *arg, const struct tlshs_peer *p, struct str server_name)
{
	static const enum lb_san_kind kinds[] = {
		[TLSHS_SAN_DNS] = LB_SAN_DNS,
		[TLSHS_SAN_URI] = LB_SAN_URI,
		[TLSHS_SAN_EMAIL] = LB_SAN_EMAIL,
		[TLSHS_SAN_IP] = LB_SAN_IP,
	};
	const struct judge *j = arg;
	struct lb_san sans[TLSHS_MAX_SANS];
	for (uint32_t i = 0; i < p->n_sans; i++)
		sans[i] = (struct lb_san){kinds[p->sans[i].kind], tlshs_peer_san(p, i)};
	if (j->sni_is_san && server_name.len)
		return lb_san_has_host(sans, p->n_sans, server_name);
	return lb_san_matchers_match(j->sans, sans, p->n_sans);
}

static int set_matcher(
	const struct credential_want *w, struct tlshs_matcher *ret, struct lb_err *err)
{
	if (!w->n_sans && !w->sni_is_san)
		return 0;
	struct judge *j = calloc(1, sizeof(*j));
	if (j)
		j->sans = lb_san_matchers_new(w->sans, w->n_sans, err);
	if (!j || !j->sans) {
		judge_free(j);
		return no_memory(err); // they were good when their resource was taken
	}
	j->sni_is_san = w->sni_is_san;
	*ret = (struct tlshs_matcher){accepts, judge_free, j};
	return 0;
}

// Contexts.

// What a call borrows of this is owned here.
struct loan {
	struct whole_file roots;
	char *crls;
	struct tlshs_bundle *bundles;
	struct str *names;
};

static void loan_fini(struct loan *l)
{
	whole_file_fini(&l->roots);
	free(l->crls);
	free(l->bundles);
	free(l->names);
}

// One without CAs trusts nobody, as one that is not there.
static int lend_bundles(const struct cert_bundles *b, struct loan *l,
	struct tlshs_context_conf *conf, struct lb_err *err)
{
	l->bundles = calloc((size_t)b->n + 1, sizeof(*l->bundles));
	if (!l->bundles)
		return no_memory(err);
	for (uint32_t i = 0; i < b->n; i++)
		if (*b->list[i].ca_pem)
			l->bundles[conf->n_bundles++] = (struct tlshs_bundle){
				str_from(b->list[i].trust_domain), str_from(b->list[i].ca_pem)};
	conf->bundles = l->bundles;
	if (conf->n_bundles)
		return 0;
	lb_err_set(err, "the SPIFFE map has no CAs");
	return -EACCES;
}

static int lend_trust(const struct credential_want *w, const struct credential_parts *p,
	struct loan *l, struct tlshs_context_conf *conf, struct lb_err *err)
{
	if (w->ca && !p->ca)
		return lb_err_set(err, "certificate provider \"%.64s\": has nothing yet", w->ca);
	if (w->ca && p->ca->has_bundles)
		return lend_bundles(&p->ca->bundles, l, conf, err);
	if (w->ca) {
		conf->ca_pem = whole_file_bytes(&p->ca->ca);
		return conf->ca_pem.len
		               ? 0
		               : lb_err_set(
					 err, "certificate provider \"%.64s\": has no CAs", w->ca);
	}
	if (!w->system_roots)
		return 0;
	int rc = whole_file_read(p->system_roots, false, &l->roots, err);
	conf->ca_pem = whole_file_bytes(&l->roots);
	if (rc == -ENOMEM)
		return no_memory(err);
	if (rc)
		lb_err_within(err, "system_root_certs: %s", p->system_roots);
	return rc ? -EAGAIN : 0;
}

static int lend_crls(const struct credential_parts *p, struct loan *l,
	struct tlshs_context_conf *conf, struct lb_err *err)
{
	const struct cert_material *m = p->crls;
	size_t len = 0;
	if (p->awaits_crls)
		return lb_err_set(err, "crl_directory: has not been read completely yet");
	if (!m || !m->crls.n)
		return 0;
	FILE *f = open_memstream(&l->crls, &len);
	for (uint32_t i = 0; f && i < m->crls.n; i++) {
		fwrite(m->crls.list[i].pem.p, 1, m->crls.list[i].pem.len, f);
		fputc('\n', f);
	}
	if (!f || fclose(f))
		return no_memory(err);
	conf->crl_pem = (struct str){l->crls, len};
	return 0;
}

static int lend_names(const struct credential_want *w, struct loan *l,
	struct tlshs_context_conf *conf, struct lb_err *err)
{
	l->names = calloc((size_t)w->n_server_names + 1, sizeof(*l->names));
	if (!l->names)
		return no_memory(err);
	for (uint32_t i = 0; i < w->n_server_names; i++)
		l->names[i] = str_from(w->server_names[i]);
	conf->server_names = l->names;
	conf->n_server_names = w->n_server_names;
	return 0;
}

static int lend_identity(const struct credential_want *w, const struct credential_parts *p,
	struct tlshs_context_conf *conf, struct lb_err *err)
{
	if (!w->identity)
		return 0;
	if (!p->identity)
		return lb_err_set(
			err, "certificate provider \"%.64s\": has nothing yet", w->identity);
	conf->certificate_pem = whole_file_bytes(&p->identity->cert);
	conf->key_pem = whole_file_bytes(&p->identity->key);
	return conf->certificate_pem.len
	               ? 0
	               : lb_err_set(err, "certificate provider \"%.64s\": has no certificate",
				 w->identity);
}

int credential_make(const struct credential_want *w, const struct credential_parts *p,
	struct tlshs_context **ret, struct lb_err *err)
{
	// In the order of our preference; backends are spoken to in the first one alone.
	static const struct str protocols[] = {{"h2", 2}, {"http/1.1", 8}};
	struct loan l = {0};
	struct tlshs_context_conf conf = {
		.role = w->role,
		.require_peer_certificate = w->require_peer_certificate,
		.max_sessions = w->max_sessions,
		.alpn = protocols,
		.n_alpn = w->role == TLSHS_SERVER ? 2 : 1,
		.ticket_secret = w->role == TLSHS_SERVER ? p->ticket_secret : STR(""),
	};
	int rc = lend_identity(w, p, &conf, err);
	if (!rc)
		rc = lend_trust(w, p, &l, &conf, err);
	if (!rc)
		rc = lend_crls(p, &l, &conf, err);
	if (!rc)
		rc = lend_names(w, &l, &conf, err);
	if (!rc)
		rc = set_matcher(w, &conf.matcher, err);
	*ret = rc ? NULL : tlshs_context_new(&conf, err);
	bool is_weak = !rc && !*ret && errno == EKEYREJECTED;
	loan_fini(&l);
	if (rc || *ret)
		return rc;
	if (conf.matcher.free_arg)
		conf.matcher.free_arg(conf.matcher.arg);
	// Files were found to be good when they were read, so that it is rarely they.
	return is_weak ? -EINVAL : -EAGAIN;
}
