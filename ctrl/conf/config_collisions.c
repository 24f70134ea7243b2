// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_collisions.h"

#include "ctrl/conf/config.h"
#include "lb/base/err.h"
#include "lb/base/ip.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_PLACES 10
#define STATE_NAME "xds-state" // ctrl/xds/state/state_dir.h; their test holds them together

struct place {
	const char *field;
	bool is_folder; // what writes there makes names of its own: several may share one
	char path[PATH_MAX];
};
struct places {
	unsigned n;
	struct place all[MAX_PLACES];
};

// Without what leads nowhere: "/a//./b/" is "/a/b".
static void tidy(char *path)
{
	char *to = path + (path[0] == '/');
	for (const char *from = path; *from;) {
		size_t len = strcspn(from, "/");
		if (len && !(len == 1 && from[0] == '.')) {
			if (to > path && to[-1] != '/')
				*to++ = '/';
			memmove(to, from, len);
			to += len;
		}
		from += len + (from[len] == '/');
	}
	*to = 0;
}

// name: of a file in that folder; NULL = the path itself.
static struct place *add(struct places *p, const char *field, const char *path, const char *name)
{
	if (!path)
		return NULL;
	struct place *one = &p->all[p->n++];
	one->field = field;
	one->is_folder = false;
	snprintf(one->path, sizeof(one->path), "%s%s%s", path, name ? "/" : "", name ? name : "");
	tidy(one->path);
	return one;
}

static const char *add_folder(struct places *p, const char *field, const char *path)
{
	struct place *one = add(p, field, path, NULL);
	if (!one)
		return NULL;
	one->is_folder = true;
	return one->path;
}

// Returns the folder that xDS servers may write to; NULL = there is none.
static const char *collect(const struct config *c, struct places *p)
{
	const struct config_access_log *a = c->access_log;
	p->n = 0;
	add(p, "stats.socket", c->stats->socket, NULL);
	add(p, "stats.haproxy_socket", c->stats->haproxy_socket, NULL);
	add(p, "takeover_socket", c->takeover_socket, NULL);
	if (a && a->path && strcmp(a->path, "stdout") != 0)
		add(p, "access_log.path", a->path, NULL);
	add(p, "state_dir", c->state_dir, STATE_NAME);
	add(p, "ready_file", c->ready_file, NULL);
	add(p, "tls.ticket_secret", c->tls ? c->tls->ticket_secret : NULL, NULL);
	// All that stands in it is read.
	add(p, "tls.crl_directory", c->tls ? c->tls->crl_directory : NULL, NULL);
	add_folder(p, "capture.directory", c->capture ? c->capture->directory : NULL);
	return add_folder(p, "access_log.xds_directory", a ? a->xds_directory : NULL);
}

static int check_paths(const struct config *c, struct lb_err *reterr)
{
	struct places p;
	(void)collect(c, &p);
	for (unsigned i = 0; i < p.n; i++)
		for (unsigned j = 0; j < i; j++)
			if (!(p.all[i].is_folder && p.all[j].is_folder) &&
				strcmp(p.all[i].path, p.all[j].path) == 0)
				return lb_err_set(reterr, "%s: is what %s has already: %.256s",
					p.all[i].field, p.all[j].field, p.all[i].path);
	return 0;
}

// xDS servers may write to what is there (OPS-43).
static int check_folder_of_servers(const struct config *c, struct lb_err *reterr)
{
	struct places p;
	const char *folder = collect(c, &p);
	size_t len = folder ? strlen(folder) : 0;
	for (unsigned i = 0; i < p.n; i++)
		if (folder && !p.all[i].is_folder && strncmp(p.all[i].path, folder, len) == 0 &&
			p.all[i].path[len] == '/')
			return lb_err_set(reterr,
				"%s: '%.256s' is below access_log.xds_directory, where xDS servers "
				"may write",
				p.all[i].field, p.all[i].path);
	return 0;
}

// 0.0.0.0 is each IPv4 address, :: takes IPv4 as well.
static bool covers(const struct ip_addr *a, const struct ip_addr *b)
{
	static const struct ip_addr all4 = {.b = {[10] = 0xff, [11] = 0xff}};
	return ip_eq(a, b) || ip_is_none(a) || (ip_eq(a, &all4) && ip_is_v4(b));
}

static int check_listening(const struct config *c, struct lb_err *reterr)
{
	struct ip_port metrics, csds;
	if (!c->metrics || !c->csds || !ip_port_parse(str_from(c->metrics->listen), &metrics) ||
		!ip_port_parse(str_from(c->csds->listen), &csds) || metrics.port != csds.port ||
		!(covers(&metrics.ip, &csds.ip) || covers(&csds.ip, &metrics.ip)))
		return 0;
	return lb_err_set(reterr, "metrics.listen: %s is taken by csds.listen (%s)",
		c->metrics->listen, c->csds->listen);
}

int config_check_collisions(const struct config *c, struct lb_err *reterr)
{
	int rc = check_paths(c, reterr);
	rc = rc ? rc : check_folder_of_servers(c, reterr);
	return rc ? rc : check_listening(c, reterr);
}
