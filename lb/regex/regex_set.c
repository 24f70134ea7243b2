// SPDX-License-Identifier: Apache-2.0
#include "lb/base/check.h"
#include "lb/regex/regex.h"
#include "lb/regex/regex_chain.h"
#include "lb/regex/regex_re2.h"
#include "lb/regex/regex_syntax.h"

#include <errno.h>
#include <hs.h>
#include <stdio.h>
#include <stdlib.h>

// Patterns that are chains are looked at one by one; where they are more, one scan for all of them
// costs less.
#define CHAINS_MAX 8

// Larger programs are RE2's: Hyperscan may take minutes to compile one.
#define STEPS_MAX 4000

struct lb_regex_set {
	uint32_t n_refs; // ctrl only
	uint32_t n;
	hs_database_t *db; // owned; NULL = none of the patterns is Hyperscan's
	uint64_t by_re2; // patterns that are neither in db nor chains
	uint64_t if_empty; // patterns that match the empty subject
	char *prefix; // owned; literal start of whatever matches
	size_t prefix_len;
	size_t n_skipped; // of the prefix: db and chains begin behind them
	struct lb_regex_chain *chains[CHAINS_MAX]; // owned
	uint32_t n_chains;
	uint8_t chain_ids[CHAINS_MAX];
	struct regex_re2 *re2[]; // owned; of every pattern (RX-09)
};

struct lb_regex_scratches {
	uint32_t n_refs; // ctrl only
	uint32_t n;
	hs_scratch_t *model; // owned, ctrl only: what larger ones begin as; NULL as those below
	// Owned; NULL while no set has needed one. Hyperscan aligns each and pads its end by more
	// than a cache line, so no two threads write to the same.
	hs_scratch_t *of[];
};

int lb_regex_check(struct str pattern, struct lb_err *reterr)
{
	char why[128];
	struct regex_re2 *re = regex_re2_new(pattern.p, pattern.len, why, sizeof(why));
	if (!re)
		return lb_err_set(reterr, "%s", why);
	regex_re2_free(re);
	return 0;
}

// One pattern while the set is made.
struct draft {
	struct lb_regex_syntax syntax;
	char *text; // owned; NULL = RE2's
	size_t len;
};

// Patterns as Hyperscan gets them.
struct program {
	char *texts[LB_REGEX_SET_MAX]; // owned
	unsigned flags[LB_REGEX_SET_MAX], ids[LB_REGEX_SET_MAX];
	unsigned n;
};

static void program_fini(struct program *p)
{
	for (unsigned i = 0; i < p->n; i++)
		free(p->texts[i]);
}

// RX-06, RX-07.
static bool program_add(struct program *p, const struct draft *d, uint32_t bit)
{
	size_t size = d->len + sizeof("\\A(?:)\\z");
	char *text = malloc(size);
	if (!text)
		return false;
	snprintf(text, size, "\\A(?:%.*s)\\z", (int)d->len, d->text);
	p->texts[p->n] = text;
	p->flags[p->n] = HS_FLAG_ALLOWEMPTY | HS_FLAG_SINGLEMATCH;
	p->ids[p->n++] = bit;
	return true;
}

static hs_database_t *program_compile(const struct program *p, unsigned from, unsigned n)
{
	hs_database_t *db = NULL;
	hs_compile_error_t *error = NULL;
	hs_error_t rc = hs_compile_multi((const char *const *)p->texts + from, p->flags + from,
		p->ids + from, n, HS_MODE_BLOCK, NULL, &db, &error);
	hs_free_compile_error(error);
	return rc == HS_SUCCESS ? db : NULL;
}

// Drops what Hyperscan refuses, too large for it perhaps (RX-05).
static void program_sift(struct program *p, uint64_t *by_re2)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < p->n; i++) {
		hs_database_t *db = program_compile(p, i, 1);
		hs_free_database(db);
		if (db) {
			p->texts[kept] = p->texts[i];
			p->flags[kept] = p->flags[i];
			p->ids[kept++] = p->ids[i];
		} else {
			*by_re2 |= UINT64_C(1) << p->ids[i];
			free(p->texts[i]);
		}
	}
	p->n = kept;
}

static void set_compile(struct lb_regex_set *s, struct program *p)
{
	if (p->n)
		s->db = program_compile(p, 0, p->n);
	if (s->db || !p->n)
		return;
	program_sift(p, &s->by_re2);
	if (p->n)
		s->db = program_compile(p, 0, p->n);
	for (unsigned i = 0; !s->db && i < p->n; i++)
		s->by_re2 |= UINT64_C(1) << p->ids[i];
}

