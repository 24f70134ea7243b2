// SPDX-License-Identifier: Apache-2.0
// A fair part of each turn for every source (TH-84). What comes in is served as it comes until a
// turn's allowance for it is used up. From then on each source has a quantum in that turn, so that
// who sends little never waits for who sends much. What goes beyond is left with TCP, and its
// source stands in line: at the end of each turn those in line are served by deficit round robin
// (Shreedhar and Varghese, 1995), a quantum each, until they have had a turn's allowance together.
// Whoever stands in line is served nowhere else, so that its input keeps its order.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/source.h"
#include "lb/base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proxy;
struct proxy_client;

// In about an instruction each (h2_conn_set_allowance): some 400 requests, and 13.
#define PROXY_WORK_TURN (2 << 20)
#define PROXY_WORK_QUANTUM (64 << 10)
#define PROXY_WORK_ACCEPT (5 << 10) // a connection without a frame
#define PROXY_WORK_RECORD 256 // of TLS, beside its bytes

struct proxy_work {
	struct list_link line; // of sources, the next one first
	uint64_t turn; // a number for each
	int64_t allowance; // of whoever is served now; all clients' connections charge it
};

void proxy_work_init(struct proxy_work *);

static inline void proxy_work_begin_turn(struct proxy_work *w)
{
	w->turn++;
	w->allowance = PROXY_WORK_TURN;
}

// The source's input is bounded by more than the turn's allowance.
static inline bool proxy_work_is_short(const struct proxy_work *w, const struct proxy_source *s)
{
	return w->allowance <= 0 || list_linked(&s->line);
}

// A record of TLS with so many bytes of plaintext has been opened for whoever is served now. It is
// charged afterwards, so that whoever is let in gets on, however little is left.
static inline void proxy_work_charge_record(struct proxy_work *w, size_t len)
{
	w->allowance -= PROXY_WORK_RECORD + (int64_t)(len / 2);
}

// What the source may have then: before its input is served, that becomes w->allowance, and what is
// left of it is s->allowance again afterwards.
int64_t proxy_work_grant(const struct proxy_work *, struct proxy_source *);
// Some of the client's input is left. False = not for want of an allowance.
bool proxy_work_put_off(struct proxy_client *);
// The client waits no more.
void proxy_work_forget(struct proxy_client *);
// Serves the line, which is not empty, as far as the turn goes, and asks for another turn for what
// is left.
__attribute__((cold)) void proxy_work_serve_line(struct proxy *);
