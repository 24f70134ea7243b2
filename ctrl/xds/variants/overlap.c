// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/variants/overlap.h"

#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/constraints_inside.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/arena.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BRANCHES_MAX 512 // keys being tried at once: a bound on the stack

// What is known of a part while some keys are still open.
enum tri { NO, OPEN, YES };

// The two constraints as one list: a part's own parts follow it, up to `end`.
struct part {
	enum constraint_kind kind;
	uint32_t end;
	uint32_t var, choice; // VALUE; EXISTS has no choice
};

// A key. Its choices are numbers of their own, in one row.
#define ABSENT 0 // the first choice
#define OTHER 1 // the second: a value that is not mentioned
struct var {
	const char *key;
	uint32_t first, n_choices; // at least 2
	uint32_t n_allowed;
};

struct choice {
	const char *value; // NULL: ABSENT, OTHER
	uint32_t var;
	bool allowed;
};

// A mention of a key, on the way to vars and choices.
struct mention {
	const char *key, *value; // value NULL = exists
	uint32_t part;
};

struct search {
	struct lb_arena arena;
	struct part *parts;
	struct mention *mentions;
	struct var *vars;
	struct choice *choices;
	uint32_t *trail; // choices that were taken away, in order
	uint32_t n_parts, n_mentions, n_vars, n_choices, n_trail;
	uint32_t pinned; // this choice of its key is being tried; NONE = no
	uint32_t n_steps;
	unsigned n_branches;
};
#define NONE UINT32_MAX

static void count(const constraint_message *m, struct search *s)
{
	struct constraint_view c = constraint_view(m);
	s->n_parts++;
	s->n_mentions += c.key != NULL;
	for (size_t i = 0; i < c.n; i++)
		count(c.list[i], s);
}

static void add_parts(const constraint_message *m, struct search *s)
{
	struct constraint_view c = constraint_view(m);
	uint32_t at = s->n_parts++;
	s->parts[at].kind = c.kind;
	if (c.key)
		s->mentions[s->n_mentions++] = (struct mention){c.key, c.value, at};
	for (size_t i = 0; i < c.n; i++)
		add_parts(c.list[i], s);
	s->parts[at].end = s->n_parts;
}

static int mention_cmp(const void *x, const void *y)
{
	const struct mention *a = x, *b = y;
	int order = strcmp(a->key, b->key);
	if (order == 0 && (!a->value || !b->value))
		return (a->value != NULL) - (b->value != NULL);
	return order ? order : strcmp(a->value, b->value);
}

static void add_choice(struct search *s, const char *value, bool allowed)
{
	struct var *v = &s->vars[s->n_vars - 1];
	s->choices[s->n_choices++] = (struct choice){value, s->n_vars - 1, allowed};
	v->n_choices++;
	v->n_allowed += allowed;
}

// Mentions of one key stand together, those of `exists` before those of values.
static void number_keys(struct search *s)
{
	qsort(s->mentions, s->n_mentions, sizeof(*s->mentions), mention_cmp);
	const struct mention *before = NULL;
	for (uint32_t i = 0; i < s->n_mentions; before = &s->mentions[i++]) {
		const struct mention *m = &s->mentions[i];
		bool is_new_key = !before || strcmp(before->key, m->key) != 0;
		if (is_new_key) {
			s->vars[s->n_vars++] = (struct var){.key = m->key, .first = s->n_choices};
			add_choice(s, NULL, true);
			// Without `exists`, another value is as good as none.
			add_choice(s, NULL, !m->value);
		}
		if (m->value && (is_new_key || !before->value || strcmp(before->value, m->value)))
			add_choice(s, m->value, true);
		s->parts[m->part].var = s->n_vars - 1;
		s->parts[m->part].choice = s->n_choices - 1;
	}
}

