// SPDX-License-Identifier: Apache-2.0
// ring_hash (gRFC A42, A61; RH-04..RH-07): a request's hash names a place on the ring,
// and the members from there on in turn serve it. Nothing connects before a pick needs it: then the
// pick carries a connect request to the control thread, which connects the member for all workers
// (MC-07, MC-13). A worker that lacks a connection to a READY one opens its own and waits (MC-05).
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/member/member.h"
#include "lb/pick/cells.h"
#include "lb/pick/picker.h"
#include "lb/pick/ring.h"
#include "lb/policy/node_error.h"
#include "lb/policy/node_ops.h"
#include "lb/route/hash_policy.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_STATES 4
#define RETRY_NS NS_PER_SECOND

// Constant while the list of members is the same.
struct shared_ring {
	uint32_t n_refs;
	struct lb_ring *ring; // owned
	// Of the header that is hashed (RH-10), whose name is behind it; NULL = none.
	struct lb_hash_policy *policy;
};

struct picker {
	struct lb_picker base;
	struct shared_ring *ring; // counted
	struct lb_cells cells; // by index of the member in the ring's list
	bool is_connecting; // somebody is
};

struct list {
	struct lb_member_watcher watcher;
	struct ring_node *node;
	struct shared_ring *ring; // counted; NULL = there are no members
	struct lb_cells cells; // one a member
	bool is_stale; // a change of the cells found out of memory
	uint32_t n;
	uint32_t n_in[N_STATES];
	uint8_t *states; // behind the members
	struct lb_member *members[]; // counted and watched, each under its index
};

struct ring_node {
	struct lb_node base;
	struct list *list; // owned; NULL before the first update
	enum lb_state published;
	bool is_published; // and nothing that the picker holds has changed since
	bool is_busy; // updating or waking somebody up: it settles afterwards
};

static void ring_put(struct shared_ring *r)
{
	if (!r || --r->n_refs)
		return;
	lb_ring_free(r->ring);
	free(r);
}

// The i-th on the way round the ring.
static const struct lb_cell *cell_at(const struct picker *p, uint32_t first, uint32_t i)
{
	uint32_t size = lb_ring_size(p->ring->ring);
	uint32_t place = first + i < size ? first + i : first + i - size;
	return lb_cells_at(&p->cells, lb_ring_item_at(p->ring->ring, place));
}

static struct lb_pick fail(const struct picker *p, uint32_t first)
{
	return (struct lb_pick){.kind = LB_PICK_FAIL, .text = cell_at(p, first, 0)->error->text};
}

// RH-10, gRFC A76: no hash binds the request, so whoever is READY serves it, and one other is
// connected besides unless somebody is being connected already.
static struct lb_pick pick_unbound(const struct picker *p, struct lb_pick_ctx *ctx)
{
	uint32_t size = lb_ring_size(p->ring->ring);
	uint32_t first = lb_ring_find(p->ring->ring, rand_u64(ctx->rand));
	struct lb_pick result = {.kind = LB_PICK_QUEUE};
	for (uint32_t i = 0; i < size && result.kind == LB_PICK_QUEUE; i++) {
		const struct lb_cell *c = cell_at(p, first, i);
		if (c->state == LB_IDLE && !p->is_connecting && !result.connect_request)
			result.connect_request = c->member + 1;
		if (c->state != LB_READY)
			continue;
		if (lb_pick_is_connected(ctx, c)) {
			result.kind = LB_PICK_ENDPOINT;
			result.cell = c;
		} else if (!result.want) { // MC-04
			result.want = c->endpoint;
		}
	}
	if (result.kind == LB_PICK_QUEUE && !result.want && !result.connect_request &&
		!p->is_connecting)
		return fail(p, first);
	return result;
}

// RH-04
static const struct lb_cell *pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct picker *p = CONTAINER_OF(base, struct picker, base);
	const struct lb_ring *ring = p->ring->ring;
	uint64_t hash;
	if (!p->ring->policy)
		hash = lb_pick_hash(ctx);
	else if (!lb_hash_policies_run(p->ring->policy, 1, ctx->req, ctx->recipe.hides_transport,
			 ctx->scratch, ctx->scratch_size, &hash))
		return lb_pick_other(ctx, pick_unbound(p, ctx));
	struct lb_pick other = {.kind = LB_PICK_QUEUE};
	uint32_t size = lb_ring_size(ring), first = lb_ring_find(ring, hash);
	for (uint32_t i = 0; i < size; i++) {
		const struct lb_cell *c = cell_at(p, first, i);
		switch ((enum lb_state)c->state) {
		case LB_READY:
			if (lb_pick_is_connected(ctx, c))
				return c;
			other.want = c->endpoint; // MC-05
			return lb_pick_other(ctx, other);
		case LB_IDLE:
			other.connect_request = c->member + 1;
			return lb_pick_other(ctx, other);
		case LB_CONNECTING:
			return lb_pick_other(ctx, other);
		case LB_TRANSIENT_FAILURE:
			break;
		}
	}
	return lb_pick_other(ctx, fail(p, first));
}

