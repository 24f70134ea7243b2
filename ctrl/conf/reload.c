// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/reload.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_diff.h"
#include "ctrl/conf/config_rows.h"
#include "lb/base/log.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// By what they come to, so that a default differs from no value that says the same.
struct value {
	const char *field;
	size_t offset, size; // in struct config
};
#define VALUE(field, member)                                                                       \
	{                                                                                          \
		field, offsetof(struct config, member), sizeof(((struct config *)0)->member)       \
	}

static const struct value live[] = {
	VALUE("log.level", log_level),
	VALUE("drain_s", drain_s),
	VALUE("lame_duck_s", lame_duck_s),
	VALUE("listener_drain_s", listener_drain_s),
	VALUE("limits.streams", max_streams),
	VALUE("limits.client_buffer_kib", client_buffer_kib),
	VALUE("limits.idle_timeout_s", idle_timeout_s),
	VALUE("limits.max_connection_age_s", max_connection_age_s),
	VALUE("limits.max_connection_age_grace_s", max_connection_age_grace_s),
	VALUE("limits.stream_idle_timeout_s", stream_idle_timeout_s),
	VALUE("clients.tcp_user_timeout_s", client_silence.tcp_user_timeout_s),
	VALUE("clients.tcp_keepalive_time_s", client_silence.tcp_keepalive_time_s),
	VALUE("clients.keepalive_interval_s", client_silence.keepalive_interval_s),
	VALUE("clients.keepalive_timeout_s", client_silence.keepalive_timeout_s),
	VALUE("backends.tcp_user_timeout_s", backend_silence.tcp_user_timeout_s),
	VALUE("backends.tcp_keepalive_time_s", backend_silence.tcp_keepalive_time_s),
	VALUE("backends.keepalive_interval_s", backend_silence.keepalive_interval_s),
	VALUE("backends.keepalive_timeout_s", backend_silence.keepalive_timeout_s),
	VALUE("retries.max_attempts", max_attempts),
	VALUE("retries.idempotent", retry_idempotent),
};
#define N_LIVE (sizeof(live) / sizeof(live[0]))

// Of the same mappings: memory that workers take at their start, and what streams of xDS begin
// with.
static const struct value fixed[] = {
	VALUE("limits.connections", max_connections),
	VALUE("limits.requests", max_requests),
	VALUE("limits.buffers_mib", max_buffers_mib),
	VALUE("limits.xds_resources", max_xds_resources),
	VALUE("limits.xds_response_mib", max_xds_response_mib),
};
#define N_FIXED (sizeof(fixed) / sizeof(fixed[0]))

static const void *value_at(const struct config *c, const struct value *v)
{
	return (const char *)c + v->offset;
}

static bool differs(const struct config *a, const struct config *b, const struct value *v)
{
	return memcmp(value_at(a, v), value_at(b, v), v->size) != 0;
}

// The field, or one of the mapping or list.
static bool is_of(const char *field, const char *mapping)
{
	size_t len = strlen(mapping);
	return strncmp(field, mapping, len) == 0 &&
	       (field[len] == 0 || field[len] == '.' || field[len] == '[');
}

// Of the rows above.
static bool is_value(const char *field)
{
	static const char *const mappings[] = {"log", "limits", "clients", "backends", "retries",
		"drain_s", "lame_duck_s", "listener_drain_s"};
	for (size_t i = 0; i < sizeof(mappings) / sizeof(mappings[0]); i++)
		if (is_of(field, mappings[i]))
			return true;
	return false;
}

bool reload_applies(const char *field)
{
	for (size_t i = 0; i < N_LIVE; i++)
		if (strcmp(field, live[i].field) == 0)
			return true;
	return is_of(field, "csds") || is_of(field, "vips") || is_of(field, "frontends");
}

static void add(struct reload_fields *f, const char *field)
{
	size_t len = strlen(f->text), room = sizeof(f->text) - len;
	if (strlen(field) + 3 > room)
		f->n_more++;
	else
		snprintf(f->text + len, room, "%s%s", len ? ", " : "", field);
}

struct comparison {
	struct reload_report *report;
	struct reload_parts parts;
	struct config_rows_plan frontends;
};

static void note(void *ctx, const char *field)
{
	struct comparison *c = ctx;
	if (is_value(field) || is_of(field, "frontends")) // which is another list in each
		return;
	bool is_csds = is_of(field, "csds"), is_vips = is_of(field, "vips");
	c->parts.has_csds |= is_csds;
	c->parts.has_vips |= is_vips;
	add(is_csds || is_vips ? &c->report->changed : &c->report->needs_restart, field);
}

