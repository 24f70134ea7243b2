// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/verdict.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/inside.h"
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/version.h"
#include "ctrl/xds/wire.h"
#include "lb/base/container_of.h"

#include <stddef.h>
#include <stdlib.h>

#define LET_GO_NS UINT64_C(5000000000) // what a server deletes is let go within this, or it is odd
#define CODE_NOT_FOUND 5
#define CODE_PERMISSION_DENIED 7

void xds_entry_answered(struct xds_entry *e)
{
	e->seen = e->client->n_events;
	e->answered = true;
	xds_chain_remove(&e->in_flight);
	twheel_cancel(e->client->conf.wheel, &e->absent);
}

void xds_entry_drop_value(struct xds_entry *e)
{
	xds_res_put(e->value);
	e->value = NULL;
	xds_version_put(e->version);
	e->version = NULL;
	e->updated_ns = 0;
	xds_entry_hold_for_good(e);
}

void xds_entry_fail(struct xds_entry *e, enum xds_status status, enum xds_code code, bool is_data)
{
	e->status = status;
	e->error_code = code;
	e->error_is_data = is_data;
	if (e->trouble)
		e->trouble->error_ns = twheel_now(e->client->conf.wheel);
	if (e->value && is_data && e->client->server->fail_on_data_errors)
		xds_entry_drop_value(e);
	e->ambient = e->value;
	xds_client_add_news(e, e->value ? XDS_NEWS_AMBIENT : XDS_NEWS_ERROR);
}

int xds_entry_hold(struct xds_entry *e, uint64_t expires_ns)
{
	if (expires_ns == 0) {
		xds_entry_hold_for_good(e);
		return 0;
	}
	int rc = xds_entry_hold_until(e, expires_ns);
	if (rc) {
		xds_version_put(e->version);
		e->version = NULL;
	}
	return rc;
}

void xds_entry_accept(struct xds_entry *e, const struct xds_variant *v)
{
	// SW-16: same content, no event; but an error that was told is over (SW-17).
	struct xds_res *res = v->content;
	bool same = e->value && xds_res_eq(e->value, res);
	bool is_news = !same || e->client->conf.types[e->type]->is_opaque;
	if (e->value != res) { // though it be the same: respond.c looks at which object it is
		xds_res_put(e->value);
		e->value = xds_res_get(res);
	}
	if (is_news) {
		xds_client_add_news(e, XDS_NEWS_RESOURCE);
	} else if (e->ambient) {
		xds_client_add_news(e, XDS_NEWS_CLEAR);
	}
	xds_entry_end_deletion(e, "is there again");
	e->ambient = false;
	e->status = XDS_STATUS_ACKED;
	e->updated_ns = twheel_now(e->client->conf.wheel);
	xds_version_put(e->version);
	e->version = xds_version_get(v->version);
	xds_entry_clear_trouble(e);
	e->error_code = XDS_OK;
	e->error_is_data = false;
}

void xds_entry_refuse(
	struct xds_entry *e, const char *version, const char *why, struct xds_refused *refused)
{
	const struct xds_client *c = e->client;
	xds_entry_set_error(e, "%s \"%s\" from xDS server %s is invalid: %s (node id \"%s\")",
		c->conf.types[e->type]->label, e->sub->name, c->server->uri, why,
		c->conf.bootstrap->node_id);
	if (e->trouble) {
		xds_set_text(&e->trouble->error_version, "%s", version);
		e->trouble->refused = xds_refused_get(refused);
	}
	xds_entry_fail(e, XDS_STATUS_NACKED, XDS_INVALID_ARGUMENT, true);
}

void xds_entry_refuse_with_all(struct xds_entry *e, const char *version, const char *twice)
{
	const struct xds_client *c = e->client;
	const char *label = c->conf.types[e->type]->label;
	xds_entry_answered(e);
	xds_entry_set_error(e,
		"%s \"%s\" from xDS server %s came in a response that lists %s \"%.*s\" more than "
		"once, of which nothing is used (node id \"%s\")",
		label, e->sub->name, c->server->uri, label, XDS_SHOWN_NAME_LEN, twice,
		c->conf.bootstrap->node_id);
	if (e->trouble)
		xds_set_text(&e->trouble->error_version, "%s", version);
	xds_entry_fail(e, XDS_STATUS_NACKED, XDS_INVALID_ARGUMENT, false);
}

