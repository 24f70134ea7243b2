// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/node_spread.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/member/member.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define N_STATES 4
#define RETRY_NS NS_PER_SECOND
#define NOWHERE ((1u << 30) - 1)
// Guesses at another endpoint, when this worker lacks a connection to the one whose turn it is.
// Guessing spreads the load that walking on would give to the neighbor.
#define N_GUESSES 8
// And places walked after that: a worker that finds none among so many is connected to hardly any,
// and its requests wait for the connection that their turn opens.
#define N_WALKED 1024
#define N_AHEAD 8 // members that are fetched while others are listed

// A member, its state as RR-03 counts it, and where its cell is.
struct listed {
	struct lb_member *member; // counted and watched
	uint32_t state : 2;
	uint32_t place : 30; // NOWHERE = it is not READY
	uint32_t at_place; // index of the member whose cell has this one's index for its place
};

// The members of one update.
struct lb_spread_list {
	struct lb_member_watcher watcher;
	struct lb_spread *node;
	bool is_open; // built: its members may act
	bool is_stale; // a change of the cells found out of memory: they are to be made anew
	uint32_t n;
	uint32_t n_in[N_STATES];
	struct lb_cells cells; // in any order
	struct listed members[]; // each watched under its index
};

static const struct lb_spread_kind *kind_of(const struct lb_spread *s)
{
	return s->base.ops->spread;
}

static const struct lb_cell *find_connected(const struct lb_cells *c, struct lb_pick_ctx *ctx)
{
	for (int i = 0; i < N_GUESSES; i++) {
		const struct lb_cell *cell = lb_cells_at(c, (uint32_t)rand_below(ctx->rand, c->n));
		if (lb_pick_is_connected(ctx, cell))
			return cell;
	}
	uint32_t at = (uint32_t)rand_below(ctx->rand, c->n);
	for (uint32_t i = 0; i < c->n && i < N_WALKED; i++) {
		const struct lb_cell *cell = lb_cells_at(c, at);
		if (lb_pick_is_connected(ctx, cell))
			return cell;
		at = at + 1 < c->n ? at + 1 : 0;
	}
	return NULL;
}

const struct lb_cell *lb_spread_serve_other(
	const struct lb_spread_picker *p, struct lb_pick_ctx *ctx, const struct lb_cell *turn)
{
	const struct lb_cell *other = find_connected(&p->cells, ctx);
	return lb_pick_other(ctx, (struct lb_pick){.kind = other ? LB_PICK_ENDPOINT : LB_PICK_QUEUE,
					  .cell = other,
					  .want = turn->endpoint});
}

static void picker_free(struct lb_picker *base)
{
	struct lb_spread_picker *p = CONTAINER_OF(base, struct lb_spread_picker, base);
	lb_cells_fini(&p->cells);
	free(p);
}

static struct lb_picker *picker_new(const struct lb_spread *s)
{
	struct lb_spread_picker *p = malloc(sizeof(*p));
	uint32_t n = s->current->cells.n;
	if (!p)
		return NULL;
	*p = (struct lb_spread_picker){
		.base = {1, kind_of(s)->pick, picker_free},
		.cells = lb_cells_share(&s->current->cells),
		.slot = s->slot,
		.start = (uint32_t)rand_u64(s->base.env->rand),
		.step = (uint32_t)((((uint64_t)1 << 32) + n - 1) / n), // rounded up: no cell twice
		.choice_count = s->choice_count,
	};
	return &p->base;
}

// In a list that waits nobody weighs anything yet.
static struct lb_cell cell_of(const struct lb_spread_list *l, uint32_t i)
{
	struct lb_spread *s = l->node;
	return (struct lb_cell){
		.endpoint = lb_member_endpoint(l->members[i].member),
		.member = lb_member_id(l->members[i].member),
		.state = LB_READY,
		.wants_report = kind_of(s)->wants_reports,
		.counts_active = kind_of(s)->counts_active,
		.weight = kind_of(s)->weight && l == s->current ? kind_of(s)->weight(s) : 0,
	};
}

static void set_place(struct lb_spread_list *l, uint32_t i, uint32_t place)
{
	l->members[i].place = place & NOWHERE;
	if (place != NOWHERE)
		l->members[place].at_place = i;
}