static void narrow_prefix(struct lb_regex_set *s, const char *prefix, size_t len)
{
	size_t i = 0;
	while (i < len && i < s->prefix_len && prefix[i] == s->prefix[i])
		i++;
	s->prefix_len = i;
}

// False = out of memory.
static bool read_pattern(struct lb_regex_set *s, struct draft *d, struct str pattern, uint32_t bit)
{
	char *prefix = malloc(pattern.len + 1);
	d->text = malloc(lb_regex_syntax_room(pattern.len));
	if (!prefix || !d->text) {
		free(prefix);
		return false;
	}
	d->syntax = lb_regex_syntax_read(pattern, prefix, d->text);
	d->len = d->syntax.text_len;
	if (!d->syntax.is_common || regex_re2_steps(s->re2[bit]) > STEPS_MAX) {
		free(d->text);
		d->text = NULL;
	}
	if (bit == 0) {
		s->prefix = prefix;
		s->prefix_len = s->n_skipped = d->syntax.prefix_len;
	} else {
		narrow_prefix(s, prefix, d->syntax.prefix_len);
		free(prefix);
	}
	if (d->text && d->syntax.n_bytes < s->n_skipped)
		s->n_skipped = d->syntax.n_bytes;
	return true;
}

// The patterns behind what all of them start with: chains, if there are few, or Hyperscan's.
static bool place(struct lb_regex_set *s, struct draft *drafts, struct program *program)
{
	if (s->n_skipped > s->prefix_len)
		s->n_skipped = s->prefix_len;
	for (uint32_t i = 0; i < s->n; i++) {
		struct draft *d = &drafts[i];
		if (!d->text) {
			s->by_re2 |= UINT64_C(1) << i;
			continue;
		}
		size_t cut = s->n_skipped * LB_REGEX_SYNTAX_BYTE;
		d->len -= cut;
		memmove(d->text, d->text + cut, d->len);
		if (s->n <= CHAINS_MAX &&
			(s->chains[s->n_chains] = lb_regex_chain_new(d->text, d->len)))
			s->chain_ids[s->n_chains++] = (uint8_t)i;
		else if (!program_add(program, d, i))
			return false;
	}
	return true;
}

// -EINVAL and why, or -ENOMEM.
static int compile(struct lb_regex_set *s, const struct str *patterns, struct lb_err *reterr)
{
	struct draft drafts[LB_REGEX_SET_MAX] = {0};
	struct program program = {0};
	char why[128];
	int rc = 0;
	for (uint32_t i = 0; i < s->n && !rc; i++) {
		s->re2[i] = regex_re2_new(patterns[i].p, patterns[i].len, why, sizeof(why));
		if (!s->re2[i])
			rc = lb_err_set(reterr, "%s", why);
		else if (!read_pattern(s, &drafts[i], patterns[i], i))
			rc = -ENOMEM;
		else if (regex_re2_match(s->re2[i], "", 0))
			s->if_empty |= UINT64_C(1) << i;
	}
	if (!rc && !place(s, drafts, &program))
		rc = -ENOMEM;
	if (!rc)
		set_compile(s, &program);
	program_fini(&program);
	for (uint32_t i = 0; i < s->n; i++)
		free(drafts[i].text);
	return rc;
}

static void set_free(struct lb_regex_set *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		regex_re2_free(s->re2[i]);
	for (uint32_t i = 0; i < s->n_chains; i++)
		lb_regex_chain_free(s->chains[i]);
	hs_free_database(s->db);
	free(s->prefix);
	free(s);
}

struct lb_regex_set *lb_regex_set_new(const struct str *patterns, uint32_t n, struct lb_err *reterr)
{
	CHECK(n > 0 && n <= LB_REGEX_SET_MAX);
	struct lb_regex_set *s = calloc(1, sizeof(*s) + n * sizeof(s->re2[0]));
	int rc = -ENOMEM;
	if (s) {
		s->n_refs = 1;
		s->n = n;
		rc = compile(s, patterns, reterr);
	}
	if (!rc)
		return s;
	if (rc == -ENOMEM)
		(void)lb_err_set(reterr, "out of memory");
	if (s)
		set_free(s);
	return NULL;
}

struct lb_regex_set *lb_regex_set_get(struct lb_regex_set *s)
{
	s->n_refs++;
	return s;
}

void lb_regex_set_put(struct lb_regex_set *s)
{
	if (!s)
		return;
	CHECK(s->n_refs > 0);
	if (--s->n_refs == 0)
		set_free(s);
}