static void picker_free(struct lb_picker *base)
{
	struct picker *p = CONTAINER_OF(base, struct picker, base);
	lb_cells_fini(&p->cells);
	ring_put(p->ring);
	free(p);
}

static struct lb_picker *picker_new(struct list *l)
{
	struct picker *p = malloc(sizeof(*p));
	if (!p)
		return NULL;
	l->ring->n_refs++;
	*p = (struct picker){{1, pick, picker_free}, l->ring, lb_cells_share(&l->cells),
		l->n_in[LB_CONNECTING] > 0};
	return &p->base;
}

// What a request hears that all members fail. NULL = out of memory.
static struct lb_text *error_of(const struct ring_node *r, const struct lb_member *m)
{
	char error[LB_NODE_ERROR_MAX], text[640];
	const char *note = r->base.env->note;
	lb_node_member_error(m, error);
	snprintf(text, sizeof(text),
		"cluster %s: no endpoint of the ring works, its first: %s%s%s%s",
		r->base.env->cluster, error, *note ? " (" : "", note, *note ? ")" : "");
	return lb_text_new(text);
}

// Sets or, at the end, adds the cell.
static int put_cell(struct list *l, uint32_t i)
{
	const struct lb_member *m = l->members[i];
	struct lb_cell cell = {.member = lb_member_id(m), .state = l->states[i]};
	struct lb_text *error = NULL;
	if (cell.state == LB_READY) {
		cell.endpoint = lb_member_endpoint(m);
	} else if (cell.state == LB_TRANSIENT_FAILURE) {
		cell.error = error = error_of(l->node, m);
		if (!error)
			return -ENOMEM;
	}
	int err =
		i < l->cells.n ? lb_cells_set(&l->cells, i, cell) : lb_cells_push(&l->cells, cell);
	lb_text_put(error);
	return err;
}

static int make_cells(struct list *l)
{
	lb_cells_fini(&l->cells);
	for (uint32_t i = 0; i < l->n; i++)
		if (put_cell(l, i))
			return -ENOMEM;
	lb_cells_seal(&l->cells);
	l->is_stale = false;
	return 0;
}

// RH-06
static enum lb_state aggregate(const struct list *l)
{
	if (l->n_in[LB_READY])
		return LB_READY;
	if (l->n_in[LB_TRANSIENT_FAILURE] >= 2)
		return LB_TRANSIENT_FAILURE;
	if (l->n_in[LB_CONNECTING] || (l->n_in[LB_TRANSIENT_FAILURE] && l->n > 1))
		return LB_CONNECTING;
	return l->n_in[LB_IDLE] ? LB_IDLE : LB_TRANSIENT_FAILURE;
}

static void try_again_later(struct ring_node *r)
{
	lb_node_again(&r->base, twheel_now(r->base.env->wheel) + RETRY_NS);
}

static void publish(struct ring_node *r)
{
	struct list *l = r->list;
	enum lb_state state = aggregate(l);
	if (r->is_published && state == r->published)
		return;
	struct lb_picker *p = NULL;
	if (l->n == 0)
		p = lb_node_fail_picker(r->base.env, 0, "");
	else if (!l->is_stale || make_cells(l) == 0)
		p = picker_new(l);
	r->is_published = p && lb_node_publish(&r->base, state, p) == 0;
	if (r->is_published)
		r->published = state;
	else // the old picker stays meanwhile
		try_again_later(r);
}

// RH-07. Parents send no picks to who is failing, so it finds out by itself who works.
static void wake_one(struct ring_node *r)
{
	struct list *l = r->list;
	enum lb_state state = aggregate(l);
	if (state == LB_READY || state == LB_IDLE || l->n_in[LB_CONNECTING] || !l->n_in[LB_IDLE])
		return;
	const uint8_t *idle = memchr(l->states, LB_IDLE, l->n);
	struct lb_member *m = l->members[idle - l->states];
	r->is_busy = true;
	lb_member_connect(m); // the list counts that meanwhile
	r->is_busy = false;
	if (lb_member_raw_state(m) == LB_IDLE)
		try_again_later(r);
}

static void settle(struct ring_node *r)
{
	if (r->is_busy)
		return;
	wake_one(r);
	publish(r);
}

static void on_change(struct lb_member_watcher *w, uint32_t i)
{
	struct list *l = CONTAINER_OF(w, struct list, watcher);
	struct ring_node *r = l->node;
	const struct lb_member *m = l->members[i];
	enum lb_state state = lb_member_state(m);
	lb_node_reresolve(r->base.env, m);
	// Attempts of a failing one change nothing but the error that they end with.
	if (state == l->states[i] && state != LB_READY &&
		(state != LB_TRANSIENT_FAILURE || lb_member_raw_state(m) == LB_CONNECTING))
		return;
	l->n_in[l->states[i]]--;
	l->n_in[state]++;
	l->states[i] = (uint8_t)state;
	l->is_stale |= put_cell(l, i) != 0;
	r->is_published = false;
	settle(r);
}

