// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/standby.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/news.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/respond.h"
#include "ctrl/xds/state/state_file.h"
#include "ctrl/xds/subs.h"
#include "ctrl/xds/verdict.h"
#include "ctrl/xds/wire.h"
#include "lb/base/container_of.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct xds_standby {
	struct xds_cache *cache;
	const struct xds_state *state;
	bool is_asked; // something was asked for: the wait has begun
	bool is_due; // the wait is over
	unsigned n_failures; // streams that have ended so far
	bool is_told; // that it has begun
	uint64_t absent_until_ns; // once the server has spoken: who was absent counts so long
	uint8_t *came; // a bit for each of the state's absent names; NULL = there are none
	bool news[XDS_MAX_TYPES]; // a watch began since the type was last looked up
	struct twheel_timer timer; // until it is due; then, the next turn
	struct slice slice;
	// The section at hand:
	size_t next_section; // the one after it
	uint32_t type; // while is_busy
	bool is_busy;
	bool head_read;
	struct xds_response response;
	struct xds_round *round; // NULL = its head is not read
};

static bool is_own(const struct xds_standby *s, const struct xds_state_section *section)
{
	return str_eq(section->server, str_from(s->cache->server->uri));
}

static const struct xds_type *type_of(const struct xds_standby *s, uint32_t type)
{
	return s->cache->conf->types[type];
}

static void go_on_later(struct xds_standby *s, uint64_t ns)
{
	struct twheel *wheel = s->cache->conf->wheel;
	twheel_arm(wheel, &s->timer, twheel_now(wheel) + ns);
}

typedef const struct str *(*find_fn)(const struct xds_state_section *, struct str locator);

// In the sections of its type. NULL = in none, or out of memory.
static const struct str *find_locator(
	const struct xds_standby *s, const struct xds_entry *e, find_fn find)
{
	const struct str *found = NULL;
	uint8_t *bytes;
	size_t len;
	if (xds_wire_locator(e->sub->params, e->sub->name, &bytes, &len))
		return NULL;
	for (size_t i = 0; i < s->state->n_sections && !found; i++) {
		const struct xds_state_section *at = &s->state->sections[i];
		if (is_own(s, at) && str_eq(at->type_url, str_from(type_of(s, e->type)->url)))
			found = find(at, (struct str){(const char *)bytes, len});
	}
	free(bytes);
	return found;
}

static const struct str *find_answered(const struct xds_state_section *section, struct str wildcard)
{
	return xds_state_lists_all(section, wildcard) ? &section->all : NULL;
}

// That a name was absent is told only of the start: whoever asks for it later asks because it is
// there by now. *ret_at = its place in the state.
static bool was_absent(const struct xds_standby *s, const struct xds_entry *e, size_t *ret_at)
{
	bool is_start =
		s->cache->stands_by || twheel_now(s->cache->conf->wheel) < s->absent_until_ns;
	if (!s->came || !s->state->n_absent || !is_start || type_of(s, e->type)->is_opaque)
		return false;
	const struct str *found = find_locator(s, e, xds_state_lacks);
	*ret_at = found ? (size_t)(found - s->state->absent) : 0;
	return found;
}

// It is not presumed absent when it is asked for anew either.
static void on_answered(const struct xds_entry *e)
{
	struct xds_standby *s = e->cache->standby;
	size_t at;
	if (was_absent(s, e, &at))
		s->came[at / 8] |= (uint8_t)(1 << at % 8);
}

void xds_standby_watched(struct xds_standby *s, struct xds_entry *e)
{
	size_t at;
	if (!s)
		return;
	e->was_absent = was_absent(s, e, &at) && !(s->came[at / 8] >> at % 8 & 1);
	if (!s->cache->stands_by)
		return;
	s->news[e->type] = true;
	if (!s->is_asked)
		go_on_later(s, XDS_STANDBY_NS);
	else if (s->is_due && !twheel_armed(&s->timer))
		go_on_later(s, 0);
	s->is_asked = true;
}

// One that is started together with us gets a second attempt.
void xds_standby_failed(struct xds_standby *s)
{
	if (!s || !s->cache->stands_by || !s->is_asked || s->is_due)
		return;
	if (++s->n_failures == XDS_STANDBY_ATTEMPTS)
		go_on_later(s, 0);
}

// A section

static void close_section(struct xds_standby *s)
{
	xds_round_free(s->round);
	s->round = NULL;
	xds_response_fini(&s->response);
	s->response = (struct xds_response){.layout = NULL};
	s->head_read = false;
}

// False = there is none of the type any more.
static bool open_section(struct xds_standby *s)
{
	struct str url = str_from(type_of(s, s->type)->url);
	while (s->next_section < s->state->n_sections) {
		const struct xds_state_section *at = &s->state->sections[s->next_section++];
		if (!is_own(s, at) || !str_eq(at->type_url, url))
			continue;
		xds_response_init(&s->response, &xds_protocol_delta.response, at->response);
		return true;
	}
	return false;
}

static void say_begun(struct xds_standby *s)
{
	char at[32] = "an unknown time";
	struct tm utc;
	time_t written = (time_t)s->state->written_s;
	if (s->is_told || s->cache->n_stale == 0)
		return;
	if (gmtime_r(&written, &utc))
		(void)strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &utc);
	s->is_told = true;
	xds_cache_log(s->cache,
		"xDS server %s does not answer: names serve, or are absent, as it had them by %s, "
		"from %s",
		s->cache->server->uri, at, s->state->from);
}

