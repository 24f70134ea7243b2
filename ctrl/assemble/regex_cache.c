// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/regex_cache.h"

#include "ctrl/base/strmap.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/index/hash.h"
#include "lb/regex/regex_syntax.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

// A scan costs about the same for one pattern and for many, so few large sets are best to match;
// small ones are best to compile when one of their patterns changes. This many take milliseconds.
#define PATTERNS_PER_SET 16
#define SWEEPS_KEPT 2
#define LENGTH_SIZE 24 // of a key

// One set. Patterns are sorted and unique, so that equal contents have equal keys.
struct entry {
	struct strmap_link link; // key: the patterns, each with its length
	char *key; // owned
	struct str *patterns; // owned; the texts lie behind the array
	uint32_t n;
	uint32_t n_idle; // sweeps since it was asked for
	bool asked; // since the last regex_cache_forget_unasked()
	struct lb_regex_set *set; // counted; NULL = pending, or failed
	bool pending;
	struct entry *next; // in the thread's queues
	struct lb_err err;
};

struct queue {
	struct entry *head, *tail;
};

struct regex_cache {
	bool synchronous;
	struct strmap entries;
	struct regex_cache_totals totals;
	pthread_t thread;
	pthread_mutex_t lock; // of what follows
	pthread_cond_t wake;
	struct queue wanted, done;
	bool stopping;
};

static void queue_put(struct queue *q, struct entry *e)
{
	e->next = NULL;
	if (q->tail)
		q->tail->next = e;
	else
		q->head = e;
	q->tail = e;
}

static struct entry *queue_take(struct queue *q)
{
	struct entry *e = q->head;
	if (e && !(q->head = e->next))
		q->tail = NULL;
	return e;
}

