// SPDX-License-Identifier: Apache-2.0
#include "ctrl/status_start.h"

#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/status/status_server.h"
#include "ctrl/xds/federation.h"

#include <errno.h>

#define MAX_UNREAD_LEN ((size_t)64 << 20)

static void on_ready(void *arg)
{
	status_server_dispatch(arg);
}

static void each_resource(
	void *ctx, void (*fn)(void *, const struct xds_entry_info *), void *fn_ctx)
{
	xds_federation_each(ctx, fn, fn_ctx);
}

int status_start(const struct config *config, const struct xds_bootstrap *bootstrap,
	struct xds_federation *xds, struct loop *loop, struct status_server **ret,
	struct lb_err *err)
{
	if (!config->csds)
		return 0;
	struct status_server_conf conf = {
		.listen = config->csds->listen,
		.shares_port = config->takeover_socket,
		.bootstrap = bootstrap,
		.user_agent_version = SHUNT_VERSION,
		.wheel = loop_wheel(loop),
		.max_unread_len = MAX_UNREAD_LEN,
		.wall_ns = loop_wall_ns,
		.each = each_resource,
		.ctx = xds,
	};
	int rc = status_server_new(&conf, ret, err);
	if (rc == -EINVAL)
		return lb_err_within(err, "csds.listen");
	if (rc)
		return lb_err_set(err, "out of memory");
	if (loop_watch_fd(loop, status_server_fd(*ret), on_ready, *ret) == 0)
		return 0;
	status_server_free(*ret);
	*ret = NULL;
	return lb_err_set(err, "out of memory");
}
