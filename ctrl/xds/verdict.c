// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/verdict.h"

#include "ctrl/base/text.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/news.h"
#include "ctrl/xds/variants/version.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#define LET_GO_NS (5 * NS_PER_SECOND) // what a server deletes is let go within this, or it is odd
#define CODE_NOT_FOUND 5
#define CODE_PERMISSION_DENIED 7

void xds_entry_fail(struct xds_entry *e, enum xds_status status, enum xds_code code, bool is_data)
{
	e->status = status;
	e->error_code = code;
	e->error_is_data = is_data;
	e->has_expired = false;
	xds_entry_set_stale(e, false); // though the value stays: this is its server's word
	if (e->trouble)
		e->trouble->error_ns = twheel_now(e->cache->conf->wheel);
	if (e->value && is_data && e->cache->server->fail_on_data_errors)
		xds_entry_drop_value(e);
	e->ambient = e->value;
	xds_news_add(e, e->value ? XDS_NEWS_AMBIENT : XDS_NEWS_ERROR);
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
	bool is_news = !same || e->cache->conf->types[e->type]->is_opaque;
	if (e->value != res) { // though it be the same: respond.c looks at which object it is
		xds_res_put(e->value);
		e->value = xds_res_get(res);
	}
	if (is_news) {
		xds_news_add(e, XDS_NEWS_RESOURCE);
	} else if (e->ambient) {
		xds_news_add(e, XDS_NEWS_CLEAR);
	}
	xds_entry_end_deletion(e, "is there again");
	e->ambient = e->is_kept = false;
	xds_entry_set_stale(e, false);
	e->status = XDS_STATUS_ACKED;
	e->updated_ns = twheel_now(e->cache->conf->wheel);
	xds_version_put(e->version);
	e->version = xds_version_get(v->version);
	xds_entry_clear_trouble(e);
	e->error_code = XDS_OK;
	e->error_is_data = false;
}

void xds_entry_restore(struct xds_entry *e, const struct xds_variant *v)
{
	if (e->value || e->error_code != XDS_OK)
		return;
	e->value = xds_res_get(v->content);
	e->version = xds_version_get(v->version);
	e->is_kept = true;
	xds_entry_set_stale(e, true);
	e->ambient = e->cache->failure;
	xds_news_add(e, e->ambient ? XDS_NEWS_RESOURCE_AMBIENT : XDS_NEWS_RESOURCE);
}

void xds_entry_refuse(
	struct xds_entry *e, const char *version, const char *why, struct xds_refused *refused)
{
	const struct xds_cache *c = e->cache;
	xds_entry_set_error(e, "%s \"%s\" from xDS server %s is invalid: %s (node id \"%s\")",
		c->conf->types[e->type]->label, e->sub->name, c->server->uri, why,
		c->conf->bootstrap->node_id);
	xds_entry_set_rejected(e, version, refused);
	xds_entry_fail(e, XDS_STATUS_NACKED, XDS_INVALID_ARGUMENT, true);
}

void xds_entry_refuse_with_all(struct xds_entry *e, const char *version, const char *twice)
{
	const struct xds_cache *c = e->cache;
	const char *label = c->conf->types[e->type]->label;
	xds_entry_answered(e);
	xds_entry_set_error(e,
		"%s \"%s\" from xDS server %s came in a response that lists %s \"%.*s\" more than "
		"once, of which nothing is used (node id \"%s\")",
		label, e->sub->name, c->server->uri, label, XDS_SHOWN_NAME_LEN, twice,
		c->conf->bootstrap->node_id);
	xds_entry_set_rejected(e, version, NULL);
	xds_entry_fail(e, XDS_STATUS_NACKED, XDS_INVALID_ARGUMENT, false);
}

void xds_entry_refuse_unread(struct xds_entry *e, const char *version, const char *why)
{
	const struct xds_cache *c = e->cache;
	xds_entry_answered(e);
	xds_entry_set_error(e, "%s \"%s\" from xDS server %s was not read: %s (node id \"%s\")",
		c->conf->types[e->type]->label, e->sub->name, c->server->uri, why,
		c->conf->bootstrap->node_id);
	xds_entry_set_rejected(e, version, NULL);
	xds_entry_fail(e, XDS_STATUS_NACKED, XDS_INVALID_ARGUMENT, false);
}

// DE-06: it is as if nothing had been said, but for one line when it begins and one when it ends.
static void ignore_deletion(struct xds_entry *e)
{
	const struct xds_cache *c = e->cache;
	if (!e->ignores_deletion && !TAILQ_EMPTY(&e->watchers))
		xds_cache_log(e->cache, "%s \"%s\" was deleted by xDS server %s, which is ignored",
			c->conf->types[e->type]->label, e->sub->name, c->server->uri);
	e->ignores_deletion = true;
	xds_entry_set_stale(e, false);
}

void xds_entry_end_deletion(struct xds_entry *e, const char *why)
{
	const struct xds_cache *c = e->cache;
	if (e->ignores_deletion)
		xds_cache_log(e->cache,
			"%s \"%s\", whose deletion by xDS server %s was ignored, %s",
			c->conf->types[e->type]->label, e->sub->name, c->server->uri, why);
	e->ignores_deletion = false;
}

// DL-06, DE-06: a deletion, in whichever words, concerns its value.
static bool drops_value(const struct xds_entry *e)
{
	return e->cache->conf->drops_deleted && e->value;
}

static void deletion_outlived(struct twheel_timer *timer)
{
	const struct xds_trouble *t = CONTAINER_OF(timer, struct xds_trouble, outlived);
	const struct xds_entry *e = t->entry;
	if (e->status == XDS_STATUS_DOES_NOT_EXIST && !TAILQ_EMPTY(&e->watchers))
		xds_cache_log(e->cache, "%s, but is in use still", text_or_empty(t->error));
}

