// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/place.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/pick/leaf_picker.h"

// Of a body, in bytes a second: a tenth of a slow mobile client's upload.
#define BODY_RATE 1000
// For so long a request is slow, or silent if it has no mark yet, before it gives way.
#define PATIENCE_NS (2 * NS_PER_SECOND)
// … an answer, which gets its mark late, and whose client is asked for less.
#define ANSWER_PATIENCE_NS NS_PER_SECOND
// One of which next to nothing has come has less time, unless it is its source's only one: else
// those that come at once would hold all places for that long. A body on its way comes with its
// fields, and a slow mobile client sends that much. An answer has that time whose client shut its
// stream's window and took nothing of any since.
// Who waits for a 100 sends its body two round trips later.
#define FIRST_PATIENCE_NS (50 * NS_PER_MS)
#define MOST_ROUND_TRIPS_NS (450 * NS_PER_MS)
#define LITTLE 500 // bytes
// A window that let less go in all; RFC 9113 6.9.2 begins with four times that.
#define SMALL_WINDOW (16u << 10)
// Whoever asks for a place has its source's part of the turn charged with the looks (work.h).
#define LOOKS 32
#define LOOK_COST 64
// Who has next to nothing is looked for longer: places that were just taken lie side by side, and
// none of those gives way yet.
#define FEW 8
#define LOOKS_OF_FEW 512

// Its input is taken as it comes, but for what it does not take itself.
static bool may_send(const struct proxy_client *c)
{
	bool is_full = proxy_conn_unsent(&c->conn) > c->conn.out_limit;
	return (!c->conn.fed_short || is_full) && !c->held &&
	       h2_conn_unconsumed(c->conn.h2) < h2_conn_window(c->conn.h2);
}

bool proxy_place_owes(const struct proxy_request *r)
{
	return r->state == PROXY_REQUEST_SENT && r->accounting.breaker && !r->is_grpc &&
	       !r->request_done && r->client && r->upstream && !h2_stream_queued(r->upstream) &&
	       may_send(r->owner);
}

bool proxy_place_is_left(const struct proxy_request *r)
{
	return r->state == PROXY_REQUEST_ANSWERED && r->accounting.breaker && !r->is_grpc &&
	       r->client && h2_stream_queued(r->client);
}

// Of an answer it is what the client's whole connection took: answers on a slow line wait for each
// other.
static uint64_t moved(const struct proxy_request *r)
{
	if (r->state == PROXY_REQUEST_ANSWERED)
		return proxy_conn_taken(&r->owner->conn);
	return h2_stream_n_received(r->client) + h2_stream_n_sent(r->client);
}

static uint64_t n_who_share_that(const struct proxy_request *r)
{
	return r->state == PROXY_REQUEST_ANSWERED ? h2_conn_n_streams(r->owner->conn.h2) : 1;
}

void proxy_place_mark(struct proxy_request *r)
{
	struct proxy_held *held = &r->accounting.held;
	held->mark_ns = r->proxy->now_ns;
	held->mark_len = moved(r);
	held->mark_state = r->state;
}

bool proxy_place_is_shut(const struct proxy_request *r)
{
	return proxy_place_is_left(r) && h2_stream_is_shut(r->client) &&
	       h2_stream_n_sent(r->client) < SMALL_WINDOW;
}

// What gave way as a body has neither.
bool proxy_place_gave_answer(const struct proxy_request *r)
{
	const struct proxy_held *held = &r->accounting.held;
	return held->shut_ns || held->mark_state == PROXY_REQUEST_ANSWERED;
}

bool proxy_place_is_slower(const struct proxy_request *r, uint64_t rate)
{
	const struct proxy_held *held = &r->accounting.held;
	uint64_t ms = (r->proxy->now_ns - held->mark_ns) / NS_PER_MS;
	uint64_t least = rate * n_who_share_that(r) * ms / (NS_PER_SECOND / NS_PER_MS);
	return held->mark_state == r->state && moved(r) - held->mark_len < least;
}

bool proxy_place_is_slow(const struct proxy_request *r)
{
	return proxy_place_is_slower(
		r, r->state == PROXY_REQUEST_ANSWERED ? PROXY_LEAST_RATE : BODY_RATE);
}

static bool was_slow_for(const struct proxy_request *r, uint64_t ns)
{
	return r->proxy->now_ns - r->accounting.held.mark_ns >= ns && proxy_place_is_slow(r);
}

