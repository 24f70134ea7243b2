// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/crls.h"

#include "ctrl/certs/pem.h"
#include "lb/base/str.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void file_fini(struct cert_crl_file *f)
{
	free(f->name);
	free(f->issuers);
	whole_file_fini(&f->pem);
}

static int load_file(
	const char *path, const char *name, struct cert_crl_file *f, struct lb_err *err)
{
	int rc = whole_file_read(path, false, &f->pem, err);
	if (rc)
		return rc;
	int n = cert_crls_read(
		(struct str){f->pem.p, f->pem.len}, &f->issuers, &f->next_update_s, err);
	if (n < 0)
		return n;
	f->n_crls = (uint32_t)n;
	f->name = strdup(name);
	return f->name ? 0 : -ENOMEM;
}

static int take_file(
	const char *directory, const char *name, struct cert_crls *c, struct lb_err *err)
{
	char path[PATH_MAX];
	struct stat st;
	struct lb_err why = {""};
	int len = snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (len < 0 || (size_t)len >= sizeof(path) || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		return 0;
	struct cert_crl_file *f = &c->list[c->n];
	int rc = load_file(path, name, f, &why);
	if (!rc) {
		c->n++;
		return 0;
	}
	file_fini(f);
	*f = (struct cert_crl_file){NULL};
	if (rc != -EINVAL)
		return rc;
	if (c->n_bad++ == 0)
		lb_err_set(err, "%s: %s", path, why.text);
	return 0;
}

static int is_shown(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

int cert_crls_load(const char *directory, struct cert_crls *ret, struct lb_err *err)
{
	struct dirent **names;
	*ret = (struct cert_crls){NULL, 0, 0};
	int n = scandir(directory, &names, is_shown, alphasort), rc = 0;
	if (n < 0)
		return lb_err_set(err, "%s: %s", directory, strerror(errno));
	ret->list = calloc((size_t)n + 1, sizeof(*ret->list));
	if (!ret->list)
		rc = -ENOMEM;
	for (int i = 0; i < n; i++) {
		if (!rc)
			rc = take_file(directory, names[i]->d_name, ret, err);
		free(names[i]);
	}
	free(names);
	if (rc)
		cert_crls_fini(ret);
	else if (ret->n_bad > 1)
		lb_err_within(err, "%u files are bad, first", ret->n_bad);
	return rc;
}

static int copy_file(const struct cert_crl_file *from, struct cert_crl_file *to)
{
	*to = (struct cert_crl_file){
		.name = strdup(from->name),
		.issuers = strdup(from->issuers),
		.pem = {malloc(from->pem.len + 1), from->pem.len},
		.next_update_s = from->next_update_s,
		.n_crls = from->n_crls,
	};
	if (to->name && to->issuers && to->pem.p) {
		memcpy(to->pem.p, from->pem.p, from->pem.len + 1);
		return 0;
	}
	free(to->name);
	free(to->issuers);
	free(to->pem.p);
	return -ENOMEM;
}

// Both are in the order of names, and so is the result: the same files are the same list.
int cert_crls_keep(struct cert_crls *c, const struct cert_crls *earlier)
{
	uint32_t n = 0, i = 0;
	struct cert_crl_file *all = calloc((size_t)c->n + earlier->n + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (uint32_t k = 0; k < earlier->n; k++) {
		int order = -1;
		while (i < c->n && (order = strcmp(c->list[i].name, earlier->list[k].name)) < 0)
			all[n++] = c->list[i++];
		if (i < c->n && order == 0)
			continue; // it is there anew
		if (copy_file(&earlier->list[k], &all[n])) {
			while (i < c->n)
				all[n++] = c->list[i++];
			free(c->list);
			c->list = all;
			c->n = n;
			return -ENOMEM;
		}
		n++;
	}
	while (i < c->n)
		all[n++] = c->list[i++];
	free(c->list);
	c->list = all;
	c->n = n;
	return 0;
}

void cert_crls_fini(struct cert_crls *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		file_fini(&c->list[i]);
	free(c->list);
	*c = (struct cert_crls){NULL, 0, 0};
}