// A resource that goes is mostly let go of in a moment: by the routes that come after the clusters,
// say. Only of one that is in use nevertheless, or whose value is gone, is there a word to be said.
static void log_deletion(struct xds_entry *e)
{
	struct xds_cache *c = e->cache;
	struct xds_trouble *t = e->trouble;
	if (!t || TAILQ_EMPTY(&e->watchers))
		return;
	if (!e->value) {
		xds_cache_log(c, "%s", text_or_empty(t->error));
		return;
	}
	t->outlived.fire = deletion_outlived;
	twheel_arm(c->conf->wheel, &t->outlived, twheel_now(c->conf->wheel) + LET_GO_NS);
}

void xds_entry_end(struct xds_entry *e)
{
	struct xds_cache *c = e->cache;
	bool drops = drops_value(e);
	xds_entry_answered(e);
	if (e->error_code == XDS_NOT_FOUND && !drops && !e->is_stale) // told already (DE-09)
		return;
	if (drops && c->server->ignore_resource_deletion) {
		ignore_deletion(e);
		return;
	}
	xds_entry_set_error(e, "%s \"%s\" %s xDS server %s (node id \"%s\")",
		c->conf->types[e->type]->label, e->sub->name,
		e->value ? "was deleted by" : "does not exist on", c->server->uri,
		c->conf->bootstrap->node_id);
	if (drops)
		xds_entry_drop_value(e);
	xds_entry_fail(e, XDS_STATUS_DOES_NOT_EXIST, XDS_NOT_FOUND, true);
	log_deletion(e);
}

void xds_entry_report(struct xds_entry *e, const char *version, const struct xds_report *in)
{
	const struct xds_cache *c = e->cache;
	bool not_found = in->code == CODE_NOT_FOUND, drops = not_found && drops_value(e);
	xds_entry_answered(e);
	if (drops && c->server->ignore_resource_deletion) {
		ignore_deletion(e);
		return;
	}
	xds_entry_set_error(e,
		"%s \"%s\": xDS server %s answered with code %d: %s (node id \"%s\")",
		c->conf->types[e->type]->label, e->sub->name, c->server->uri, in->code, in->text,
		c->conf->bootstrap->node_id);
	xds_entry_set_rejected(e, version, NULL);
	xds_entry_set_said(e, in->code, in->text, in->constraints);
	if (drops)
		xds_entry_drop_value(e);
	xds_entry_fail(e, XDS_STATUS_RECEIVED_ERROR, not_found ? XDS_NOT_FOUND : XDS_UNAVAILABLE,
		not_found || in->code == CODE_PERMISSION_DENIED);
}

// There is no answer, and none is waited for.
static void fail_unanswered(struct xds_entry *e)
{
	bool is_known = xds_entry_is_presumed(e); // and was logged as that
	if (e->cache->server->timer_is_transient_error)
		xds_entry_fail(e, XDS_STATUS_TIMEOUT, XDS_UNAVAILABLE, false);
	else
		xds_entry_fail(e, XDS_STATUS_DOES_NOT_EXIST, XDS_NOT_FOUND, true);
	if (!is_known)
		xds_cache_log(e->cache, "%s", text_or_empty(xds_entry_trouble(e)->error));
}

void xds_entry_presume_absent(struct xds_entry *e)
{
	const struct xds_cache *c = e->cache;
	xds_entry_set_error(e,
		"%s \"%s\" was not on xDS server %s in an earlier run, and the server has said "
		"nothing of it since (node id \"%s\")",
		c->conf->types[e->type]->label, e->sub->name, c->server->uri,
		c->conf->bootstrap->node_id);
	fail_unanswered(e);
	xds_entry_set_stale(e, true);
	xds_entry_await_anew(e); // the whole time
}

void xds_entry_silent(struct xds_entry *e)
{
	const struct xds_cache *c = e->cache;
	bool transient = c->server->timer_is_transient_error;
	xds_entry_set_error(e,
		"%s \"%s\": no answer from xDS server %s within %" PRIu64 " s (node id \"%s\")",
		c->conf->types[e->type]->label, e->sub->name, c->server->uri,
		xds_entry_patience_ns(e) / NS_PER_SECOND, c->conf->bootstrap->node_id);
	if (!transient && drops_value(e) && !c->server->ignore_resource_deletion) // it is stale
		xds_entry_drop_value(e);
	fail_unanswered(e);
}

void xds_entry_expired(struct xds_entry *e)
{
	const struct xds_cache *c = e->cache;
	xds_entry_set_error(e, "%s \"%s\" from xDS server %s has expired (node id \"%s\")",
		c->conf->types[e->type]->label, e->sub->name, c->server->uri,
		c->conf->bootstrap->node_id);
	xds_entry_drop_value(e);
	xds_entry_fail(e, XDS_STATUS_DOES_NOT_EXIST, XDS_NOT_FOUND, true);
	e->has_expired = true;
	xds_cache_log(c, "%s", text_or_empty(xds_entry_trouble(e)->error));
}

void xds_entry_server_failed(struct xds_entry *e)
{
	if (xds_entry_waits(e))
		return;
	e->ambient = e->value;
	xds_news_add(e, e->value ? XDS_NEWS_AMBIENT : XDS_NEWS_ERROR);
}

void xds_entry_server_recovered(struct xds_entry *e)
{
	if (!e->ambient || xds_entry_trouble(e)->error)
		return;
	e->ambient = false;
	xds_news_add(e, XDS_NEWS_CLEAR);
}
