// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics_start.h"

#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/metrics/metrics_server.h"
#include "ctrl/page/page.h"
#include "ctrl/stats/show.h"

#include <stdlib.h>

struct metrics_port {
	struct page *page;
	struct metrics_page calls; // of the page
	struct metrics_server *server;
};

static void answer(void *ctx, struct evhttp_request *request)
{
	page_answer(ctx, request);
}

static void follow(void *ctx, struct evhttp_request *request, struct connections *connections)
{
	page_follow(ctx, request, connections);
}

static int open_port(struct metrics_port *p, const struct config *config, struct loop *loop,
	const struct show *show, struct slice slice, struct lb_err *err)
{
	const struct page_conf page = {loop_base(loop), loop_wheel(loop), show, slice};
	p->page = page_new(&page);
	if (!p->page)
		return lb_err_set(err, "out of memory");
	p->calls = (struct metrics_page){answer, follow, p->page};
	struct metrics_server_conf conf = {
		.base = loop_base(loop),
		.listen = config->metrics->listen,
		.scrape = show_scrape_conf(show),
		.page = &p->calls,
		.is_local = !config->metrics->allow_remote,
		.shares_port = config->takeover_socket,
		.slice = slice,
	};
	p->server = metrics_server_new(&conf, err);
	return p->server ? 0 : lb_err_within(err, "metrics.listen");
}

int metrics_start(const struct config *config, struct loop *loop, const struct show *show,
	struct slice slice, struct metrics_port **ret, struct lb_err *err)
{
	if (!config->metrics)
		return 0;
	struct metrics_port *p = calloc(1, sizeof(*p));
	int rc =
		p ? open_port(p, config, loop, show, slice, err) : lb_err_set(err, "out of memory");
	if (rc)
		metrics_stop(p);
	else
		*ret = p;
	return rc;
}

void metrics_stop(struct metrics_port *p)
{
	if (!p)
		return;
	metrics_server_free(p->server); // ends what is under way
	page_free(p->page);
	free(p);
}
