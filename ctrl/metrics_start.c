// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics_start.h"

#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/metrics/metrics_server.h"
#include "ctrl/page/page.h"
#include "ctrl/stats/show.h"

#include <stdlib.h>
#include <unistd.h>

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

// Takes the listener.
static int open_port(struct metrics_port *p, const struct config *config, int listener,
	struct loop *loop, const struct show *show, struct slice slice, struct lb_err *err)
{
	const struct page_conf page = {loop_base(loop), loop_wheel(loop), show, slice};
	p->page = page_new(&page);
	if (!p->page) {
		close(listener);
		return lb_err_set(err, "out of memory");
	}
	p->calls = (struct metrics_page){answer, follow, p->page};
	struct metrics_server_conf conf = {
		.base = loop_base(loop),
		.listener = listener,
		.scrape = show_scrape_conf(show),
		.page = &p->calls,
		.is_local = !config->metrics->allow_remote,
		.slice = slice,
	};
	p->server = metrics_server_new(&conf, err);
	return p->server ? 0 : lb_err_within(err, "metrics.listen");
}

int metrics_start(const struct config *config, int listener, struct loop *loop,
	const struct show *show, struct slice slice, struct metrics_port **ret, struct lb_err *err)
{
	struct metrics_port *p = calloc(1, sizeof(*p));
	if (!p) {
		close(listener);
		return lb_err_set(err, "out of memory");
	}
	int rc = open_port(p, config, listener, loop, show, slice, err);
	if (rc)
		metrics_stop(p);
	else
		*ret = p;
	return rc;
}

void metrics_begin(struct metrics_port *p)
{
	metrics_server_begin(p->server);
}

int metrics_listener(const struct metrics_port *p)
{
	return metrics_server_listener(p->server);
}

void metrics_leave(struct metrics_port *p)
{
	page_leave(p->page);
	metrics_server_leave(p->server);
}

void metrics_stop(struct metrics_port *p)
{
	if (!p)
		return;
	metrics_server_free(p->server); // ends what is under way
	page_free(p->page);
	free(p);
}
