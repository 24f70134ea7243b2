// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics_start.h"

#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/metrics/metrics_server.h"

int metrics_start(const struct config *config, struct loop *loop, const struct scrape_conf *scrape,
	struct slice slice, struct metrics_server **ret, struct lb_err *err)
{
	if (!config->metrics)
		return 0;
	struct metrics_server_conf conf = {
		.base = loop_base(loop),
		.listen = config->metrics->listen,
		.scrape = scrape,
		.shares_port = config->takeover_socket,
		.slice = slice,
	};
	*ret = metrics_server_new(&conf, err);
	return *ret ? 0 : lb_err_within(err, "metrics.listen");
}
