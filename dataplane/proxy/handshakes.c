// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/handshakes.h"

#include "lb/base/check.h"
#include "lb/base/share.h"
#include "tlshs/context.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_ANSWERS 64 // of one thread in a turn
#define MAX_WAITING 64 // likewise: it may take orders as fast as they come

static void append(struct proxy_handshakes *hs, struct proxy_places *line, uint32_t place)
{
	hs->all[place].next = 0;
	if (line->first)
		hs->all[line->last - 1].next = place + 1;
	else
		line->first = place + 1;
	line->last = place + 1;
}

static uint32_t take_first(struct proxy_handshakes *hs, struct proxy_places *line)
{
	uint32_t place = line->first - 1;
	line->first = hs->all[place].next;
	return place;
}

static uint32_t n_places(const struct proxy_handshakes_conf *conf)
{
	return conf->n_links * conf->max_of_link;
}

static struct tlshs_link *link_of(const struct proxy_handshakes *hs, uint32_t place)
{
	return hs->conf.links[place % hs->conf.n_links];
}

static void give_back(struct proxy_handshakes *hs, uint32_t place)
{
	append(hs, &hs->at[place % hs->conf.n_links].free, place);
}

// Until then it counts, be it that its owner has stopped it and it waits to say so.
static void leave(struct proxy_handshakes *hs, uint32_t place)
{
	const struct proxy_handshake *h = &hs->all[place];
	if (h->side == PROXY_WITH_CLIENT) {
		hs->n_with_clients--;
		sketch_remove(&hs->of_source, h->source);
	}
	give_back(hs, place);
}

static uint64_t id_of(const struct proxy_handshakes *hs, uint32_t place)
{
	return (uint64_t)hs->all[place].number << 32 | place / hs->conf.n_links;
}

static uint32_t place_of(const struct proxy_handshakes *hs, const struct proxy_handshake *h)
{
	return (uint32_t)(h - hs->all);
}

int proxy_handshakes_init(struct proxy_handshakes *hs, const struct proxy_handshakes_conf *conf,
	const struct proxy_handshakes_events *events)
{
	*hs = (struct proxy_handshakes){.conf = *conf, .events = events};
	uint32_t n = n_places(conf);
	if (!n)
		return 0;
	hs->all = calloc(n, sizeof(*hs->all));
	hs->at = calloc(conf->n_links, sizeof(*hs->at));
	if (!hs->all || !hs->at)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		give_back(hs, i);
	return 0;
}

void proxy_handshakes_fini(struct proxy_handshakes *hs)
{
	free(hs->all);
	free(hs->at);
	hs->all = NULL;
	hs->at = NULL;
}

// TH-111.
static bool client_may_have(const struct proxy_handshakes *hs, uint64_t source)
{
	uint32_t most = tlshs_clients_share(n_places(&hs->conf)), n = hs->n_with_clients;
	return n < most / 2 ||
	       share_allows_place(sketch_count(&hs->of_source, source), most - n, most);
}

static bool somebody_waits(const struct proxy_handshakes *hs, uint32_t link)
{
	const struct proxy_places *lines = hs->at[link].waiting;
	return lines[PROXY_WITH_CLIENT].first || lines[PROXY_WITH_BACKEND].first;
}

static bool has_room(const struct proxy_handshakes *hs, uint32_t link)
{
	return !somebody_waits(hs, link) && spsc_room(&hs->conf.links[link]->orders) > 0;
}

// A link with a free place, by turns; one whose ring has room before one for which others wait.
// n_links = no place is free.
static uint32_t find_link(const struct proxy_handshakes *hs)
{
	uint32_t found = hs->conf.n_links;
	for (uint32_t i = 0; i < hs->conf.n_links; i++) {
		uint32_t link = (hs->turn + i) % hs->conf.n_links;
		if (!hs->at[link].free.first)
			continue;
		if (has_room(hs, link))
			return link;
		if (found == hs->conf.n_links)
			found = link;
	}
	return found;
}

static void wait_in_line(struct proxy_handshakes *hs, struct proxy_handshake *h)
{
	uint32_t place = place_of(hs, h);
	DCHECK(!h->waits);
	h->waits = true;
	hs->n_waiting++;
	append(hs, &hs->at[place % hs->conf.n_links].waiting[h->side], place);
}

struct proxy_handshake *proxy_handshake_take(
	struct proxy_handshakes *hs, enum proxy_handshake_side side, uint64_t source, void *user)
{
	uint32_t link = find_link(hs);
	if (link == hs->conf.n_links || (side == PROXY_WITH_CLIENT && !client_may_have(hs, source)))
		return NULL;
	bool waits = !has_room(hs, link);
	struct proxy_handshake *h = &hs->all[take_first(hs, &hs->at[link].free)];
	*h = (struct proxy_handshake){.user = user, .number = h->number + 1, .side = (uint8_t)side};
	hs->turn = (link + 1) % hs->conf.n_links;
	hs->n_open++;
	if (side == PROXY_WITH_CLIENT) {
		h->source = source;
		hs->n_with_clients++;
		sketch_add(&hs->of_source, source);
	}
	if (waits)
		wait_in_line(hs, h);
	return h;
}