static void list_free(struct list *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->n; i++) {
		lb_member_unwatch(l->members[i], &l->watcher, i);
		lb_member_put(l->members[i]);
	}
	lb_cells_fini(&l->cells);
	ring_put(l->ring);
	free(l);
}

static int add_member(struct list *l, struct lb_member *m)
{
	uint32_t i = l->n;
	if (!lb_member_watch(m, &l->watcher, i))
		return -ENOMEM;
	l->members[l->n++] = lb_member_get(m);
	l->states[i] = (uint8_t)lb_member_state(m);
	l->n_in[l->states[i]]++;
	return put_cell(l, i);
}

// Without a ring. NULL = out of memory.
static struct shared_ring *ring_allocate(struct str header)
{
	struct lb_hash_policy *policy;
	struct shared_ring *r =
		calloc(1, sizeof(*r) + (header.len ? sizeof(*policy) + header.len : 0));
	if (!r || !header.len)
		return r;
	policy = (struct lb_hash_policy *)(r + 1);
	policy->header = (struct str){memcpy(policy + 1, header.p, header.len), header.len};
	r->policy = policy;
	return r;
}

static struct shared_ring *ring_new(const struct lb_node_config *config, uint32_t n)
{
	const struct lb_policy_spec *spec = config->spec;
	struct shared_ring *r = ring_allocate(spec->ring_hash.request_hash_header);
	struct lb_ring_item *items = malloc(n * sizeof(items[0]));
	char(*texts)[IP_PORT_TEXT_MAX] = malloc(n * sizeof(texts[0]));
	uint32_t at = 0;
	for (uint32_t i = 0; items && texts && i < config->n_localities; i++) {
		const struct lb_node_locality *locality = &config->localities[i];
		for (uint32_t k = 0; k < locality->n_members; k++, at++) {
			const struct lb_node_member *m = &locality->members[k];
			const struct ip_port *first = lb_member_address(m->member, 0);
			const char *key = locality->hash_keys ? locality->hash_keys[k] : "";
			items[at] = (struct lb_ring_item){str_from(key), m->weight};
			if (!*key) // RH-01
				items[at].key = str_from(ip_port_print(first, texts[at]));
		}
	}
	if (r && items && texts)
		r->ring = lb_ring_new(items, n, spec->ring_hash.min_size, spec->ring_hash.max_size);
	free(items);
	free(texts);
	if (r && r->ring) {
		r->n_refs = 1;
		return r;
	}
	free(r);
	return NULL;
}

static struct list *list_new(struct ring_node *r, const struct lb_node_config *config)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < config->n_localities; i++)
		n += config->localities[i].n_members;
	struct list *l = malloc(sizeof(*l) + n * (sizeof(l->members[0]) + sizeof(l->states[0])));
	if (!l)
		return NULL;
	*l = (struct list){.watcher = {.on_change = on_change, .n = n},
		.node = r,
		.states = (uint8_t *)&l->members[n]};
	if (n && !(l->ring = ring_new(config, n)))
		goto err;
	for (uint32_t i = 0; i < config->n_localities; i++)
		for (uint32_t k = 0; k < config->localities[i].n_members; k++)
			if (add_member(l, config->localities[i].members[k].member))
				goto err;
	lb_cells_seal(&l->cells);
	return l;
err:
	list_free(l);
	return NULL;
}

static void again(struct lb_node *node)
{
	settle(CONTAINER_OF(node, struct ring_node, base));
}

static struct lb_node *node_new(struct lb_node_env *env, struct lb_node_parent parent)
{
	struct ring_node *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->base = (struct lb_node){&lb_node_ring_hash, env, parent};
	return &r->base;
}

static int node_update(struct lb_node *node, const struct lb_node_config *config)
{
	struct ring_node *r = CONTAINER_OF(node, struct ring_node, base);
	struct list *l = list_new(r, config), *old = r->list;
	if (!l)
		return -ENOMEM;
	r->list = l;
	r->is_published = false;
	settle(r);
	list_free(old);
	return 0;
}

// RH-05: picks say themselves who is to connect.
static void exit_idle(struct lb_node *node)
{
	(void)node;
}

static void node_free(struct lb_node *node)
{
	struct ring_node *r = CONTAINER_OF(node, struct ring_node, base);
	list_free(r->list);
	free(r);
}

const struct lb_node_ops lb_node_ring_hash = {
	.name = "ring_hash_experimental",
	.new = node_new,
	.update = node_update,
	.exit_idle = exit_idle,
	.again = again,
	.free = node_free,
};