static void note_other(void *ctx, const char *field, bool needs_restart)
{
	struct comparison *c = ctx;
	add(needs_restart ? &c->report->needs_restart : &c->report->changed, field);
}

// 0 or -ENOMEM.
static int compare(struct comparison *c, const struct config *running, const struct config *new)
{
	for (size_t i = 0; i < N_LIVE; i++)
		if (differs(running, new, &live[i]))
			add(&c->report->changed, live[i].field);
	for (size_t i = 0; i < N_FIXED; i++)
		if (differs(running, new, &fixed[i]))
			add(&c->report->needs_restart, fixed[i].field);
	config_diff(running, new, note, c);
	c->parts.frontends = &c->frontends;
	return config_rows_plan(&c->frontends, running, new, note_other, c);
}

// What `running` has had goes with `new`.
static void take(struct config *running, struct config *new)
{
	for (size_t i = 0; i < N_LIVE; i++)
		memcpy((char *)running + live[i].offset, value_at(new, &live[i]), live[i].size);
	struct config_csds *csds = running->csds;
	running->csds = new->csds;
	new->csds = csds;
	struct config_vip *vips = running->vips;
	unsigned n_vips = running->n_vips;
	running->vips = new->vips;
	running->n_vips = new->n_vips;
	new->vips = vips;
	new->n_vips = n_vips;
}

static void apply(
	const struct reloader *r, struct config *new, const struct comparison *c, const char *by)
{
	enum log_level was = r->config->log_level;
	take(r->config, new);
	if (r->apply)
		r->apply(r->ctx, new, &c->parts);
	if (new->log_level > was) // else the line would be lost with the old level, or the new one
		log_set_level(new->log_level);
	log_info("reloaded", "log_level=%s drain_s=%u lame_duck_s=%u changed=%s and_more=%u %s",
		log_level_name(new->log_level), new->drain_s, new->lame_duck_s,
		log_quote(c->report->changed.text), c->report->changed.n_more, by);
	log_set_level(new->log_level);
}

// A FIFO would have the control thread wait for a writer.
static struct config *load(const char *path, struct lb_err *reterr)
{
	struct stat s;
	if (stat(path, &s) != 0 || S_ISREG(s.st_mode) || S_ISDIR(s.st_mode))
		return config_load(path, reterr); // which says what is wrong
	lb_err_set(reterr, "%s: is not a regular file", path);
	return NULL;
}

// 0, or negative with the report's error.
static int prepare(const struct reloader *r, const struct config *new, const struct comparison *c)
{
	struct lb_err *err = &c->report->err;
	bool is_any = c->parts.has_csds || c->parts.has_vips || c->frontends.is_any;
	if (!is_any || !r->prepare || r->prepare(r->ctx, new, &c->parts, err) == 0)
		return 0;
	return lb_err_within(err, "%s", r->path);
}

static int learn(const struct reloader *r, struct comparison *c)
{
	return r->learn ? r->learn(r->ctx, note_other, c, &c->report->err) : 0;
}

static void refuse(struct reload_report *ret, const char *by)
{
	struct lb_err err = ret->err;
	if (!err.text[0])
		lb_err_set(&err, "out of memory");
	*ret = (struct reload_report){.err = err};
	log_error("reload refused", "error=%s %s", log_quote(err.text), by);
}

static void tell(const struct reload_report *r, const char *by)
{
	const struct reload_fields *f = &r->needs_restart;
	if (f->text[0])
		log_warn("reload", "needs_restart=%s and_more=%u %s", log_quote(f->text), f->n_more,
			by);
	else if (!r->changed.text[0])
		log_info("reload", "text=\"nothing to do\" %s", by);
}

static void tell_pending(const struct config *c, struct reload_fields *ret, const char *by)
{
	for (unsigned i = 0; i < c->n_frontends; i++)
		if (c->frontends[i].next)
			add(ret, c->frontends[i].name);
	if (ret->text[0])
		log_info("reload", "pending=%s and_more=%u %s", log_quote(ret->text), ret->n_more,
			by);
}

void reload(const struct reloader *r, const char *by, struct reload_report *ret)
{
	*ret = (struct reload_report){.err = {.text = ""}};
	struct comparison c = {.report = ret};
	bool may = !r->check || r->check(r->ctx, &ret->err) == 0;
	struct config *new = may ? load(r->path, &ret->err) : NULL;
	if (!new || compare(&c, r->config, new) || learn(r, &c) || prepare(r, new, &c)) {
		refuse(ret, by);
	} else {
		tell(ret, by);
		if (ret->changed.text[0])
			apply(r, new, &c, by);
		tell_pending(r->config, &ret->pending, by);
	}
	config_rows_plan_fini(&c.frontends);
	config_free(new);
}
