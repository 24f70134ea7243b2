// SPDX-License-Identifier: Apache-2.0
// The thread that reads certificates, since the event loop must not wait for disks: it watches the
// files, reads those of a source that changed or was asked for, and gives what it found to its
// owner. It knows no time but how long a burst of changes lasts.
// Thread: the functions are the owner's; the thread is inside.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct cert_material;
struct cert_reader;
struct cert_source;

struct cert_reading {
	struct cert_reading *next;
	uint32_t source;
	struct cert_material *material; // NULL = it is bad, or there was no memory
	struct lb_err err;
};

// The sources are borrowed and outlive it: n of them, and up to max. Watching has begun when it
// returns. NULL = out of memory, or no thread.
struct cert_reader *cert_reader_new(const struct cert_source *, uint32_t n, uint32_t max);
// The source behind the last one is there, too, and asked for.
void cert_reader_add(struct cert_reader *);
void cert_reader_free(struct cert_reader *); // NULL is fine
void cert_reader_ask(struct cert_reader *, uint32_t source);
int cert_reader_fd(const struct cert_reader *); // readable when there is something to take
// All there is, the oldest first; the owner frees each and puts its material.
struct cert_reading *cert_reader_take(struct cert_reader *);
// False: changes are found by asking alone, since the system let us watch nothing more.
bool cert_reader_watches(const struct cert_reader *);
