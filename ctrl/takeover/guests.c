// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/guests.h"

#include "ctrl/takeover/peer.h"
#include "lb/base/log.h"
#include "lb/base/time.h"

#include <errno.h>

#define WORD_NS (5 * NS_PER_SECOND) // to the first word, which takes no time
#define LOG_NS (10 * NS_PER_SECOND) // between two lines, which anybody may cause

static struct takeover_peer *take_peer(struct takeover_guest *g)
{
	struct takeover_peer *p = g->peer;
	g->peer = NULL;
	return p;
}

static void on_message(void *ctx, const struct takeover_message *m, int fd)
{
	struct takeover_guest *g = ctx;
	g->all->on_word(g->all->ctx, take_peer(g), m);
}

static void on_end(void *ctx)
{
	takeover_peer_free(take_peer(ctx));
}

static struct takeover_guest *place_for_one(struct takeover_guests *g)
{
	for (unsigned i = 0; i < TAKEOVER_MAX_GUESTS; i++)
		if (!g->list[i].peer)
			return &g->list[i];
	return NULL;
}

static void note_stranger(struct takeover_guests *g, uid_t uid)
{
	g->n_turned_away++;
	if (g->now_ns < g->log_ns)
		return;
	g->log_ns = g->now_ns + LOG_NS;
	log_warn("takeover refused", "uid=%u reason=\"another user\"", (unsigned)uid);
}

void takeover_guests_init(struct takeover_guests *g, struct event_base *base,
	takeover_guests_word_fn *on_word, void *ctx)
{
	*g = (struct takeover_guests){.base = base, .on_word = on_word, .ctx = ctx};
}

void takeover_guests_on_connect(evutil_socket_t listener, short what, void *arg)
{
	static const struct takeover_peer_events events = {on_message, on_end};
	struct takeover_guests *g = arg;
	uid_t uid;
	int fd = takeover_peer_accept(listener, &uid);
	if (fd == -EPERM)
		note_stranger(g, uid);
	if (fd < 0)
		return;
	struct takeover_guest *place = place_for_one(g);
	if (!place) {
		g->n_turned_away++;
		takeover_peer_turn_away(fd, "too many ask at a time");
		return;
	}
	*place = (struct takeover_guest){.all = g, .until_ns = g->now_ns + WORD_NS};
	place->peer = takeover_peer_new(g->base, fd, &events, place);
}

void takeover_guests_tick(struct takeover_guests *g, uint64_t now_ns)
{
	g->now_ns = now_ns;
	for (unsigned i = 0; i < TAKEOVER_MAX_GUESTS; i++) {
		if (!g->list[i].peer || now_ns < g->list[i].until_ns)
			continue;
		takeover_peer_refuse(g->list[i].peer, "it said nothing");
		takeover_peer_free(take_peer(&g->list[i]));
	}
}

void takeover_guests_close(struct takeover_guests *g)
{
	for (unsigned i = 0; i < TAKEOVER_MAX_GUESTS; i++)
		takeover_peer_free(take_peer(&g->list[i]));
}