// The part, with what is known of the keys. OPEN: *ret_open is a mention on which it hangs.
static enum tri evaluate(struct search *s, uint32_t at, uint32_t *ret_open)
{
	const struct part *p = &s->parts[at];
	s->n_steps++;
	switch (p->kind) {
	case CONSTRAINT_ANY:
		return YES;
	case CONSTRAINT_VALUE:
	case CONSTRAINT_EXISTS: {
		const struct var *v = &s->vars[p->var];
		bool is_value = p->kind == CONSTRAINT_VALUE;
		uint32_t choice = is_value ? p->choice : v->first + ABSENT;
		bool allowed = s->choices[choice].allowed, alone = v->n_allowed == 1;
		if (s->pinned != NONE && s->choices[s->pinned].var == p->var) {
			allowed = s->pinned == choice;
			alone = true;
		}
		*ret_open = at;
		if (allowed && !alone)
			return OPEN;
		return allowed == is_value ? YES : NO;
	}
	case CONSTRAINT_NOT:
		return YES - evaluate(s, at + 1, ret_open);
	case CONSTRAINT_OR:
	case CONSTRAINT_AND:
		break;
	}
	enum tri deciding = p->kind == CONSTRAINT_OR ? YES : NO;
	enum tri sum = YES - deciding;
	for (uint32_t i = at + 1; i < p->end; i = s->parts[i].end) {
		uint32_t open = 0;
		enum tri one = evaluate(s, i, &open);
		if (one == deciding)
			return one;
		if (one == OPEN) {
			sum = OPEN;
			*ret_open = open;
		}
	}
	return sum;
}

// Both constraints.
static enum tri evaluate_both(struct search *s, uint32_t *ret_open)
{
	uint32_t open_b;
	enum tri a = evaluate(s, 0, ret_open);
	enum tri b = a == NO ? NO : evaluate(s, s->parts[0].end, &open_b);
	if (a == YES && b == OPEN)
		*ret_open = open_b;
	return a < b ? a : b;
}

static void disallow(struct search *s, uint32_t choice)
{
	s->choices[choice].allowed = false;
	s->vars[s->choices[choice].var].n_allowed--;
	s->trail[s->n_trail++] = choice;
}

static void undo(struct search *s, uint32_t n_trail)
{
	while (s->n_trail > n_trail) {
		uint32_t choice = s->trail[--s->n_trail];
		s->choices[choice].allowed = true;
		s->vars[s->choices[choice].var].n_allowed++;
	}
}

static void allow_only(struct search *s, uint32_t choice)
{
	const struct var *v = &s->vars[s->choices[choice].var];
	for (uint32_t c = v->first; c < v->first + v->n_choices; c++)
		if (c != choice && s->choices[c].allowed)
			disallow(s, c);
}

static bool is_spent(const struct search *s)
{
	return s->n_steps > XDS_OVERLAP_STEPS_MAX;
}

// Takes away what cannot be of one key's choices. YES: one of them decides it.
static enum tri narrow_one(struct search *s, const struct var *v)
{
	uint32_t open;
	for (uint32_t c = v->first; c < v->first + v->n_choices && !is_spent(s); c++) {
		if (!s->choices[c].allowed)
			continue;
		s->pinned = c;
		enum tri r = evaluate_both(s, &open);
		s->pinned = NONE;
		if (r == YES) {
			allow_only(s, c);
			return YES;
		}
		if (r == NO)
			disallow(s, c);
	}
	return v->n_allowed ? OPEN : NO;
}

// Until nothing changes, or it is decided, or steps run out.
static enum tri narrow(struct search *s, uint32_t *ret_open)
{
	enum tri r = evaluate_both(s, ret_open);
	for (uint32_t before = NONE; r == OPEN && before != s->n_trail;) {
		before = s->n_trail;
		for (uint32_t i = 0; i < s->n_vars && r == OPEN; i++)
			if (s->vars[i].n_allowed > 1)
				r = narrow_one(s, &s->vars[i]);
		if (r == OPEN)
			r = evaluate_both(s, ret_open);
	}
	return r;
}

