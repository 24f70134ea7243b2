// SPDX-License-Identifier: Apache-2.0
// `wait`: an answer that comes when something is so (OPS-76). It is looked at several times a
// second, as for those who follow a log, so that nothing is held up and a client that goes is gone.
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/drains.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/answer.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/stats/stats_server.h"
#include "ctrl/xds/federation.h"
#include "lb/base/container_of.h"
#include "lb/base/str.h"
#include "lb/base/twheel.h"

#include <event2/buffer.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FALLBACK_S 30
#define MOST_S 3600
#define VERSION_MAX 128

enum outcome {
	WAIT_MET,
	WAIT_MISSING, // the text says what
	WAIT_HOPELESS, // the text says why
};

struct wait {
	struct stats_follow follow;
	const struct show *show;
	enum outcome (*look)(struct wait *, struct lb_err *ret);
	uint64_t begun_ns, until_ns;
	bool json;
	bool was_met; // when it was last looked at
	char version[VERSION_MAX];
};

static const char *frontend_name(const struct show *s, uint32_t i)
{
	return s->conf.config->frontends[i].name;
}

static enum outcome missing(struct lb_err *ret)
{
	return ret->text[0] ? WAIT_MISSING : WAIT_MET;
}

// The first frontend that drains and is not done with it.
static void tell_draining(const struct show *s, struct lb_err *ret)
{
	for (uint32_t i = 0; i < s->conf.config->n_frontends && !ret->text[0]; i++) {
		struct drain_info info;
		drains_look(s->conf.drains, i, &info);
		if (info.phase == DRAIN_LAME_DUCK || info.phase == DRAIN_LEAVING)
			lb_err_set(ret,
				"frontend %s is %s: %" PRIu64 " clients are left, and %.0f s",
				frontend_name(s, i), drain_phase_name(info.phase), info.n_clients,
				show_seconds(info.left_ns));
	}
}

static enum outcome look_for_drained(struct wait *w, struct lb_err *ret)
{
	bool stops = drains_stopped(w->show->conf.drains); // as a whole, whoever drained what
	if (stops || !drains_any(w->show->conf.drains)) {
		lb_err_set(ret, "%s",
			stops ? "the daemon is stopping, and ends once it is drained"
			      : "no frontend drains");
		return WAIT_HOPELESS;
	}
	tell_draining(w->show, ret);
	return missing(ret);
}

// What a frontend's next configuration waits for. with_next: that of another target, too, which
// readiness does not ask for (docs/decisions/next-target.md).
static void tell_waiting(const struct show *s, bool with_next, struct lb_err *ret)
{
	const struct config *c = s->conf.config;
	for (uint32_t i = 0; i < c->n_frontends && !ret->text[0]; i++) {
		if (!config_serves(c, i) || (c->frontends[i].next && !with_next))
			continue;
		const char *here = assembler_frontend_waiting(s->conf.assembler, i);
		const char *what = here[0] ? here : s->conf.waiting(s->conf.ctx, i);
		if (what[0])
			lb_err_set(ret, "frontend %s waits for %s", frontend_name(s, i), what);
	}
}

// Whoever waits for readiness behind a reload waits for those as well.
static bool has_new(const struct config *c)
{
	for (uint32_t i = 0; i < c->n_frontends; i++)
		if (config_serves(c, i) && c->frontends[i].is_new)
			return true;
	return false;
}

static enum outcome look_for_ready(struct wait *w, struct lb_err *ret)
{
	const struct show *s = w->show;
	if (s->scrape.is_ready(s->scrape.ctx) && !has_new(s->conf.config))
		return WAIT_MET;
	tell_waiting(s, false, ret);
	for (uint32_t i = 0; i < s->conf.config->n_frontends && !ret->text[0]; i++) {
		if (!config_serves(s->conf.config, i))
			continue;
		const char *error = assembler_frontend_error(s->conf.assembler, i);
		struct drain_info drain;
		drains_look(s->conf.drains, i, &drain);
		if (error[0])
			lb_err_set(ret, "frontend %s: %s", frontend_name(s, i), error);
		else if (drain.phase != DRAIN_NONE)
			lb_err_set(ret, "frontend %s is %s", frontend_name(s, i),
				drain_phase_name(drain.phase));
	}
	if (!ret->text[0])
		lb_err_set(ret, "the daemon is %s", s->state);
	return WAIT_MISSING;
}

struct search {
	const char *version;
	bool is_there; // something of that version serves
	struct lb_err refused; // why something of that version does not
};