void proxy_handshake_begin(struct proxy_handshakes *hs, struct proxy_handshake *h,
	const struct proxy_handshake_ask *ask)
{
	uint32_t place = place_of(hs, h);
	struct tlshs_link *l = link_of(hs, place);
	if (h->begun || h->waits)
		return;
	if (!spsc_room(&l->orders)) { // then the reference could not be given back
		wait_in_line(hs, h);
		return;
	}
	CHECK(tlshs_link_start(l, id_of(hs, place), tlshs_context_get(ask->context),
		ask->server_name, ask->source));
	h->begun = true;
}

size_t proxy_handshake_send(
	struct proxy_handshakes *hs, struct proxy_handshake *h, const uint8_t *p, size_t len)
{
	uint32_t place = place_of(hs, h);
	if (!h->begun || h->waits)
		return 0;
	size_t n = tlshs_link_send(link_of(hs, place), id_of(hs, place), p, len);
	if (n < len)
		wait_in_line(hs, h);
	return n;
}

bool proxy_handshake_eof(struct proxy_handshakes *hs, const struct proxy_handshake *h)
{
	uint32_t place = place_of(hs, h);
	return h->begun && !h->waits && tlshs_link_eof(link_of(hs, place), id_of(hs, place));
}

uint64_t proxy_handshake_tickets(
	const struct proxy_handshakes *hs, const struct proxy_handshake *h, uint64_t promise)
{
	uint32_t link = place_of(hs, h) % hs->conf.n_links;
	return promise ? promise * hs->conf.n_links + link : 0;
}

// Those who wait for room with a handshake go first.
bool proxy_handshakes_ticket(
	struct proxy_handshakes *hs, uint64_t tickets, const uint8_t *p, size_t len)
{
	uint32_t link = (uint32_t)(tickets % hs->conf.n_links);
	uint64_t promise = tickets / hs->conf.n_links;
	return !somebody_waits(hs, link) &&
	       tlshs_link_ticket(hs->conf.links[link], promise, p, len);
}

void proxy_handshake_stop(struct proxy_handshakes *hs, struct proxy_handshake *h)
{
	uint32_t place = place_of(hs, h);
	DCHECK(h->user);
	h->user = NULL;
	hs->n_open--;
	if (h->waits)
		return;
	if (!h->begun || tlshs_link_stop(link_of(hs, place), id_of(hs, place)))
		leave(hs, place);
	else
		wait_in_line(hs, h);
}

// Those who wait for one thread, as far as its ring has room. Those with backends go first: no
// flood of clients is to keep the balancer from its backends.
static void serve_lines(struct proxy_handshakes *hs, uint32_t link)
{
	struct proxy_places *lines = hs->at[link].waiting;
	struct spsc *orders = &hs->conf.links[link]->orders;
	for (int n = 0; n < MAX_WAITING && somebody_waits(hs, link) && spsc_room(orders); n++) {
		bool is_backend = lines[PROXY_WITH_BACKEND].first;
		struct proxy_handshake *h = &hs->all[take_first(
			hs, &lines[is_backend ? PROXY_WITH_BACKEND : PROXY_WITH_CLIENT])];
		h->waits = false;
		hs->n_waiting--;
		if (h->user) {
			hs->events->on_room(h->user);
			continue;
		}
		if (h->begun)
			CHECK(tlshs_link_stop(hs->conf.links[link], id_of(hs, place_of(hs, h))));
		leave(hs, place_of(hs, h));
	}
}

static void take(struct proxy_handshakes *hs, uint32_t link, const struct tlshs_answer *a)
{
	uint32_t place = (uint32_t)a->id * hs->conf.n_links + link;
	CHECK(place < n_places(&hs->conf));
	const struct proxy_handshake *h = &hs->all[place];
	if (h->user && h->number == (uint32_t)(a->id >> 32))
		hs->events->on_answer(h->user, a);
}

void proxy_handshakes_poll(struct proxy_handshakes *hs)
{
	const struct tlshs_answer *a;
	for (uint32_t i = 0; i < hs->conf.n_links; i++) {
		struct tlshs_link *l = hs->conf.links[i];
		serve_lines(hs, i);
		for (int n = 0; n < MAX_ANSWERS && (a = tlshs_link_peek(l)); n++) {
			take(hs, i, a);
			tlshs_link_pass(l);
		}
	}
}

struct counter_set proxy_handshakes_counters(
	const struct proxy_handshakes *hs, enum proxy_handshake_side side)
{
	return (struct counter_set){tlshs_outcome_names, hs->ends[side], TLSHS_N_OUTCOMES};
}
