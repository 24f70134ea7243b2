// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/tcp/twin.h"

#include "tests/support/tcp_digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void twin_begin(struct twin *t, bool second)
{
	memset(t->sides, 0, sizeof(t->sides));
	t->second = second;
	t->sent = t->states = 0;
	t->n_turns = 0;
	if (!second)
		t->n_first = 0;
}

void twin_fini(struct twin *t)
{
	free(t->turns);
}

void twin_sent(struct twin *t, unsigned side, unsigned conn, uint64_t now_ns, const void *segment,
	size_t len)
{
	t->sent = digest_u64(t->sent, now_ns << 1 | side);
	t->sent = digest_bytes(t->sent, segment, len);
	twin_touch(t, side, conn);
}

// Which connection it is of is part of each digest.
static void replace(struct twin *t, uint64_t *digest, uint64_t now)
{
	t->states ^= *digest ^ now;
	*digest = now;
}

void twin_counters(struct twin *t, unsigned side, const uint64_t counters[])
{
	struct twin_side *s = &t->sides[side];
	if (!memcmp(s->counters, counters, sizeof(s->counters)))
		return;
	memcpy(s->counters, counters, sizeof(s->counters));
	replace(t, &s->digest, digest_bytes(side, counters, sizeof(s->counters)));
}

// Most connections rest in most turns: the digest of one in which no byte has changed is the last
// one. Its runs lie elsewhere, but nobody changes them without a segment or the timer in it.
void twin_state(struct twin *t, unsigned side, unsigned conn, const struct tcp_conn *c)
{
	struct twin_conn *k = &t->sides[side].conns[conn];
	if (!c) {
		replace(t, &k->digest, 0);
		return;
	}
	if (k->digest && !k->touched && !memcmp(&k->seen, c, sizeof(*c)))
		return;
	memcpy(&k->seen, c, sizeof(*c));
	k->touched = false;
	replace(t, &k->digest, digest_conn(1 + 2 * conn + side, c));
}

bool twin_turn(struct twin *t)
{
	uint64_t h = digest_u64(t->sent, t->states);
	size_t i = t->n_turns++;
	if (t->second)
		return i < t->n_first && t->turns[i] == h;
	if (i == t->max_turns) {
		t->max_turns = t->max_turns ? 2 * t->max_turns : 4096;
		t->turns = realloc(t->turns, t->max_turns * sizeof(*t->turns));
		if (!t->turns) {
			fputs("out of memory\n", stderr);
			abort();
		}
	}
	t->turns[i] = h;
	t->n_first = t->n_turns;
	return true;
}