static uint64_t first_patience_ns(const struct proxy_request *r)
{
	uint64_t trips_ns = 2 * tcp_conn_round_trip_ns(r->owner->conn.tcp);
	return FIRST_PATIENCE_NS +
	       (trips_ns < MOST_ROUND_TRIPS_NS ? trips_ns : MOST_ROUND_TRIPS_NS);
}

static bool is_hurried(const struct proxy_request *r, uint64_t since_ns)
{
	return r->accounting.held.by_source->n > 1 &&
	       r->proxy->now_ns - since_ns >= first_patience_ns(r);
}

static bool body_gives_way(const struct proxy_request *r)
{
	const struct proxy_held *held = &r->accounting.held;
	uint64_t now_ns = r->proxy->now_ns, sent_ns = r->trail.sent_ns;
	if (moved(r) < LITTLE && is_hurried(r, sent_ns))
		return true;
	if (held->mark_ns)
		return was_slow_for(r, PATIENCE_NS);
	uint64_t moved_ns = r->progress.at_ns;
	return now_ns - (moved_ns > sent_ns ? moved_ns : sent_ns) >= PATIENCE_NS;
}

// A client whose connection took something of any answer after that time is slow, but takes them.
static bool is_let_lie(const struct proxy_request *r)
{
	const struct proxy_client *c = r->owner;
	uint64_t shut_ns = r->accounting.held.shut_ns, taken_ns = c->body_sent_ns;
	if (!shut_ns || !proxy_place_is_shut(r) || proxy_conn_left(&c->conn) >= LITTLE)
		return false;
	if (taken_ns < shut_ns)
		taken_ns = shut_ns;
	return taken_ns - shut_ns < first_patience_ns(r) && is_hurried(r, taken_ns);
}

static bool answer_gives_way(const struct proxy_request *r)
{
	return is_let_lie(r) || (r->accounting.held.mark_ns && was_slow_for(r, ANSWER_PATIENCE_NS));
}

// A source with n places may have its place: if its own has more than half as many again, so that
// sources of about one size take nothing from each other, over and over.
static bool gives_way(const struct proxy_request *r, uint64_t n)
{
	const struct proxy_held *held = &r->accounting.held;
	if (held->by_source->n <= n + (n + 1) / 2)
		return false;
	if (proxy_place_is_left(r))
		return answer_gives_way(r);
	return proxy_place_owes(r) && body_gives_way(r);
}

static struct proxy_request *request_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct proxy_request, accounting.held.owing);
}

// Of those that have been on the list longest and give way, one of the source with most places.
// Others go behind, so that the next ones are looked at next time.
static struct proxy_request *choose(
	const struct proxy_request *for_whom, const struct lb_leaf_layer *layer)
{
	struct proxy *p = for_whom->proxy;
	const struct lb_breaker *b = layer->breaker;
	uint64_t n_own = proxy_share_count(&p->shares, b, for_whom->owner->source);
	struct list_link *list = proxy_share_owing(&p->shares, b);
	struct list_link *last = list->prev, *next = list->next;
	struct proxy_request *chosen = NULL;
	uint32_t n_looks = 0;
	// Nobody comes in beyond a limit that has been lowered.
	uint32_t most = n_own < FEW ? LOOKS_OF_FEW : LOOKS;
	bool is_over = list_empty(list) || lb_breaker_in_flight(b) > layer->max_requests;
	for (; !is_over && n_looks < (chosen ? LOOKS : most); n_looks++) {
		struct list_link *l = next;
		struct proxy_request *r = request_of(l);
		next = l->next;
		is_over = l == last;
		if (r->accounting.breaker != b || !gives_way(r, n_own)) {
			list_remove(l);
			list_append(list, l);
			continue;
		}
		uint32_t n = r->accounting.held.by_source->n;
		if (!chosen || n > chosen->accounting.held.by_source->n)
			chosen = r;
	}
	p->work.allowance -= (int64_t)n_looks * LOOK_COST;
	return chosen;
}

bool proxy_place_may_take_over(const struct proxy_request *r, const struct lb_leaf_layer *layer)
{
	return choose(r, layer);
}

// No other worker may come between. Whoever gives is still counted until it ends.
bool proxy_place_take_over(struct proxy_request *r, const struct lb_leaf_layer *layer)
{
	struct proxy *p = r->proxy;
	struct proxy_request *giver = choose(r, layer);
	if (!giver)
		return false;
	r->accounting.breaker = giver->accounting.breaker;
	giver->accounting.breaker = NULL;
	proxy_share_add(&p->shares, layer->breaker, r->owner->source, &r->accounting.held);
	list_remove(&giver->accounting.held.owing);
	list_append(&p->reclaim.ending, &giver->accounting.held.owing);
	return true;
}
