// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds_start.h"

#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/federation.h"
#include "ctrl/xds/keeper.h"
#include "ctrl/xds/legacy.h"
#include "ctrl/xds/state/state_file.h"
#include "lb/base/err.h"
#include "lb/base/log.h"
#include "lb/base/time.h"

#include <errno.h>

size_t xds_max_response_len(const struct config *c)
{
	return (size_t)c->max_xds_response_mib << 20;
}

static void each_client(void *of, void (*fn)(void *ctx, struct xds_client *), void *ctx)
{
	xds_federation_each_client(of, fn, ctx);
}

static int start_keeper(
	const struct xds_start_conf *in, struct xds_keeper **ret, struct lb_err *err)
{
	if (!in->config->state_dir)
		return 0;
	struct xds_keeper_conf conf = {
		.directory = in->config->state_dir,
		.bootstrap = in->bootstrap,
		.wheel = loop_wheel(in->loop),
		.wall_ns = loop_wall_ns,
		.waits = in->state_waits,
	};
	int rc = xds_keeper_new(&conf, ret, err);
	if (rc)
		lb_err_within(err, "state_dir");
	return rc;
}

// By the same name as what is trouble, which has the level warn.
static void note(void *ctx, const char *line)
{
	log_info("xds", "text=%s", log_quote(line));
}

// What came from the older process is at least as new as what it has written.
static const struct xds_state *known(const struct xds_live *l)
{
	static const struct xds_state none;
	if (l->legacy)
		return xds_legacy_state(l->legacy);
	return l->keeper ? xds_keeper_state(l->keeper) : &none;
}

static void follow(const struct xds_live *l)
{
	struct xds_federation *f = l->federation;
	if (l->keeper)
		xds_federation_add_settled(f, xds_keeper_follow(l->keeper, each_client, f));
	if (l->legacy)
		xds_federation_add_settled(f, xds_legacy_follow(l->legacy, each_client, f));
}

int xds_start(const struct xds_start_conf *in, struct xds_live *ret, struct lb_err *err)
{
	const struct config_xds *xds = in->config->xds;
	bool delta = xds && xds->protocol == CONFIG_XDS_DELTA;
	*ret = (struct xds_live){.bootstrap = in->bootstrap};
	ret->legacy = xds_legacy_take(in->legacy_fd > 0 ? in->legacy_fd : -1, in->bootstrap);
	int rc = start_keeper(in, &ret->keeper, err);
	if (rc)
		return rc;
	struct xds_client_conf conf = {
		.bootstrap = in->bootstrap,
		.protocol = delta ? &xds_protocol_delta : &xds_protocol_sotw,
		.drops_deleted = xds && xds->deleted == CONFIG_XDS_DROP,
		.types = res_types,
		.n_types = RES_N_TYPES,
		.transport = in->transport,
		.wheel = loop_wheel(in->loop),
		.rand = in->rand,
		.user_agent_version = SHUNT_VERSION,
		.limits = {in->config->max_xds_resources, xds_max_response_len(in->config)},
		.slice = {.clock_ns = loop_clock_ns, .len_ns = in->slice_ns},
		.state = known(ret),
		.log = in->log,
		.note = note,
	};
	ret->federation = xds_federation_new(&conf);
	if (!ret->federation) {
		lb_err_set(err, "out of memory");
		return -ENOMEM;
	}
	follow(ret);
	return 0;
}

int xds_live_bequeath(const struct xds_live *l)
{
	return xds_legacy_make(
		each_client, l->federation, l->bootstrap, known(l), loop_wall_ns() / NS_PER_SECOND);
}

void xds_live_fini(struct xds_live *l)
{
	xds_federation_free(l->federation);
	xds_keeper_free(l->keeper);
	xds_legacy_free(l->legacy);
	*l = (struct xds_live){.federation = NULL};
}