static void look_at_resource(void *ctx, const struct xds_entry_info *e)
{
	struct search *s = ctx;
	if (strcmp(e->error_version, s->version) == 0 && !s->refused.text[0])
		lb_err_set(&s->refused, "%s %s of version %s was refused: %s", e->type->label,
			e->name, s->version, e->error);
	s->is_there |= e->res && strcmp(e->version, s->version) == 0;
}

static void tell_outdated(const struct show *s, struct lb_err *ret)
{
	uint64_t newest = assembler_snapshot_version(s->conf.assembler);
	for (uint32_t i = 0; i < workers_count(s->conf.workers) && !ret->text[0]; i++) {
		const struct lb_link *link = workers_link(s->conf.workers, i);
		uint64_t has = counter_read(&link->counters.snapshot_version);
		if (has < newest)
			lb_err_set(ret, "worker %u has snapshot %" PRIu64 " of %" PRIu64, i, has,
				newest);
	}
}

// Twice in a row, since what has just come is a snapshot only after this turn of the loop.
static enum outcome look_for_config(struct wait *w, struct lb_err *ret)
{
	struct search s = {.version = w->version};
	xds_federation_each(w->show->conf.xds, look_at_resource, &s);
	if (s.refused.text[0]) {
		*ret = s.refused;
		return WAIT_HOPELESS;
	}
	if (!s.is_there)
		lb_err_set(ret, "no resource has version %s, try show xds", w->version);
	if (!ret->text[0])
		tell_waiting(w->show, true, ret);
	if (!ret->text[0])
		tell_outdated(w->show, ret);
	bool was_met = w->was_met;
	w->was_met = !ret->text[0];
	if (!was_met && w->was_met)
		lb_err_set(ret, "it has just come");
	return missing(ret);
}

static json_t *waited(const struct wait *w)
{
	uint64_t ns = twheel_now(w->show->conf.wheel) - w->begun_ns;
	return json_pack("{sf}", "waited_s", show_seconds(ns));
}

static bool more(struct stats_follow *f, struct evbuffer *out)
{
	struct wait *w = CONTAINER_OF(f, struct wait, follow);
	struct lb_err why = {.text = ""};
	enum outcome outcome = w->look(w, &why);
	if (outcome == WAIT_MISSING) {
		if (twheel_now(w->show->conf.wheel) < w->until_ns)
			return true;
		lb_err_within(&why, "not within %.0f s", show_seconds(w->until_ns - w->begun_ns));
	}
	answer_append(
		out, answer_either(outcome == WAIT_MET ? waited(w) : NULL, w->json, why.text));
	return false;
}

static void wait_free(struct stats_follow *f)
{
	free(CONTAINER_OF(f, struct wait, follow));
}

// `ready | drained | config VERSION [TIMEOUT_S]`. False = args->err says what is wrong.
static bool read_words(struct show_args *args, struct wait *w, uint64_t *ret_s)
{
	const char *what = args->n ? args->words[0] : "";
	unsigned n = 1;
	if (strcmp(what, "ready") == 0) {
		w->look = look_for_ready;
	} else if (strcmp(what, "drained") == 0) {
		w->look = look_for_drained;
	} else if (strcmp(what, "config") == 0 && args->n > 1 && args->words[1][0]) {
		w->look = look_for_config;
		n = 2;
		if (strlen(args->words[1]) >= sizeof(w->version)) {
			lb_err_set(
				&args->err, "the version is longer than %d bytes", VERSION_MAX - 1);
			return false;
		}
		strcpy(w->version, args->words[1]);
	} else {
		lb_err_set(&args->err, "'ready', 'drained' or 'config VERSION' must follow");
		return false;
	}
	if (args->n == n)
		return true;
	if (args->n == n + 1 && str_number(str_from(args->words[n]), MOST_S, ret_s) && *ret_s)
		return true;
	lb_err_set(&args->err, "'%s' is not a time from 1 to %d s, or too much follows",
		args->words[n], MOST_S);
	return false;
}

json_t *show_wait(const struct show *s, struct show_args *args)
{
	uint64_t seconds = FALLBACK_S;
	struct wait now = {
		.follow = {more, wait_free},
		.show = s,
		.begun_ns = twheel_now(s->conf.wheel),
		.json = args->json,
	};
	if (!read_words(args, &now, &seconds))
		return NULL;
	now.until_ns = now.begun_ns + seconds * NS_PER_SECOND;
	enum outcome outcome = now.look(&now, &args->err);
	if (outcome == WAIT_MET)
		return waited(&now);
	if (outcome == WAIT_HOPELESS)
		return NULL;
	struct wait *w = malloc(sizeof(*w));
	if (!w) {
		args->err.text[0] = 0;
		return NULL;
	}
	*w = now;
	args->follow = &w->follow;
	return NULL;
}