static int add_cell(struct lb_spread_list *l, uint32_t i)
{
	int err = lb_cells_push(&l->cells, cell_of(l, i));
	if (!err)
		set_place(l, i, l->cells.n - 1);
	return err;
}

// The last one takes its place, so that nobody else moves.
static int remove_cell(struct lb_spread_list *l, uint32_t i)
{
	struct lb_spread *s = l->node;
	uint32_t at = l->members[i].place, last = l->cells.n - 1;
	uint16_t weight = lb_cells_at(&l->cells, at)->weight;
	if (at != last && lb_cells_set(&l->cells, at, *lb_cells_at(&l->cells, last)))
		return -ENOMEM;
	if (lb_cells_pop(&l->cells))
		return -ENOMEM;
	set_place(l, l->members[last].at_place, at);
	set_place(l, i, NOWHERE);
	if (kind_of(s)->left && l == s->current)
		s->must_weigh |= kind_of(s)->left(s, weight);
	return 0;
}

// Its member is READY through another address: it weighs as much as before.
static int renew_cell(struct lb_spread_list *l, uint32_t i)
{
	uint32_t at = l->members[i].place;
	struct lb_cell cell = *lb_cells_at(&l->cells, at);
	cell.endpoint = lb_member_endpoint(l->members[i].member);
	return lb_cells_set(&l->cells, at, cell);
}

static int make_cells(struct lb_spread_list *l)
{
	lb_cells_fini(&l->cells);
	for (uint32_t i = 0; i < l->n; i++) {
		set_place(l, i, NOWHERE);
		if (l->members[i].state == LB_READY && add_cell(l, i))
			return -ENOMEM;
	}
	l->is_stale = false;
	l->node->must_weigh = kind_of(l->node)->weigh;
	return 0;
}

// After a change of its member. True = its cell changed.
static bool update_cell(struct lb_spread_list *l, uint32_t i)
{
	if (l->is_stale)
		return true;
	struct listed *now = &l->members[i];
	bool ready = now->state == LB_READY;
	int err = 0;
	if (ready && now->place == NOWHERE)
		err = add_cell(l, i);
	else if (!ready && now->place != NOWHERE)
		err = remove_cell(l, i);
	else if (ready &&
		 lb_cells_at(&l->cells, now->place)->endpoint != lb_member_endpoint(now->member))
		err = renew_cell(l, i);
	else
		return false;
	l->is_stale = err;
	return true;
}

// RR-03; an empty list is TRANSIENT_FAILURE (RR-04).
static enum lb_state aggregate(const struct lb_spread_list *l)
{
	if (l->n_in[LB_READY])
		return LB_READY;
	return l->n_in[LB_CONNECTING] || l->n_in[LB_IDLE] ? LB_CONNECTING : LB_TRANSIENT_FAILURE;
}

static int weigh(struct lb_spread *s, bool *ret_changed)
{
	int err = kind_of(s)->weigh ? kind_of(s)->weigh(s, &s->current->cells, ret_changed) : 0;
	s->must_weigh = err;
	return err;
}

static struct lb_picker *make_picker(struct lb_spread *s, enum lb_state state)
{
	bool changed;
	struct lb_spread_list *l = s->current;
	if (state == LB_CONNECTING)
		return lb_picker_queue();
	if (state == LB_TRANSIENT_FAILURE)
		return lb_node_fail_picker(s->base.env, l->n, s->last_error ? s->last_error : "");
	if (l->is_stale && make_cells(l))
		return NULL;
	if (s->must_weigh && weigh(s, &changed))
		return NULL;
	return picker_new(s);
}

static void try_again_later(struct lb_spread *s)
{
	lb_node_again(&s->base, twheel_now(s->base.env->wheel) + RETRY_NS);
}

static void publish(struct lb_spread *s)
{
	enum lb_state state = aggregate(s->current);
	if (s->is_published && state == s->published)
		return;
	struct lb_picker *p = make_picker(s, state);
	s->is_published = p && lb_node_publish(&s->base, state, p) == 0;
	if (s->is_published)
		s->published = (uint8_t)state;
	else // the old picker stays meanwhile
		try_again_later(s);
}

