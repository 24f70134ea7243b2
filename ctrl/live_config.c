// SPDX-License-Identifier: Apache-2.0
#include "ctrl/live_config.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config_rows.h"
#include "ctrl/conf/config_terms.h"
#include "ctrl/frontends.h"
#include "ctrl/reach.h"
#include "ctrl/takeover/takeover.h"
#include "ctrl/trust.h"
#include "ctrl/xds/bootstrap/bootstrap.h"

static int prepare(
	void *ctx, const struct config *new, const struct reload_parts *parts, struct lb_err *err)
{
	const struct live_config *l = ctx;
	bool has_frontends = parts->frontends->is_any || parts->has_vips;
	if (parts->has_vips && own_vips_check(&l->vips, new, err))
		return -1;
	if (has_frontends && frontends_prepare(l->frontends, new, parts->frontends, err))
		return -1;
	if (!parts->has_csds || reach_prepare_status(l->reach, new, err) == 0)
		return 0;
	if (has_frontends)
		frontends_abandon(l->frontends);
	return -1;
}

static void apply(void *ctx, struct config *new, const struct reload_parts *parts)
{
	struct live_config *l = ctx;
	struct lb_terms terms = config_terms(l->reloader.config);
	assembler_set_terms(l->assembler, &terms);
	if (parts->has_vips)
		own_vips_change(&l->vips, new->vips, new->n_vips);
	if (parts->frontends->is_any || parts->has_vips)
		frontends_apply(l->frontends, new, parts->frontends);
	if (parts->has_vips)
		frontends_follow_vips(l->frontends);
	if (parts->has_csds)
		reach_change_status(l->reach);
}

// The bootstrap is found as at the start.
static int learn(
	void *ctx, void (*note)(void *, const char *, bool), void *note_ctx, struct lb_err *err)
{
	const struct live_config *l = ctx;
	struct xds_bootstrap *now = NULL;
	int rc = xds_bootstrap_load_again(l->reloader.path, &now, err);
	if (!rc && now)
		rc = trust_learn(l->trust, now, note, note_ctx, err);
	xds_bootstrap_free(now);
	return rc;
}

static int check(void *ctx, struct lb_err *err)
{
	return takeover_check_reload(((const struct live_config *)ctx)->takeover, err);
}

void live_config_init(struct live_config *l, struct config *config, const char *path,
	struct trust *trust, struct assembler *assembler, struct frontends *frontends,
	struct reach *reach, const struct takeover *takeover, struct twheel *wheel)
{
	*l = (struct live_config){
		.reloader = {.config = config,
			.path = path,
			.learn = learn,
			.prepare = prepare,
			.apply = apply,
			.ctx = l,
			.check = check},
		.trust = trust,
		.assembler = assembler,
		.frontends = frontends,
		.reach = reach,
		.takeover = takeover,
	};
	own_vips_init(&l->vips, config, assembler, wheel);
}

void live_config_fini(struct live_config *l)
{
	own_vips_fini(&l->vips);
}
