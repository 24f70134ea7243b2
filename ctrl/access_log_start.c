// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log_start.h"

#include "ctrl/access_log/place.h"
#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "lb/pick/link.h"

#include <stdlib.h>
#include <string.h>

int access_log_start(const struct config *c, struct lb_link *const *links, struct access_log **ret,
	struct lb_err *reterr)
{
	struct lb_access *workers[LB_MAX_WORKERS];
	if (!c->access_log)
		return 0;
	struct access_log_frontend *frontends = calloc(c->n_frontends, sizeof(*frontends));
	if (!frontends)
		return lb_err_set(reterr, "out of memory");
	for (unsigned i = 0; i < c->n_frontends; i++)
		frontends[i] = (struct access_log_frontend){.name = c->frontends[i].name,
			.local = {c->frontends[i].address_ip, c->frontends[i].port}};
	for (unsigned i = 0; i < c->n_workers; i++)
		workers[i] = links[i]->access;
	const struct config_access_log *a = c->access_log;
	bool is_stdout = a->path && strcmp(a->path, "stdout") == 0;
	const struct access_place own = {
		.kind = is_stdout ? ACCESS_STDOUT : ACCESS_FILE, .path = a->path};
	struct access_log_conf conf = {
		.own = a->path ? &own : NULL,
		.text_format = a->text_format,
		.xds_directory = a->xds_directory,
		.xds_stdout = a->xds_stdout,
		.frontends = frontends,
		.n_frontends = c->n_frontends,
		.workers = workers,
		.n_workers = c->n_workers,
		.clock_ns = loop_clock_ns,
		.wall_ns = loop_wall_ns,
	};
	int rc = access_log_new(&conf, ret, reterr);
	free(frontends);
	return rc ? lb_err_within(reterr, "access_log") : 0;
}
