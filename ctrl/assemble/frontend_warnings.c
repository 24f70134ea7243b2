// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/frontend_warnings.h"

#include "ctrl/assemble/assembled_frontend.h"
#include "ctrl/conf/config.h"
#include "ctrl/deps/config.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/log.h"

#include <string.h>

static bool has_warning(const struct res_warnings *w, const char *text)
{
	uint32_t i = 0;
	while (w && i < w->n && strcmp(w->list[i].text, text) != 0)
		i++;
	return w && i < w->n;
}

// What was not said of the version before (NULL = there was none), since some servers send one
// every few seconds, nor of this one for another frontend.
static void log_warnings(const struct assembled_frontend *f, const struct xds_res *res,
	const struct res_warnings *before, struct res_warnings *now)
{
	for (uint32_t k = 0; k < now->n && !now->told; k++) {
		const struct res_warning *w = &now->list[k];
		struct lb_err text;
		lb_err_set(&text, "%s", w->text);
		if (*w->where)
			lb_err_within(&text, "%s", w->where);
		if (!has_warning(before, w->text))
			log_warn("resource", "frontend=%s type=%s name=%s warning=%s places=%u",
				log_quote(f->env->config->frontends[f->owner].name),
				log_quote(res->type->label), log_quote(res->name),
				log_quote(text.text), w->n);
	}
	now->told = true;
}

void frontend_warnings_tell(const struct assembled_frontend *f)
{
	const struct xds_config *old = f->applied, *new = f->wanted;
	log_warnings(f, &new->listener->base, old ? &old->listener->warnings : NULL,
		&new->listener->warnings);
	log_warnings(
		f, &new->routes->base, old ? &old->routes->warnings : NULL, &new->routes->warnings);
	for (uint32_t k = 0; k < new->n_clusters; k++) {
		struct res_cluster *now = new->clusters[k].cluster;
		if (!now || !now->warnings.n || now->warnings.told)
			continue;
		const struct xds_cluster_config *before =
			old ? xds_config_find_cluster(old, new->clusters[k].name) : NULL;
		log_warnings(f, &now->base,
			before && before->cluster ? &before->cluster->warnings : NULL,
			&now->warnings);
	}
}