static void *run(void *arg)
{
	struct regex_cache *c = arg;
	pthread_mutex_lock(&c->lock);
	while (!c->stopping) {
		struct entry *e = queue_take(&c->wanted);
		if (!e) {
			pthread_cond_wait(&c->wake, &c->lock);
			continue;
		}
		pthread_mutex_unlock(&c->lock);
		e->set = lb_regex_set_new(e->patterns, e->n, &e->err);
		pthread_mutex_lock(&c->lock);
		queue_put(&c->done, e);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

// Signals are the control loop's.
static int start(struct regex_cache *c)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&c->thread, NULL, run, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

struct regex_cache *regex_cache_new(const struct regex_cache_conf *conf)
{
	struct regex_cache *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->synchronous = conf->synchronous;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	if (c->synchronous || start(c) == 0)
		return c;
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return NULL;
}

static void entry_free(struct entry *e)
{
	lb_regex_set_put(e->set);
	free(e->patterns);
	free(e->key);
	free(e);
}

static void forget(struct regex_cache *c, struct entry *e)
{
	if (e->set)
		c->totals.n_bytes -= lb_regex_set_size(e->set);
	c->totals.n_sets--;
	strmap_remove(&c->entries, &e->link);
	entry_free(e);
}

static struct entry *entry_of(struct strmap_link *link)
{
	return CONTAINER_OF(link, struct entry, link); // link is the first member
}

void regex_cache_free(struct regex_cache *c)
{
	if (!c)
		return;
	if (!c->synchronous) {
		pthread_mutex_lock(&c->lock);
		c->stopping = true;
		pthread_cond_signal(&c->wake);
		pthread_mutex_unlock(&c->lock);
		pthread_join(c->thread, NULL);
	}
	for (uint32_t i = 0; i < c->entries.n_buckets; i++)
		for (struct strmap_link *l = c->entries.buckets[i]; l;) {
			struct entry *e = entry_of(l);
			l = l->next;
			entry_free(e);
		}
	strmap_fini(&c->entries);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

// Cutting.

struct item {
	struct str pattern;
	struct str prefix; // "" for headers
	uint64_t hash; // of the pattern
	uint32_t index; // in the caller's list
};

static int by_group(const void *pa, const void *pb)
{
	const struct item *a = pa, *b = pb;
	int order = str_order(a->prefix, b->prefix);
	if (order)
		return order;
	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return str_order(a->pattern, b->pattern);
}

static bool same_pattern(const struct item *a, const struct item *b)
{
	return str_eq(a->pattern, b->pattern);
}

// NUL and 0x01 become two bytes: a key is a C string, a pattern may hold anything (RX-10).
static char *put_pattern(char *at, struct str p)
{
	for (size_t i = 0; i < p.len; i++) {
		if ((uint8_t)p.p[i] <= 1)
			*at++ = 1;
		*at++ = p.p[i] ? p.p[i] : 2;
	}
	return at;
}

// "<length>:<pattern>" of each.
static char *key_of(const struct item *items, uint32_t n, uint32_t *ret_n_unique)
{
	size_t size = 1;
	for (uint32_t i = 0; i < n; i++)
		size += 2 * items[i].pattern.len + LENGTH_SIZE;
	char *key = malloc(size), *at = key;
	if (!key)
		return NULL;
	*ret_n_unique = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (i && same_pattern(&items[i - 1], &items[i]))
			continue;
		at += snprintf(at, LENGTH_SIZE, "%zu:", items[i].pattern.len);
		at = put_pattern(at, items[i].pattern);
		++*ret_n_unique;
	}
	*at = 0;
	return key;
}

static bool copy_patterns(struct entry *e, const struct item *items, uint32_t n)
{
	size_t size = e->n * sizeof(struct str);
	for (uint32_t i = 0; i < n; i++)
		size += items[i].pattern.len;
	e->patterns = malloc(size);
	if (!e->patterns)
		return false;
	char *text = (char *)&e->patterns[e->n];
	uint32_t at = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct str p = items[i].pattern;
		if (i && same_pattern(&items[i - 1], &items[i]))
			continue;
		if (p.len)
			memcpy(text, p.p, p.len);
		e->patterns[at++] = (struct str){text, p.len};
		text += p.len;
	}
	return true;
}

// Takes the key over. NULL = out of memory.
static struct entry *entry_new(
	struct regex_cache *c, char *key, const struct item *items, uint32_t n, uint32_t n_unique)
{
	struct entry *e = calloc(1, sizeof(*e));
	if (!e) {
		free(key);
		return NULL;
	}
	e->key = key;
	e->n = n_unique;
	if (!copy_patterns(e, items, n) || strmap_add(&c->entries, &e->link, key)) {
		entry_free(e);
		return NULL;
	}
	c->totals.n_sets++;
	return e;
}

static void finished(struct regex_cache *c, struct entry *e)
{
	if (e->pending)
		c->totals.n_pending--;
	e->pending = false;
	if (!e->set)
		return;
	c->totals.n_compiled++;
	c->totals.n_bytes += lb_regex_set_size(e->set);
}

static void compile(struct regex_cache *c, struct entry *e)
{
	if (c->synchronous) {
		e->set = lb_regex_set_new(e->patterns, e->n, &e->err);
		finished(c, e);
		return;
	}
	e->pending = true;
	c->totals.n_pending++;
	pthread_mutex_lock(&c->lock);
	queue_put(&c->wanted, e);
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

// The items of one set: ready, pending or failed.
static int resolve(struct regex_cache *c, const struct item *items, uint32_t n,
	struct lb_regex_ref *ret, struct lb_err *reterr)
{
	uint32_t n_unique;
	char *key = key_of(items, n, &n_unique);
	if (!key)
		return lb_err_set(reterr, "out of memory");
	struct strmap_link *found = strmap_find(&c->entries, key);
	struct entry *e;
	if (found) {
		free(key);
		e = entry_of(found);
	} else {
		e = entry_new(c, key, items, n, n_unique);
		if (!e)
			return lb_err_set(reterr, "out of memory");
		compile(c, e);
	}
	e->n_idle = 0;
	e->asked = true;
	if (e->pending)
		return -EAGAIN;
	if (!e->set) {
		(void)lb_err_set(reterr, "%s", e->err.text);
		forget(c, e); // the next to ask tries again
		return -EINVAL;
	}
	for (uint32_t i = 0, bit = 0; i < n; i++) {
		bit += i && !same_pattern(&items[i - 1], &items[i]);
		ret[items[i].index] = (struct lb_regex_ref){e->set, bit};
	}
	return 0;
}

// Patterns with one start, by their hashes: too many are halved by the first bit, then by the next.
// So the cuts depend on what is in the list alone, and one pattern more or less touches the set
// where it belongs, or makes two of it.
static int resolve_group(struct regex_cache *c, const struct item *items, uint32_t n, unsigned bit,
	struct lb_regex_ref *ret, struct lb_err *reterr)
{
	uint32_t n_unique = n ? 1 : 0, middle = 0;
	for (uint32_t i = 1; i < n; i++)
		n_unique += !same_pattern(&items[i - 1], &items[i]);
	if (n == 0)
		return 0;
	if (n_unique <= PATTERNS_PER_SET)
		return resolve(c, items, n, ret, reterr);
	if (bit == 64)
		return lb_err_set(reterr, "%u patterns have one hash", n_unique);
	while (middle < n && !(items[middle].hash << bit >> 63))
		middle++;
	int low = resolve_group(c, items, middle, bit + 1, ret, reterr);
	if (low == -EINVAL)
		return low;
	int high = resolve_group(c, items + middle, n - middle, bit + 1, ret, reterr);
	return high ? high : low;
}

static bool read_items(enum regex_cache_use use, const struct str *patterns, uint32_t n,
	struct item *items, char **ret_text)
{
	size_t size = 1;
	for (uint32_t i = 0; i < n; i++)
		size += patterns[i].len;
	char *text = malloc(size);
	*ret_text = text;
	for (uint32_t i = 0; text && i < n; i++) {
		items[i] = (struct item){.pattern = patterns[i], .index = i};
		items[i].hash = lb_hash(patterns[i].p, patterns[i].len);
		if (use == REGEX_OF_HEADERS)
			continue;
		size_t len = lb_regex_syntax_read(patterns[i], text, NULL).prefix_len;
		items[i].prefix = (struct str){text, len};
		text += len;
	}
	return *ret_text;
}

int regex_cache_ask(struct regex_cache *c, enum regex_cache_use use, const struct str *patterns,
	uint32_t n, struct lb_regex_ref *ret, struct lb_err *reterr)
{
	struct item *items = calloc(n + 1, sizeof(*items));
	char *text = NULL;
	if (!items || !read_items(use, patterns, n, items, &text)) {
		free(items);
		return lb_err_set(reterr, "out of memory");
	}
	qsort(items, n, sizeof(*items), by_group);
	int rc = 0;
	for (uint32_t begin = 0, end; begin < n && rc != -EINVAL; begin = end) {
		for (end = begin + 1; end < n && str_eq(items[end].prefix, items[begin].prefix);)
			end++;
		int one = resolve_group(c, &items[begin], end - begin, 0, ret, reterr);
		rc = one ? one : rc;
	}
	free(text);
	free(items);
	return rc;
}

bool regex_cache_poll(struct regex_cache *c)
{
	bool any = false;
	for (;;) {
		pthread_mutex_lock(&c->lock);
		struct entry *e = queue_take(&c->done);
		pthread_mutex_unlock(&c->lock);
		if (!e)
			return any;
		finished(c, e);
		any = true;
	}
}

// What the thread has taken it also gives back: that stays.
void regex_cache_forget_unasked(struct regex_cache *c)
{
	struct queue kept = {0}, unasked = {0};
	pthread_mutex_lock(&c->lock);
	for (struct entry *e; (e = queue_take(&c->wanted));) {
		queue_put(e->asked ? &kept : &unasked, e);
		e->asked = false;
	}
	c->wanted = kept;
	pthread_mutex_unlock(&c->lock);
	for (struct entry *e; (e = queue_take(&unasked));) {
		c->totals.n_pending--;
		forget(c, e);
	}
}

void regex_cache_sweep(struct regex_cache *c)
{
	for (uint32_t i = 0; i < c->entries.n_buckets; i++)
		for (struct strmap_link *l = c->entries.buckets[i]; l;) {
			struct entry *e = entry_of(l);
			l = l->next;
			bool in_use = e->pending || (e->set && lb_regex_set_is_shared(e->set));
			e->n_idle = in_use ? 0 : e->n_idle + 1;
			if (e->n_idle > SWEEPS_KEPT)
				forget(c, e);
		}
}

struct regex_cache_totals regex_cache_count(const struct regex_cache *c)
{
	return c->totals;
}