// 1, 0 or -E2BIG.
static int solve(struct search *s)
{
	for (;;) {
		uint32_t open = 0;
		enum tri r = narrow(s, &open);
		if (r != OPEN)
			return r == YES;
		if (is_spent(s) || s->n_branches == BRANCHES_MAX)
			return -E2BIG;
		// An open part hangs on a choice that is allowed and not alone.
		const struct part *p = &s->parts[open];
		uint32_t choice =
			p->kind == CONSTRAINT_VALUE ? p->choice : s->vars[p->var].first + ABSENT;
		uint32_t mark = s->n_trail;
		allow_only(s, choice);
		s->n_branches++;
		int found = solve(s);
		s->n_branches--;
		if (found)
			return found;
		undo(s, mark);
		disallow(s, choice);
	}
}

// A value that is none of the key's choices.
static const char *other_value(struct search *s, const struct var *v)
{
	static const char word[] = "other";
	char *text = lb_arena_alloc(&s->arena, 1, sizeof(word) + 10);
	for (uint32_t n = 1; text; n++) {
		snprintf(text, sizeof(word) + 10, n == 1 ? "%s" : "%s%u", word, n);
		uint32_t c = v->first, end = v->first + v->n_choices;
		while (c < end && (!s->choices[c].value || strcmp(s->choices[c].value, text) != 0))
			c++;
		if (c == end)
			break;
	}
	return text;
}

// Any of the allowed choices will do, and no parameter is better than one.
static int tell(struct search *s, struct xds_params **ret)
{
	struct xds_param *list = lb_arena_alloc(&s->arena, s->n_vars, sizeof(*list));
	if (!list)
		return -ENOMEM;
	size_t n = 0;
	for (const struct var *v = s->vars; v < s->vars + s->n_vars; v++) {
		uint32_t c = v->first;
		while (!s->choices[c].allowed)
			c++;
		CHECK(c < v->first + v->n_choices);
		if (c == v->first + ABSENT)
			continue;
		list[n] = (struct xds_param){v->key, s->choices[c].value};
		if (c == v->first + OTHER)
			list[n].value = other_value(s, v);
		if (!list[n++].value)
			return -ENOMEM;
	}
	return xds_params_new(list, n, ret);
}

static int prepare(struct search *s, const constraint_message *a, const constraint_message *b)
{
	count(a, s);
	count(b, s);
	s->parts = lb_arena_alloc(&s->arena, s->n_parts, sizeof(*s->parts));
	s->mentions = lb_arena_alloc(&s->arena, s->n_mentions, sizeof(*s->mentions));
	s->vars = lb_arena_alloc(&s->arena, s->n_mentions, sizeof(*s->vars));
	// Each mention brings at most a key and a value.
	s->choices = lb_arena_alloc(&s->arena, s->n_mentions, 3 * sizeof(*s->choices));
	s->trail = lb_arena_alloc(&s->arena, s->n_mentions, 3 * sizeof(*s->trail));
	if (!s->parts || !s->mentions || !s->vars || !s->choices || !s->trail)
		return -ENOMEM;
	s->n_parts = s->n_mentions = 0;
	add_parts(a, s);
	add_parts(b, s);
	number_keys(s);
	return 0;
}

int xds_overlap_find(const struct xds_constraints *a, const struct xds_constraints *b,
	struct xds_params **ret, struct lb_err *err)
{
	constraint_message any;
	envoy__service__discovery__v3__dynamic_parameter_constraints__init(&any);
	struct search s = {.pinned = NONE};
	int rc = prepare(
		&s, a ? xds_constraints_message(a) : &any, b ? xds_constraints_message(b) : &any);
	if (!rc)
		rc = solve(&s);
	if (rc == -E2BIG)
		lb_err_set(err, "too complex: undecided after %u steps", s.n_steps);
	if (rc == 1) {
		rc = tell(&s, ret);
		rc = rc ? rc : 1;
	}
	lb_arena_fini(&s.arena);
	return rc;
}