static void list_free(struct lb_spread_list *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->n; i++) {
		lb_member_unwatch(l->members[i].member, &l->watcher, i);
		lb_member_put(l->members[i].member);
	}
	lb_cells_fini(&l->cells);
	free(l);
}

// RR-04. Every member of ours is counted as soon as it is in the list.
static bool pending_takes_over(const struct lb_spread *s)
{
	const struct lb_spread_list *pending = s->pending;
	return pending &&
	       (!s->current || s->current->n_in[LB_READY] == 0 || pending->n_in[LB_READY] > 0 ||
		       pending->n_in[LB_TRANSIENT_FAILURE] == pending->n);
}

static void settle(struct lb_spread *s)
{
	struct lb_spread_list *old = NULL;
	if (s->is_updating)
		return;
	s->n_settled++;
	if (pending_takes_over(s)) {
		old = s->current;
		s->current = s->pending;
		s->pending = NULL;
		s->is_published = false;
		s->must_weigh = kind_of(s)->weigh;
	}
	publish(s);
	list_free(old);
}

// Without memory the one before stays.
static void keep_error(struct lb_spread *s, const struct lb_member *m)
{
	char text[LB_NODE_ERROR_MAX];
	lb_node_member_error(m, text);
	char *copy = strdup(text);
	if (!copy)
		return;
	free(s->last_error);
	s->last_error = copy;
}

static void count(struct lb_spread_list *l, uint32_t i)
{
	struct lb_spread *s = l->node;
	const struct lb_member *m = l->members[i].member;
	enum lb_state state = lb_member_state(m);
	l->n_in[l->members[i].state]--;
	l->n_in[state]++;
	l->members[i].state = (unsigned)state & 3;
	bool changed = update_cell(l, i);
	// An attempt of a failing one brings no other error until it ends.
	bool has_error = state == LB_TRANSIENT_FAILURE && lb_member_raw_state(m) != LB_CONNECTING;
	if (has_error)
		keep_error(s, m);
	// The picker names the READY ones, or the last error.
	if (l == s->current && (changed || (has_error && s->published == LB_TRANSIENT_FAILURE)))
		s->is_published = false;
}

static void on_change(struct lb_member_watcher *w, uint32_t i)
{
	struct lb_spread_list *l = CONTAINER_OF(w, struct lb_spread_list, watcher);
	struct lb_spread *s = l->node;
	struct lb_member *m = l->members[i].member;
	bool was_ready = l->members[i].state == LB_READY;
	count(l, i);
	if (!was_ready && l->members[i].state == LB_READY && kind_of(s)->became_ready)
		kind_of(s)->became_ready(s, m);
	lb_node_reresolve(s->base.env, m);
	if (!l->is_open)
		return;
	if (lb_member_raw_state(m) == LB_IDLE) { // RR-01
		uint32_t before = s->n_settled;
		// Comes back here; the list may be gone then.
		bool is_put_off = lb_member_connect_in_turn(m);
		if (s->n_settled != before || s->is_updating)
			return;
		if (!is_put_off)
			try_again_later(s);
	}
	settle(s); // the list may be gone after this
}

// False = out of memory.
static bool add_member(struct lb_spread_list *l, struct lb_member *m)
{
	uint32_t i = l->n;
	if (!lb_member_watch(m, &l->watcher, i))
		return false;
	l->members[l->n++] =
		(struct listed){.member = lb_member_get(m), .state = LB_IDLE, .place = NOWHERE};
	l->n_in[LB_IDLE]++;
	if (lb_member_state(m) != LB_IDLE)
		count(l, i);
	return true;
}

// RR-01; only if it is IDLE.
static void connect(struct lb_spread_list *l, uint32_t i)
{
	struct lb_member *m = l->members[i].member;
	if (!lb_member_connect_in_turn(m) && lb_member_raw_state(m) == LB_IDLE)
		try_again_later(l->node);
}

