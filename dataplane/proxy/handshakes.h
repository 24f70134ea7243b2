// SPDX-License-Identifier: Apache-2.0
// A worker's handshakes of TLS, which threads do for it (tlshs/link.h): who has which place at
// which thread, and what the threads answered. Whoever finds a thread's ring full stands in a line
// for it, so that a turn's work is bounded by what rings have room for, however many wait; and one
// thread that lags behind holds up no handshake of another one.
// Thread: the owning worker.
#pragma once

#include "lb/base/counter.h"
#include "lb/base/sketch.h"
#include "lb/base/str.h"
#include "tlshs/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tlshs_context;

enum proxy_handshake_side { PROXY_WITH_CLIENT, PROXY_WITH_BACKEND };

// A handshake's place. Fields are of handshakes.c.
struct proxy_handshake {
	void *user; // NULL = free, or to be stopped
	uint32_t number; // tells the place's uses apart
	uint32_t next; // in a line of places: index + 1; 0 = the last one
	uint64_t source; // with a client: as of_source has it
	uint8_t side; // enum proxy_handshake_side
	bool begun; // the thread knows of it
	bool waits; // in its thread's line
};

struct proxy_places { // a line: index + 1 of its ends, 0 = empty
	uint32_t first, last;
};

struct proxy_thread_places { // at one thread
	struct proxy_places free;
	struct proxy_places waiting[2]; // by side, for room in its ring: to begin, send or stop
};

struct proxy_handshakes_conf {
	// One for each thread; borrowed, with the array, until proxy_free().
	struct tlshs_link *const *links;
	uint32_t n_links; // 0 = no connection gets TLS
	uint32_t max_of_link; // handshakes at a time: tlshs_threads_conf.max_handshakes
};

// By which threads tell sources apart; NULL = there are no threads.
static inline const uint8_t *proxy_handshakes_source_key(const struct proxy_handshakes_conf *c)
{
	return c->n_links ? c->links[0]->source_key : NULL;
}

struct proxy_handshakes_events {
	// The oldest answers, of one place. It may stop it.
	void (*on_answer)(void *user, const struct tlshs_answer *);
	// The ring that it has waited for has room: to begin, if it has not, or to send.
	void (*on_room)(void *user);
};

struct proxy_handshakes {
	struct proxy_handshakes_conf conf;
	const struct proxy_handshakes_events *events;
	struct proxy_handshake *all; // owned; place n is at link n % n_links
	struct proxy_thread_places *at; // owned; by link
	uint32_t turn; // the link that is asked first for the next place
	uint32_t n_waiting; // in all lines
	uint32_t n_open; // not those that are to be stopped
	uint32_t n_with_clients; // places, those to be stopped included; of_source likewise
	struct sketch of_source; // with clients, by a hash of their address
	uint64_t ends[2][TLSHS_N_OUTCOMES]; // by side
};

// 0 or -ENOMEM; call fini() in either case.
[[nodiscard]] int proxy_handshakes_init(struct proxy_handshakes *,
	const struct proxy_handshakes_conf *, const struct proxy_handshakes_events *);
// Those that are open are dropped with their threads.
void proxy_handshakes_fini(struct proxy_handshakes *);

// A place for a handshake, the caller's until it stops it; NULL = all are taken, or the source has
// its share of them. Clients get three quarters; from half of these on, lb/base/share.h decides who
// gets one more. source: a hash of the peer's address. user: not NULL.
struct proxy_handshake *proxy_handshake_take(
	struct proxy_handshakes *, enum proxy_handshake_side, uint64_t source, void *user);

// By what it goes.
struct proxy_handshake_ask {
	struct tlshs_context *context; // borrowed from the turn's snapshot
	struct str server_name; // a client's
	uint64_t source; // as above
};

// Where there is no room yet, on_room() will come, to call it again.
void proxy_handshake_begin(
	struct proxy_handshakes *, struct proxy_handshake *, const struct proxy_handshake_ask *);
static inline bool proxy_handshake_has_begun(const struct proxy_handshake *h)
{
	return h->begun;
}
// Returns how many bytes of the peer the ring had room for; if not all, on_room() will come.
size_t proxy_handshake_send(
	struct proxy_handshakes *, struct proxy_handshake *, const uint8_t *, size_t len);
// The peer sends nothing more: its end comes as an answer, in which what it sent last counts. False
// = it has not begun, or there is no room.
[[nodiscard]] bool proxy_handshake_eof(struct proxy_handshakes *, const struct proxy_handshake *);
// Where tickets for that promise of its thread go; 0 = 0.
uint64_t proxy_handshake_tickets(
	const struct proxy_handshakes *, const struct proxy_handshake *, uint64_t promise);
// The body of a server's NewSessionTicket, also when its handshake was stopped. False = there is no
// room for it, or it is too long.
[[nodiscard]] bool proxy_handshakes_ticket(
	struct proxy_handshakes *, uint64_t tickets, const uint8_t *, size_t len);
// Once for each take. Answers that are under way are dropped.
void proxy_handshake_stop(struct proxy_handshakes *, struct proxy_handshake *);
// Somebody waits for room, or an answer is due or is to be read, be it that nobody wants it any
// more: secrets may lie in it. Call proxy_handshakes_poll() every turn then, and sleep little.
static inline bool proxy_handshakes_are_due(const struct proxy_handshakes *hs)
{
	bool are_due = hs->n_waiting;
	for (uint32_t i = 0; !are_due && i < hs->conf.n_links; i++) {
		const struct tlshs_link *l = hs->conf.links[i];
		are_due = (hs->n_open && tlshs_link_is_busy(l)) || !spsc_is_empty(&l->answers);
	}
	return are_due;
}
// Reads answers, and lets those go on who waited and have room now.
void proxy_handshakes_poll(struct proxy_handshakes *);
// One has ended with this outcome, or none came about.
static inline void proxy_handshakes_count(
	struct proxy_handshakes *hs, enum proxy_handshake_side side, enum tlshs_outcome how)
{
	counter_add(&hs->ends[side][how], 1);
}
struct counter_set proxy_handshakes_counters(
	const struct proxy_handshakes *, enum proxy_handshake_side);