// DE-06: it is as if nothing had been said, but for one line when it begins and one when it ends.
static void ignore_deletion(struct xds_entry *e)
{
	const struct xds_client *c = e->client;
	if (!e->ignores_deletion && e->watchers.first)
		xds_client_log(e->client,
			"%s \"%s\" was deleted by xDS server %s, which is ignored",
			c->conf.types[e->type]->label, e->sub->name, c->server->uri);
	e->ignores_deletion = true;
}

void xds_entry_end_deletion(struct xds_entry *e, const char *why)
{
	const struct xds_client *c = e->client;
	if (e->ignores_deletion)
		xds_client_log(e->client,
			"%s \"%s\", whose deletion by xDS server %s was ignored, %s",
			c->conf.types[e->type]->label, e->sub->name, c->server->uri, why);
	e->ignores_deletion = false;
}

// DL-06, DE-06: a deletion, in whichever words, concerns its value.
static bool drops_value(const struct xds_entry *e)
{
	return e->client->conf.drops_deleted && e->value;
}

static void deletion_outlived(struct twheel_timer *timer)
{
	const struct xds_trouble *t = CONTAINER_OF(timer, struct xds_trouble, outlived);
	const struct xds_entry *e = t->entry;
	if (e->status == XDS_STATUS_DOES_NOT_EXIST && e->watchers.first)
		xds_client_log(e->client, "%s, but is in use still", t->error ? t->error : "");
}

// A resource that goes is mostly let go of in a moment: by the routes that come after the clusters,
// say. Only of one that is in use nevertheless, or whose value is gone, is there a word to be said.
static void log_deletion(struct xds_entry *e)
{
	struct xds_client *c = e->client;
	struct xds_trouble *t = e->trouble;
	if (!t || !e->watchers.first)
		return;
	if (!e->value) {
		xds_client_log(c, "%s", t->error ? t->error : "");
		return;
	}
	t->outlived.fire = deletion_outlived;
	twheel_arm(c->conf.wheel, &t->outlived, twheel_now(c->conf.wheel) + LET_GO_NS);
}

void xds_entry_end(struct xds_entry *e)
{
	struct xds_client *c = e->client;
	bool drops = drops_value(e);
	xds_entry_answered(e);
	if (e->error_code == XDS_NOT_FOUND && !drops) // told already (DE-09)
		return;
	if (drops && c->server->ignore_resource_deletion) {
		ignore_deletion(e);
		return;
	}
	xds_entry_set_error(e, "%s \"%s\" %s xDS server %s (node id \"%s\")",
		c->conf.types[e->type]->label, e->sub->name,
		e->value ? "was deleted by" : "does not exist on", c->server->uri,
		c->conf.bootstrap->node_id);
	if (drops)
		xds_entry_drop_value(e);
	xds_entry_fail(e, XDS_STATUS_DOES_NOT_EXIST, XDS_NOT_FOUND, true);
	log_deletion(e);
}

void xds_entry_report(struct xds_entry *e, const char *version, const struct xds_response_error *in)
{
	const struct xds_client *c = e->client;
	bool not_found = in->code == CODE_NOT_FOUND, drops = not_found && drops_value(e);
	xds_entry_answered(e);
	if (drops && c->server->ignore_resource_deletion) {
		ignore_deletion(e);
		return;
	}
	xds_entry_set_error(e,
		"%s \"%s\": xDS server %s answered with code %d: %s (node id \"%s\")",
		c->conf.types[e->type]->label, e->sub->name, c->server->uri, in->code, in->text,
		c->conf.bootstrap->node_id);
	struct xds_trouble *t = e->trouble;
	if (t) {
		xds_set_text(&t->error_version, "%s", version);
		t->said_code = in->code;
		xds_set_text(&t->said, "%s", in->text);
		xds_constraints_put(t->said_of);
		t->said_of = xds_constraints_get(in->constraints);
	}
	if (drops)
		xds_entry_drop_value(e);
	xds_entry_fail(e, XDS_STATUS_RECEIVED_ERROR, not_found ? XDS_NOT_FOUND : XDS_UNAVAILABLE,
		not_found || in->code == CODE_PERMISSION_DENIED);
}
