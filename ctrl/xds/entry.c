// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/entry.h"

#include "ctrl/base/text.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/bootstrap/name.h"
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/version.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ABSENT_NS (15 * NS_PER_SECOND) // FM-04
#define ABSENT_TRANSIENT_NS (30 * NS_PER_SECOND) // FM-08
#define PRESUMED_NS (NS_PER_SECOND / 4) // OPS-280: in which a server that is there has answered

static struct twheel *wheel_of(const struct xds_entry *e)
{
	return e->cache->conf->wheel;
}

// Birth and end

static void on_absent(struct twheel_timer *t)
{
	struct xds_entry *e = CONTAINER_OF(t, struct xds_entry, absent);
	e->cache->on_silence(e);
}

struct xds_entry *xds_entry_new(struct xds_cache *cache, uint32_t type)
{
	struct xds_entry *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->cache = cache;
	e->type = type & (XDS_MAX_TYPES - 1);
	e->status = XDS_STATUS_REQUESTED;
	e->absent.fire = on_absent;
	TAILQ_INIT(&e->watchers);
	return e;
}

void xds_entry_free(struct xds_entry *e)
{
	xds_entry_set_stale(e, false);
	xds_res_put(e->value);
	xds_version_put(e->version);
	xds_entry_clear_trouble(e);
	free(e);
}

void xds_entry_drop(struct xds_entry *e)
{
	xds_entry_cancel_timers(e);
	if (e->news == XDS_NEWS_NONE)
		xds_entry_free(e);
	else
		e->dead = true;
}

void xds_entry_cancel_timers(struct xds_entry *e)
{
	twheel_cancel(wheel_of(e), &e->absent);
	xds_entry_hold_for_good(e);
}

bool xds_entry_is_wildcard(const struct xds_entry *e)
{
	return xds_name_is_wildcard(e->sub->name);
}

// What the server has said

void xds_entry_answered(struct xds_entry *e)
{
	e->seen = e->cache->n_events;
	e->answered = true;
	if (e->was_absent)
		e->cache->on_answered(e);
	e->was_absent = false;
	list_remove(&e->in_flight);
	twheel_cancel(wheel_of(e), &e->absent);
}

static bool is_held(const struct xds_entry *e)
{
	for (const struct xds_watcher *w = TAILQ_FIRST(&e->watchers); w; w = TAILQ_NEXT(w, link))
		if (!w->held)
			return false;
	return !TAILQ_EMPTY(&e->watchers);
}

uint64_t xds_entry_patience_ns(const struct xds_entry *e)
{
	return e->cache->server->timer_is_transient_error ? ABSENT_TRANSIENT_NS : ABSENT_NS;
}

bool xds_entry_may_presume(const struct xds_entry *e)
{
	return e->was_absent && !e->value && e->error_code == XDS_OK;
}

bool xds_entry_is_presumed(const struct xds_entry *e)
{
	return e->is_stale && !e->value;
}

void xds_entry_await(struct xds_entry *e)
{
	bool is_told = e->status == XDS_STATUS_DOES_NOT_EXIST && !e->is_stale;
	uint64_t ns = xds_entry_may_presume(e) ? PRESUMED_NS : xds_entry_patience_ns(e);
	// What is cached needs no answer (FM-05, DL-13), and "*" is nothing that may be absent.
	if (is_held(e) || (e->value && !e->is_stale) || e->answered || xds_entry_is_wildcard(e) ||
		is_told || twheel_armed(&e->absent))
		return;
	twheel_arm(wheel_of(e), &e->absent, twheel_now(wheel_of(e)) + ns);
}

void xds_entry_await_anew(struct xds_entry *e)
{
	twheel_cancel(wheel_of(e), &e->absent);
	if (e->asked)
		xds_entry_await(e);
}

void xds_entry_forget(struct xds_entry *e)
{
	xds_entry_drop_value(e);
	xds_entry_clear_trouble(e);
	e->error_code = XDS_OK;
	e->error_is_data = e->ambient = e->ignores_deletion = e->was_absent = false;
	e->status = XDS_STATUS_REQUESTED;
	e->answered = false;
	twheel_cancel(wheel_of(e), &e->absent);
}

// The value

void xds_entry_drop_value(struct xds_entry *e)
{
	xds_res_put(e->value);
	e->value = NULL;
	xds_version_put(e->version);
	e->version = NULL;
	e->updated_ns = 0;
	e->is_kept = false;
	xds_entry_set_stale(e, false);
	xds_entry_hold_for_good(e);
}

void xds_entry_set_stale(struct xds_entry *e, bool is_stale)
{
	e->cache->n_stale += is_stale;
	e->cache->n_stale -= e->is_stale;
	e->is_stale = is_stale;
}