// Reads on in the section. False = the slice is over.
static bool read_section(struct xds_standby *s)
{
	struct lb_err err = {""};
	char *complaint = NULL;
	int rc = 0;
	if (!s->head_read)
		rc = xds_response_read_head(&s->response, &s->slice, &err);
	s->head_read = s->head_read || rc == 0;
	if (rc == 0 && !s->round)
		s->round = xds_round_new_kept(s->cache, s->type, &s->response);
	uint64_t event = ++s->cache->n_events;
	if (rc == 0)
		rc = s->round ? xds_round_step(s->round, &s->slice, &complaint) : -ENOMEM;
	if (rc == -EAGAIN)
		return false;
	free(complaint);
	if (rc)
		xds_cache_log(s->cache, "%s of xDS server %s cannot be read from %s: %s",
			type_of(s, s->type)->label, s->cache->server->uri, s->state->from,
			*err.text ? err.text : "out of memory");
	close_section(s);
	xds_news_tell(s->cache, event);
	say_begun(s);
	return true;
}

// What the file had of a type has been told

// Whoever got no value hears now why there is none.
static void end_lookup(struct xds_standby *s, struct xds_entry *e)
{
	if (e->is_looked_up)
		return;
	e->is_looked_up = true;
	if (xds_entry_is_wildcard(e) && e->status == XDS_STATUS_REQUESTED &&
		find_locator(s, e, find_answered)) {
		e->status = XDS_STATUS_ACKED;
		e->is_resumed = true; // the server's own list takes away what is not on it
		xds_news_add(e, XDS_NEWS_RESOURCE);
	} else if (xds_entry_may_presume(e)) {
		xds_entry_presume_absent(e);
	} else if (!e->value && e->error_code == XDS_OK && s->cache->failure) {
		xds_news_add(e, XDS_NEWS_ERROR);
	}
}

static void end_type(struct xds_standby *s)
{
	struct list_link *all = &s->cache->subs[s->type].all;
	s->is_busy = false;
	if (s->news[s->type]) // they may have come too late for some of it: once more
		return;
	uint64_t event = ++s->cache->n_events;
	for (struct list_link *at = all->next; at != all; at = at->next)
		end_lookup(s, CONTAINER_OF(at, struct xds_entry, all));
	xds_news_tell(s->cache, event);
	s->cache->unsettled = true; // that there is nothing is of use to who has several servers
}

// False = nothing is left to do.
static bool begin_type(struct xds_standby *s)
{
	for (uint32_t t = 0; t < s->cache->conf->n_types; t++) {
		if (!s->news[t])
			continue;
		s->news[t] = false;
		s->type = t;
		s->next_section = 0;
		return s->is_busy = true;
	}
	return false;
}

static void on_turn(struct twheel_timer *t)
{
	struct xds_standby *s = CONTAINER_OF(t, struct xds_standby, timer);
	struct xds_client *client = s->cache->client;
	xds_client_begin(client);
	slice_begin(&s->slice);
	s->is_due = true;
	// Watchers may have it end, too.
	while (s->cache->stands_by && (s->is_busy || begin_type(s))) {
		bool is_open = s->response.layout || open_section(s);
		if (!is_open)
			end_type(s);
		else if (!read_section(s))
			break;
	}
	if (s->cache->stands_by && s->is_busy)
		go_on_later(s, 0);
	xds_client_end(client);
}

static void stop(struct xds_standby *s)
{
	s->cache->stands_by = false;
	close_section(s);
	twheel_cancel(s->cache->conf->wheel, &s->timer);
}

// What the server did not say while it was silent altogether says nothing of a name.
static void await_anew(struct xds_standby *s, uint32_t type)
{
	struct list_link *all = &s->cache->subs[type].all;
	for (struct list_link *at = all->next; at != all; at = at->next) {
		struct xds_entry *e = CONTAINER_OF(at, struct xds_entry, all);
		if (e->is_stale || xds_entry_may_presume(e))
			xds_entry_await_anew(e);
	}
}

void xds_standby_end(struct xds_standby *s)
{
	if (!s || !s->cache->stands_by)
		return;
	stop(s);
	s->absent_until_ns = twheel_now(s->cache->conf->wheel) + XDS_STANDBY_ABSENT_NS;
	for (uint32_t t = 0; t < s->cache->conf->n_types; t++)
		await_anew(s, t);
}

int xds_standby_new(
	struct xds_cache *cache, const struct xds_state *state, struct xds_standby **ret)
{
	*ret = NULL;
	struct xds_standby of = {
		.cache = cache, .state = state, .timer.fire = on_turn, .slice = cache->conf->slice};
	size_t i = 0;
	while (state && i < state->n_sections && !is_own(&of, &state->sections[i]))
		i++;
	if (!state || i == state->n_sections)
		return 0;
	if (state->n_absent && !(of.came = calloc(state->n_absent / 8 + 1, 1)))
		return -ENOMEM;
	*ret = malloc(sizeof(**ret));
	if (!*ret) {
		free(of.came);
		return -ENOMEM;
	}
	**ret = of;
	cache->stands_by = true;
	cache->on_answered = on_answered;
	return 0;
}

void xds_standby_free(struct xds_standby *s)
{
	if (!s)
		return;
	stop(s);
	free(s->came);
	free(s);
}
