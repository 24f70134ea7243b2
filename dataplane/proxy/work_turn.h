// SPDX-License-Identifier: Apache-2.0
// What clients' input may take of a turn (work.h), and what is charged to it.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/source.h"
#include "lb/base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// In about an instruction each (h2_conn_set_allowance): some 400 requests, 100, and 13.
#define PROXY_WORK_TURN (2 << 20)
#define PROXY_WORK_LINE (512 << 10)
#define PROXY_WORK_QUANTUM (64 << 10)
#define PROXY_WORK_ACCEPT (5 << 10) // a connection without a frame
#define PROXY_WORK_HANDSHAKE (8 << 10) // of TLS: a worker's part of one
#define PROXY_WORK_RECORD 256 // of TLS, beside its bytes
#define PROXY_WORK_OTHER_RECORD (4 << 10) // … without data: what new keys take

struct proxy_work {
	struct list_link line; // of sources, the next one first
	uint64_t turn; // a number for each
	int64_t allowance; // of whoever is served now; all clients' connections charge it
};

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

// A record of TLS of so many bytes has been opened for whoever is served now. work: as above. It is
// charged afterwards, so that whoever is let in gets on, however little is left.
static inline void proxy_work_charge_record(struct proxy_work *w, int64_t work, size_t len)
{
	w->allowance -= work + (int64_t)(len / 2);
}