static void lease_over(struct twheel_timer *t)
{
	struct xds_entry *e = CONTAINER_OF(t, struct xds_ttl, timer)->entry;
	e->cache->on_expiry(e);
}

bool xds_entry_waits(const struct xds_entry *e)
{
	return e->cache->stands_by && !e->is_looked_up && !e->value;
}

bool xds_watcher_is_stale(const struct xds_watcher *w)
{
	return w->entry && w->entry->is_stale;
}

bool xds_watcher_waits(const struct xds_watcher *w)
{
	return w->entry && xds_entry_waits(w->entry);
}

int xds_entry_hold_until(struct xds_entry *e, uint64_t expires_ns)
{
	if (!e->ttl)
		e->ttl = calloc(1, sizeof(*e->ttl));
	if (!e->ttl)
		return -ENOMEM;
	e->ttl->timer.fire = lease_over;
	e->ttl->entry = e;
	e->ttl->expires_ns = expires_ns;
	twheel_arm(wheel_of(e), &e->ttl->timer, expires_ns);
	return 0;
}

void xds_entry_hold_for_good(struct xds_entry *e)
{
	if (!e->ttl)
		return;
	twheel_cancel(wheel_of(e), &e->ttl->timer);
	free(e->ttl);
	e->ttl = NULL;
}

// What is wrong with it

const struct xds_trouble *xds_entry_trouble(const struct xds_entry *e)
{
	static const struct xds_trouble none;
	return e->trouble ? e->trouble : &none;
}

static struct xds_trouble *make_trouble(struct xds_entry *e)
{
	if (!e->trouble)
		e->trouble = calloc(1, sizeof(*e->trouble));
	if (e->trouble)
		e->trouble->entry = e;
	return e->trouble;
}

static void clear_rejected(struct xds_entry *e)
{
	struct xds_trouble *t = e->trouble;
	if (!t)
		return;
	free(t->error_version);
	t->error_version = NULL;
	xds_refused_put(t->refused);
	t->refused = NULL;
}

// Takes the text; keeps the old one when there is none for want of memory.
static void replace(char **at, char *text)
{
	if (!text)
		return;
	free(*at);
	*at = text;
}

void xds_entry_set_error(struct xds_entry *e, const char *fmt, ...)
{
	struct xds_trouble *t = make_trouble(e);
	char *text;
	va_list args;
	va_start(args, fmt);
	if (t && vasprintf(&text, fmt, args) >= 0)
		replace(&t->error, text);
	va_end(args);
	clear_rejected(e);
}

void xds_entry_set_rejected(struct xds_entry *e, const char *version, struct xds_refused *refused)
{
	struct xds_trouble *t = e->trouble;
	if (!t)
		return;
	replace(&t->error_version, strdup(version));
	t->refused = xds_refused_get(refused);
}

void xds_entry_set_said(
	struct xds_entry *e, int32_t code, const char *text, struct xds_constraints *constraints)
{
	struct xds_trouble *t = e->trouble;
	if (!t)
		return;
	t->said_code = code;
	replace(&t->said, strdup(text));
	xds_constraints_put(t->said_of);
	t->said_of = xds_constraints_get(constraints);
}

void xds_entry_clear_trouble(struct xds_entry *e)
{
	clear_rejected(e);
	if (e->trouble) {
		free(e->trouble->error);
		free(e->trouble->said);
		xds_constraints_put(e->trouble->said_of);
		twheel_cancel(wheel_of(e), &e->trouble->outlived);
	}
	free(e->trouble);
	e->trouble = NULL;
}

// For operators

void xds_entry_info(const struct xds_entry *e, struct xds_entry_info *ret)
{
	const struct xds_trouble *t = xds_entry_trouble(e);
	*ret = (struct xds_entry_info){
		.type = e->cache->conf->types[e->type],
		.name = e->sub->name,
		.status = e->status,
		.res = e->value,
		.version = text_or_empty(e->version),
		.updated_ns = e->updated_ns,
		.expires_ns = e->ttl ? e->ttl->expires_ns : 0,
		.error = text_or_empty(t->error),
		.error_code = e->error_code,
		.error_is_data = e->error_is_data,
		.error_version = text_or_empty(t->error_version),
		.refused = t->refused,
		.error_ns = t->error_ns,
		.is_kept = e->is_kept,
		.is_stale = e->is_stale,
	};
}

void xds_entry_word(const struct xds_entry *e, struct xds_word *ret)
{
	const struct xds_trouble *t = xds_entry_trouble(e);
	*ret = (struct xds_word){
		.variant = e->sub->variant,
		.status = e->status,
		.code = t->said_code,
		.text = text_or_empty(t->said),
		.constraints = t->said_of,
	};
}
