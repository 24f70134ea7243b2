// SPDX-License-Identifier: Apache-2.0
// Secrets of handshakes, for whoever records traffic and is to read it (docs/capture.md): lines of
// RFC 9850, kept only while somebody asks for them, in bounded memory that is overwritten before it
// is freed. Off it costs a handshake a load.
// Thread: begin(), end() and fini() on the control thread; add() on handshake threads; take() and
// has_more() on the one that asks.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLSHS_KEYLOG_ROOM ((size_t)256 << 10) // bytes that wait to be taken
#define TLSHS_KEYLOG_LINE_MAX 256 // with its end; of RFC 9850 the longest has 223

struct tlshs_keylog {
	bool on; // w: ctrl (relaxed), r: handshake threads (relaxed)
	bool any; // w: all (release), r: who takes (acquire): some wait
	pthread_mutex_t lock; // of all below
	char *lines; // owned; NULL = off
	size_t len;
	uint64_t n_lines, n_lost; // since begin(): taken up, and without room
};

void tlshs_keylog_init(struct tlshs_keylog *);
void tlshs_keylog_fini(struct tlshs_keylog *);
// Of handshakes that begin from now on all is kept, of those under way what is still to come. Once.
// False = out of memory.
[[nodiscard]] bool tlshs_keylog_begin(struct tlshs_keylog *);
void tlshs_keylog_end(struct tlshs_keylog *); // nothing, if it has not begun

void tlshs_keylog_add(struct tlshs_keylog *, const char *line); // without its end

// Somebody asks: lines are worth to be made.
static inline bool tlshs_keylog_is_on(const struct tlshs_keylog *k)
{
	return __atomic_load_n(&k->on, __ATOMIC_RELAXED);
}
// What a handshake has told before its peer, or its worker, was told of it is seen here.
static inline bool tlshs_keylog_has_more(const struct tlshs_keylog *k)
{
	return __atomic_load_n(&k->any, __ATOMIC_ACQUIRE); // pairs with add()
}
// Moves whole lines, each with '\n', as many as fit; returns how many bytes.
size_t tlshs_keylog_take(struct tlshs_keylog *, uint8_t *to, size_t room);
void tlshs_keylog_count(struct tlshs_keylog *, uint64_t *ret_lines, uint64_t *ret_lost);
