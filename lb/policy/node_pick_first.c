// SPDX-License-Identifier: Apache-2.0
// pick_first (gRFC A61, A62; PF-01..PF-07): one connection for the whole list. The
// addresses of all endpoints make one member of the node's own, which does the connecting.
// Ejections do not concern it: there is nobody else to send requests to.
#include "lb/base/container_of.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/member/member.h"
#include "lb/pick/picker.h"
#include "lb/policy/node_error.h"
#include "lb/policy/node_ops.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS NS_PER_SECOND

struct picker {
	struct lb_picker base;
	struct lb_cell cell; // its endpoint is counted; IDLE: the member is to be connected
};

// An endpoint of the update, and what its addresses are counted as.
struct owner {
	struct lb_member *member; // counted
	double order; // of trying: the smallest first
};

// One update.
struct list {
	struct lb_member_watcher watcher; // of its own member
	struct pick_first *node;
	struct lb_member *own; // counted; NULL = there are no addresses
	uint32_t n;
	struct owner owners[];
};

struct pick_first {
	struct lb_node base;
	struct list *list; // owned; NULL before the first update
	char last_error[LB_NODE_ERROR_MAX];
	enum lb_state published;
	bool is_published;
	bool must_connect; // it is to leave IDLE
	bool is_updating;
};

static const struct lb_cell *pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct lb_cell *c = &CONTAINER_OF(base, struct picker, base)->cell;
	struct lb_pick other = {.kind = LB_PICK_QUEUE};
	if (c->state == LB_IDLE)
		other.connect_request = c->member + 1;
	else if (lb_pick_is_connected(ctx, c))
		return c;
	else
		other.want = c->endpoint; // MC-04
	return lb_pick_other(ctx, other);
}

static void picker_free(struct lb_picker *base)
{
	struct picker *p = CONTAINER_OF(base, struct picker, base);
	if (p->cell.endpoint)
		lb_endpoint_put(lb_endpoint_table_of(p->cell.endpoint), p->cell.endpoint);
	free(p);
}

// Requests count for the endpoint of the update whose address is in use.
static uint32_t owner_of(const struct list *l, const struct ip_port *address)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct lb_member *m = l->owners[i].member;
		for (uint32_t k = 0; k < lb_member_n_addresses(m); k++)
			if (ip_port_eq(lb_member_address(m, k), address))
				return lb_member_id(m);
	}
	return lb_member_id(l->own);
}

static struct lb_picker *picker_new(const struct list *l)
{
	struct picker *p = malloc(sizeof(*p));
	if (!p)
		return NULL;
	struct lb_endpoint *e = lb_member_endpoint(l->own);
	*p = (struct picker){.base = {1, pick, picker_free}};
	if (e)
		p->cell = (struct lb_cell){.endpoint = lb_endpoint_get_again(e),
			.endpoint_id = e->id,
			.member = owner_of(l, &e->addr),
			.state = LB_READY};
	else
		p->cell = (struct lb_cell){.member = lb_member_id(l->own), .state = LB_IDLE};
	return &p->base;
}

static void try_again_later(struct pick_first *f)
{
	lb_node_again(&f->base, twheel_now(f->base.env->wheel) + RETRY_NS);
}

static void publish(struct pick_first *f)
{
	const struct list *l = f->list;
	enum lb_state state = l->own ? lb_member_state(l->own) : LB_TRANSIENT_FAILURE;
	// Until there was memory to begin with.
	if (state == LB_IDLE && f->must_connect)
		state = LB_CONNECTING;
	if (f->is_published && state == f->published)
		return;
	struct lb_picker *p;
	if (state == LB_TRANSIENT_FAILURE)
		p = lb_node_fail_picker(f->base.env, l->n, f->last_error);
	else if (state == LB_CONNECTING)
		p = lb_picker_queue();
	else
		p = picker_new(l);
	f->is_published = p && lb_node_publish(&f->base, state, p) == 0;
	if (f->is_published)
		f->published = state;
	else // the old picker stays meanwhile
		try_again_later(f);
}

static void connect_now(struct pick_first *f)
{
	struct lb_member *own = f->list->own;
	f->must_connect = own && lb_member_raw_state(own) == LB_IDLE;
	if (!f->must_connect)
		return;
	bool was_updating = f->is_updating;
	f->is_updating = true;
	lb_member_connect(own);
	f->is_updating = was_updating;
	f->must_connect = lb_member_raw_state(own) == LB_IDLE;
	if (f->must_connect)
		try_again_later(f);
}

static void on_change(struct lb_member_watcher *w, uint32_t index)
{
	(void)index;
	struct list *l = CONTAINER_OF(w, struct list, watcher);
	struct pick_first *f = l->node;
	enum lb_state state = lb_member_state(l->own);
	lb_node_reresolve(f->base.env, l->own);
	if (state == LB_TRANSIENT_FAILURE)
		lb_node_member_error(l->own, f->last_error);
	if (state == LB_TRANSIENT_FAILURE || state == LB_READY)
		f->is_published = false; // another error, or another address
	if (!f->is_updating)
		publish(f);
}

static void again(struct lb_node *node)
{
	struct pick_first *f = CONTAINER_OF(node, struct pick_first, base);
	if (f->must_connect)
		connect_now(f);
	publish(f);
}

static void list_free(struct list *l)
{
	if (!l)
		return;
	if (l->own)
		lb_member_unwatch(l->own, &l->watcher, 0);
	lb_member_put(l->own);
	for (uint32_t i = 0; i < l->n; i++)
		lb_member_put(l->owners[i].member);
	free(l);
}

