// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds_start.h"

#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/federation.h"
#include "ctrl/xds/keeper.h"
#include "lb/base/err.h"
#include "lb/base/log.h"

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

int xds_start(const struct xds_start_conf *in, struct xds_federation **ret,
	struct xds_keeper **ret_keeper, struct lb_err *err)
{
	const struct config_xds *xds = in->config->xds;
	bool delta = xds && xds->protocol == CONFIG_XDS_DELTA;
	*ret = NULL;
	*ret_keeper = NULL;
	int rc = start_keeper(in, ret_keeper, err);
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
		.state = *ret_keeper ? xds_keeper_state(*ret_keeper) : NULL,
		.log = in->log,
		.note = note,
	};
	*ret = xds_federation_new(&conf);
	if (!*ret) {
		lb_err_set(err, "out of memory");
		return -ENOMEM;
	}
	if (*ret_keeper)
		xds_federation_add_settled(*ret, xds_keeper_follow(*ret_keeper, each_client, *ret));
	return 0;
}