// Each is connected as soon as it is listed. Where that ends for want of memory, whoever has the
// members gives back what nobody uses.
static bool add_locality(struct lb_spread_list *l, const struct lb_node_locality *from)
{
	for (uint32_t i = 0; i < from->n_members; i++) {
		if (i + N_AHEAD < from->n_members)
			__builtin_prefetch(from->members[i + N_AHEAD].member, 1);
		if (!add_member(l, from->members[i].member))
			return false;
		connect(l, l->n - 1);
	}
	return true;
}

static struct lb_spread_list *list_new(struct lb_spread *s, const struct lb_node_config *config)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < config->n_localities; i++)
		n += config->localities[i].n_members;
	struct lb_spread_list *l = malloc(sizeof(*l) + n * sizeof(l->members[0]));
	if (!l)
		return NULL;
	*l = (struct lb_spread_list){.watcher = {.on_change = on_change, .n = n}, .node = s};
	bool ok = true;
	for (uint32_t i = 0; ok && i < config->n_localities; i++)
		ok = add_locality(l, &config->localities[i]);
	if (ok && !l->is_stale)
		return l;
	list_free(l);
	return NULL;
}

static void connect_all(struct lb_spread_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		connect(l, i);
}

void lb_spread_again(struct lb_node *base)
{
	struct lb_spread *s = CONTAINER_OF(base, struct lb_spread, base);
	s->is_updating = true; // so that no list goes while it is walked
	if (s->current)
		connect_all(s->current);
	if (s->pending)
		connect_all(s->pending);
	s->is_updating = false;
	settle(s);
}

bool lb_spread_init(struct lb_spread *s, const struct lb_spread_kind *kind, struct lb_node_env *env,
	struct lb_node_parent parent)
{
	uint32_t slot = kind->has_slot ? env->services->slot_take(env->ctx) : UINT32_MAX;
	if (kind->has_slot && slot == UINT32_MAX)
		return false;
	*s = (struct lb_spread){.base = {kind->ops, env, parent}, .slot = slot};
	return true;
}

// What the newest list has, in the same order.
static bool is_listed(const struct lb_spread *s, const struct lb_node_config *config)
{
	const struct lb_spread_list *l = s->pending ? s->pending : s->current;
	uint32_t n = 0;
	for (uint32_t i = 0; l && i < config->n_localities; i++)
		for (uint32_t k = 0; k < config->localities[i].n_members; k++, n++)
			if (n >= l->n ||
				l->members[n].member != config->localities[i].members[k].member)
				return false;
	return l && n == l->n;
}

int lb_spread_update(struct lb_node *base, const struct lb_node_config *config)
{
	struct lb_spread *s = CONTAINER_OF(base, struct lb_spread, base);
	bool is_known = is_listed(s, config);
	s->is_updating = true;
	struct lb_spread_list *l = is_known ? NULL : list_new(s, config);
	if ((l || is_known) && kind_of(s)->configure)
		kind_of(s)->configure(s, config->spec);
	if (l) {
		l->is_open = true;
		list_free(s->pending);
		s->pending = l;
	}
	s->is_updating = false;
	if (!l && !is_known)
		return -ENOMEM;
	s->is_published &= s->published != LB_TRANSIENT_FAILURE; // the note
	settle(s);
	return 0;
}

void lb_spread_weigh(struct lb_spread *s)
{
	bool changed = false;
	if (!s->current || s->current->is_stale || s->current->cells.n == 0)
		return;
	weigh(s, &changed);
	if (changed)
		s->is_published = false;
	publish(s);
}

void lb_spread_fini(struct lb_spread *s)
{
	list_free(s->pending);
	list_free(s->current);
	free(s->last_error);
	if (s->slot != UINT32_MAX)
		s->base.env->services->slot_give(s->base.env->ctx, s->slot);
}

struct lb_node *lb_spread_new(
	const struct lb_spread_kind *kind, struct lb_node_env *env, struct lb_node_parent parent)
{
	struct lb_spread *s = malloc(sizeof(*s));
	if (s && !lb_spread_init(s, kind, env, parent)) {
		free(s);
		return NULL;
	}
	return s ? &s->base : NULL;
}

void lb_spread_free(struct lb_node *node)
{
	lb_spread_fini(CONTAINER_OF(node, struct lb_spread, base));
	free(node);
}

void lb_spread_exit_idle(struct lb_node *node)
{
	(void)node;
}
