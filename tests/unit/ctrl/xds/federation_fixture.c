// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/xds/federation_fixture.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct xds_type *const TYPES[] = {&toy_cluster, &toy_endpoints, &toy_origin};

static int connect_by_uri(void *ctx, const struct xds_server_conf *conf, struct xds_transport **ret,
	struct lb_err *err)
{
	struct world *w = ctx;
	struct fake_ads *server = &w->at[conf->uri[strlen(conf->uri) - 1] - '0'].server;
	struct xds_transport_factory factory = fake_ads_factory(server);
	return factory.connect(factory.ctx, conf, ret, err);
}

static void on_log(void *ctx, const char *line)
{
	struct world *w = ctx;
	size_t len = strlen(w->logged);
	snprintf(w->logged + len, sizeof(w->logged) - len, "%s\n", line);
}

static void init(
	struct world *w, const char *bootstrap, bool drops_deleted, const struct xds_state *state)
{
	*w = (struct world){.now_ns = 1000 * S};
	char *json = strdup(bootstrap);
	assert_non_null(json);
	for (char *p = json; *p; p++)
		if (*p == '\'')
			*p = '"';
	struct lb_err err = {""};
	if (xds_bootstrap_parse(json, strlen(json), "test", &w->bootstrap, &err))
		fail_msg("%s", err.text);
	free(json);
	w->wheel = twheel_new(w->now_ns);
	assert_non_null(w->wheel);
	for (unsigned i = 0; i < 3; i++)
		w->at[i].server.wheel = fake_ads_slice().most ? w->wheel : NULL;
	rand_init(&w->rand, 1);
	w->federation = xds_federation_new(&(struct xds_client_conf){
		.bootstrap = w->bootstrap,
		.drops_deleted = drops_deleted,
		.types = TYPES,
		.n_types = 3,
		.transport = {connect_by_uri, w},
		.wheel = w->wheel,
		.rand = &w->rand,
		.user_agent_version = "1.2.3",
		.slice = fake_ads_slice(),
		.state = state,
		.log = on_log,
		.log_ctx = w,
	});
	assert_non_null(w->federation);
}

void world_init(struct world *w, const char *bootstrap)
{
	init(w, bootstrap, false, NULL);
}

void world_init_kept(struct world *w, const char *bootstrap, const struct xds_state *state)
{
	init(w, bootstrap, false, state);
}

void world_init_dropping(struct world *w, const char *bootstrap)
{
	init(w, bootstrap, true, NULL);
}

void world_fini(struct world *w)
{
	xds_federation_free(w->federation);
	for (unsigned i = 0; i < 3; i++)
		fake_ads_fini(&w->at[i].server);
	twheel_free(w->wheel);
	xds_bootstrap_free(w->bootstrap);
}

void world_pass(struct world *w, uint64_t ns)
{
	w->now_ns += ns;
	twheel_advance(w->wheel, w->now_ns);
}

void world_listen(struct world *w, const struct xds_type *type, const char *name, struct ear *ear)
{
	prepare_ear(ear);
	assert_int_equal(xds_federation_watch(w->federation, type, name, &ear->watcher), 0);
}

void world_cancel(struct world *w, struct ear *ear)
{
	xds_federation_cancel(w->federation, &ear->watcher);
}

void world_refuse(struct world *w, unsigned server)
{
	fake_ads_close(&w->at[server].server, "connection refused");
}

bool world_connected(const struct world *w, unsigned server)
{
	return w->at[server].server.stream;
}

struct search {
	const char *name;
	unsigned n;
	char text[128];
};

static void on_entry(void *ctx, const struct xds_entry_info *e)
{
	struct search *s = ctx;
	if (strcmp(e->name, s->name) != 0)
		return;
	s->n++;
	snprintf(s->text, sizeof(s->text), "%s %s%s", xds_status_name(e->status), e->version,
		*e->error ? " with error" : "");
}

const char *world_state(struct world *w, const char *name)
{
	static struct search s;
	s = (struct search){.name = name};
	xds_federation_each(w->federation, on_entry, &s);
	assert_true(s.n <= 1);
	return s.text;
}
