// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/failures.h"

#include "lb/base/cacheline.h"

#include <stddef.h>
#include <string.h>

#define WORD sizeof(uint64_t)
#define N_WORDS (sizeof(struct lb_failure) / WORD)
#define AT(member) (offsetof(struct lb_failure, member) / WORD)

static const struct text_place {
	uint32_t at, size; // words, bytes
} places[LB_FAILURE_N_TEXTS] = {
#define X(name, size) {AT(name), size},
	LB_FAILURE_TEXTS(X)
#undef X
};

#define X(name, size)                                                                              \
	_Static_assert(offsetof(struct lb_failure, name) % WORD == 0 && (size) % WORD == 0,        \
		"the parts are copied in words");
LB_FAILURE_TEXTS(X)
#undef X
_Static_assert(sizeof(struct lb_failure_attempt) % WORD == 0 &&
		       offsetof(struct lb_failure, attempts) % WORD == 0,
	"the parts are copied in words");

// A word that a reader sees is stored with release and loaded with acquire: who has seen a word of
// a new entry sees the stamp that came before it, too, and so that the old entry is gone.
struct slot {
	uint64_t stamp; // 2 n + 1: n is being written; 2 n + 2: n is there
	uint64_t words[N_WORDS];
};

struct lb_failures {
	uint64_t n; // w: worker (relaxed), r: any
	struct slot slots[LB_FAILURES];
};

struct lb_failures *lb_failures_new(void)
{
	return cacheline_alloc(1, sizeof(struct lb_failures));
}

void lb_failures_free(struct lb_failures *f)
{
	cacheline_free(f);
}

static void put(uint64_t *to, const void *from, size_t len)
{
	uint64_t word = 0;
	memcpy(&word, from, len);
	__atomic_store_n(to, word, __ATOMIC_RELEASE);
}

// With a NUL at its end.
static void put_text(uint64_t *to, size_t size, struct str text)
{
	size_t len = text.len < size ? text.len : size - 1, at = 0;
	for (; at + WORD <= len; at += WORD)
		put(to + at / WORD, text.p + at, WORD);
	put(to + at / WORD, len > at ? text.p + at : "", len - at);
}

void lb_failures_add(struct lb_failures *f, const struct lb_failure *what,
	const struct str texts[LB_FAILURE_N_TEXTS])
{
	uint64_t n = f->n;
	struct slot *s = &f->slots[n % LB_FAILURES];
	size_t fixed = AT(attempts) + what->n_kept * sizeof(what->attempts[0]) / WORD;
	__atomic_store_n(&s->stamp, 2 * n + 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < fixed; i++)
		put(s->words + i, (const char *)what + i * WORD, WORD);
	for (size_t i = 0; i < LB_FAILURE_N_TEXTS; i++)
		put_text(s->words + places[i].at, places[i].size, texts[i]);
	__atomic_store_n(&s->stamp, 2 * n + 2, __ATOMIC_RELEASE);
	__atomic_store_n(&f->n, n + 1, __ATOMIC_RELEASE);
}

uint64_t lb_failures_count(const struct lb_failures *f)
{
	return __atomic_load_n(&f->n, __ATOMIC_ACQUIRE);
}

bool lb_failures_read(const struct lb_failures *f, uint64_t number, struct lb_failure *ret)
{
	const struct slot *s = &f->slots[number % LB_FAILURES];
	if (__atomic_load_n(&s->stamp, __ATOMIC_ACQUIRE) != 2 * number + 2)
		return false;
	for (size_t i = 0; i < N_WORDS; i++) {
		uint64_t word = __atomic_load_n(&s->words[i], __ATOMIC_ACQUIRE);
		memcpy((char *)ret + i * WORD, &word, WORD);
	}
	return __atomic_load_n(&s->stamp, __ATOMIC_RELAXED) == 2 * number + 2;
}