bool lb_regex_set_is_shared(const struct lb_regex_set *s)
{
	return s->n_refs > 1;
}

struct str lb_regex_set_prefix(const struct lb_regex_set *s)
{
	return (struct str){s->prefix, s->prefix_len};
}

size_t lb_regex_set_size(const struct lb_regex_set *s)
{
	size_t db = 0;
	if (s->db)
		(void)hs_database_size(s->db, &db);
	size_t chains = 0;
	for (uint32_t i = 0; i < s->n_chains; i++)
		chains += lb_regex_chain_size(s->chains[i]);
	return sizeof(*s) + s->n * sizeof(s->re2[0]) + s->prefix_len + chains + db;
}

static int on_hit(
	unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *hits)
{
	*(uint64_t *)hits |= UINT64_C(1) << id;
	return 0;
}

// An ASCII subject, behind what was skipped. False = Hyperscan would not; `left` is what to do.
static uint64_t match_ascii(const struct lb_regex_set *s, struct lb_regex_scratches *scratches,
	uint32_t thread, struct str rest, uint64_t *ret_left)
{
	uint64_t hits = 0;
	for (uint32_t i = 0; i < s->n_chains; i++)
		hits |= (uint64_t)lb_regex_chain_match(s->chains[i], rest) << s->chain_ids[i];
	if (!s->db || hs_scan(s->db, rest.p, (unsigned)rest.len, 0, scratches->of[thread], on_hit,
			      &hits) == HS_SUCCESS)
		*ret_left = s->by_re2;
	return hits;
}

uint64_t lb_regex_set_match(const struct lb_regex_set *s, struct lb_regex_scratches *scratches,
	uint32_t thread, struct str subject)
{
	if (subject.len == 0)
		return s->if_empty;
	if (!str_starts(subject, lb_regex_set_prefix(s)))
		return 0;
	uint64_t hits = 0, left = UINT64_MAX >> (64 - s->n);
	if (subject.len <= UINT32_MAX && lb_regex_syntax_is_common_text(subject)) {
		struct str rest = {subject.p + s->n_skipped, subject.len - s->n_skipped};
		hits = match_ascii(s, scratches, thread, rest, &left);
	}
	for (; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);
		uint64_t bit = UINT64_C(1) << i;
		hits &= ~bit;
		if (regex_re2_match(s->re2[i], subject.p, subject.len))
			hits |= bit;
	}
	return hits;
}

static void scratches_free(struct lb_regex_scratches *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		(void)hs_free_scratch(s->of[i]);
	(void)hs_free_scratch(s->model);
	free(s);
}

// Takes the model over.
static struct lb_regex_scratches *scratches_new(uint32_t n, hs_scratch_t *model)
{
	struct lb_regex_scratches *s = calloc(1, sizeof(*s) + n * sizeof(s->of[0]));
	if (!s) {
		(void)hs_free_scratch(model);
		return NULL;
	}
	s->n_refs = 1;
	s->n = n;
	s->model = model;
	for (uint32_t i = 0; model && i < n; i++) {
		if (hs_clone_scratch(model, &s->of[i]) != HS_SUCCESS) {
			scratches_free(s);
			return NULL;
		}
	}
	return s;
}

static size_t scratch_size(const hs_scratch_t *s)
{
	size_t size = 0;
	if (s)
		(void)hs_scratch_size(s, &size);
	return size;
}

static struct lb_regex_scratches *scratches_get(struct lb_regex_scratches *s)
{
	s->n_refs++;
	return s;
}

struct lb_regex_scratches *lb_regex_scratches_fit(
	struct lb_regex_scratches *old, uint32_t n_workers, const struct lb_regex_set *set)
{
	hs_scratch_t *model = NULL;
	hs_scratch_t *known = old ? old->model : NULL;
	if (old && !set->db)
		return scratches_get(old);
	if (known && hs_clone_scratch(known, &model) != HS_SUCCESS)
		return NULL;
	if (set->db && hs_alloc_scratch(set->db, &model) != HS_SUCCESS) {
		(void)hs_free_scratch(model);
		return NULL;
	}
	// Whatever a set needs more of adds to the size.
	if (known && scratch_size(model) == scratch_size(known)) {
		(void)hs_free_scratch(model);
		return scratches_get(old);
	}
	return scratches_new(n_workers + 1, model);
}

void lb_regex_scratches_put(struct lb_regex_scratches *s)
{
	if (!s)
		return;
	CHECK(s->n_refs > 0);
	if (--s->n_refs == 0)
		scratches_free(s);
}
