// SPDX-License-Identifier: Apache-2.0
// The newest lines of the log, kept for operators: what changed, when, and how bad it is. A ring:
// new ones go over the oldest, and who reads on is told how many it has missed.
// Thread: any; a lock keeps writers and readers apart.
#pragma once

#include "lb/base/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENTS 1024 // that are kept
#define EVENT_MAX 480 // bytes of text; more is cut

struct event_entry {
	uint64_t wall_ns; // since 1970
	enum log_level level;
	char text[EVENT_MAX]; // of the line: msg, NUL, key=value …, NUL
};
struct events;

struct events *events_new(void); // NULL = out of memory
void events_free(struct events *); // NULL is fine
// A log_sink_fn; ctx is the ring.
void events_add(void *ctx, uint64_t wall_ns, enum log_level, const char *msg, const char *rest);
// How many there ever were.
uint64_t events_count(struct events *);
// Reads the one with this number, from 0 on, or the oldest if that is gone, and sets *number behind
// it. ret_lost grows by those that are gone. False = there is none so far.
bool events_read(struct events *, uint64_t *number, struct event_entry *ret, uint64_t *ret_lost);
// What stands behind the msg of an entry.
const char *event_rest(const struct event_entry *);