static int compare(const void *pa, const void *pb)
{
	const struct owner *a = pa, *b = pb;
	return a->order < b->order ? -1 : a->order > b->order;
}

// PF-01: where shuffled, who weighs more tends to the front: those with the largest u^(1/weight),
// of which the logarithm does as well (gRFC A113).
static double order_of(
	struct pick_first *f, const struct lb_node_config *config, uint32_t i, uint32_t weight)
{
	if (!config->spec->pick_first.shuffle)
		return i;
	double u = ((double)(rand_u64(f->base.env->rand) >> 11) + 1) / 9007199254740992.0;
	return -log(u) / (weight ? weight : 1);
}

static uint32_t count_members(const struct lb_node_config *config)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < config->n_localities; i++)
		n += config->localities[i].n_members;
	return n;
}

static struct list *list_new(struct pick_first *f, const struct lb_node_config *config)
{
	uint32_t n = count_members(config);
	struct list *l = calloc(1, sizeof(*l) + n * sizeof(l->owners[0]));
	if (!l)
		return NULL;
	l->node = f;
	l->watcher = (struct lb_member_watcher){.on_change = on_change, .n = 1};
	for (uint32_t i = 0; i < config->n_localities; i++)
		for (uint32_t k = 0; k < config->localities[i].n_members; k++) {
			const struct lb_node_member *m = &config->localities[i].members[k];
			l->owners[l->n] = (struct owner){
				lb_member_get(m->member), order_of(f, config, l->n, m->weight)};
			l->n++;
		}
	qsort(l->owners, l->n, sizeof(l->owners[0]), compare);
	return l;
}

// All addresses in the order of trying; the one to be kept, if it is among them, first. NULL = no
// memory.
static struct ip_port *flatten(const struct list *l, const struct ip_port *keep, uint32_t *ret_n)
{
	uint32_t n = 0, at = 0, kept = UINT32_MAX;
	for (uint32_t i = 0; i < l->n; i++)
		n += lb_member_n_addresses(l->owners[i].member);
	struct ip_port *list = malloc((n + 1) * sizeof(list[0]));
	if (!list)
		return NULL;
	for (uint32_t i = 0; i < l->n; i++) {
		const struct lb_member *m = l->owners[i].member;
		for (uint32_t k = 0; k < lb_member_n_addresses(m); k++) {
			list[at] = *lb_member_address(m, k);
			if (keep && ip_port_eq(&list[at], keep))
				kept = at;
			at++;
		}
	}
	if (kept != UINT32_MAX) {
		memmove(list + 1, list, kept * sizeof(list[0]));
		list[0] = *keep;
	}
	*ret_n = n;
	return list;
}

static bool fits(const struct pick_first *f, const struct lb_member *m)
{
	const struct lb_node_env *env = f->base.env;
	return !env->services->member_fits || env->services->member_fits(env->ctx, m);
}

// The member stays where the addresses do; else there is a new one. False = out of memory.
static bool list_open(struct pick_first *f, struct list *l)
{
	struct lb_member *old = f->list ? f->list->own : NULL;
	struct lb_endpoint *in_use = old ? lb_member_endpoint(old) : NULL;
	uint32_t n;
	struct ip_port *all = flatten(l, in_use ? &in_use->addr : NULL, &n);
	struct ip_port *ordered = all ? flatten(l, NULL, &n) : NULL;
	bool ok = ordered;
	if (ok && n && old && lb_member_same_set(old, ordered, n) && fits(f, old)) {
		l->own = lb_member_get(old);
	} else if (ok && n) {
		l->own = f->base.env->services->member_new(f->base.env->ctx, all, n);
		ok = l->own;
	}
	if (ok && l->own && !lb_member_watch(l->own, &l->watcher, 0)) {
		lb_member_put(l->own);
		l->own = NULL;
		ok = false;
	}
	if (ok && l->own) {
		// PF-07: finds the connection in use, which the first address has.
		if (in_use && ip_port_eq(&all[0], &in_use->addr))
			lb_member_connect(l->own);
		lb_member_reorder(l->own, ordered); // from the next pass on
	}
	free(all);
	free(ordered);
	return ok;
}

static struct lb_node *node_new(struct lb_node_env *env, struct lb_node_parent parent)
{
	struct pick_first *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->base = (struct lb_node){&lb_node_pick_first, env, parent};
	return &f->base;
}

// Where the address in use is gone it starts anew, unless nobody wants anything.
static int node_update(struct lb_node *node, const struct lb_node_config *config)
{
	struct pick_first *f = CONTAINER_OF(node, struct pick_first, base);
	struct list *l = list_new(f, config), *old = f->list;
	bool rests =
		old && old->own && lb_member_raw_state(old->own) == LB_IDLE && !f->must_connect;
	f->is_updating = true;
	if (!l || !list_open(f, l)) {
		f->is_updating = false;
		list_free(l);
		return -ENOMEM;
	}
	f->list = l;
	f->must_connect = false;
	if (!rests)
		connect_now(f);
	f->is_updating = false;
	f->is_published = false;
	publish(f);
	list_free(old);
	return 0;
}

static void exit_idle(struct lb_node *node)
{
	struct pick_first *f = CONTAINER_OF(node, struct pick_first, base);
	if (!f->list)
		return;
	connect_now(f);
	publish(f);
}

static void node_free(struct lb_node *node)
{
	struct pick_first *f = CONTAINER_OF(node, struct pick_first, base);
	list_free(f->list);
	free(f);
}

const struct lb_node_ops lb_node_pick_first = {
	.name = "pick_first",
	.new = node_new,
	.update = node_update,
	.exit_idle = exit_idle,
	.again = again,
	.free = node_free,
};
