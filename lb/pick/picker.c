// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/picker.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/route/hash_policy.h"

#include <stdlib.h>
#include <string.h>

struct fail_picker {
	struct lb_picker base;
	char text[];
};

uint64_t lb_pick_hash(struct lb_pick_ctx *ctx)
{
	struct lb_pick_hash *hash = ctx->hash;
	const struct lb_hash_recipe *of = &ctx->recipe;
	if (!hash->known &&
		!lb_hash_policies_run(of->policies, of->n, ctx->req, of->hides_transport,
			ctx->scratch, ctx->scratch_size, &hash->value))
		hash->value = rand_u64(ctx->rand);
	hash->known = true;
	return hash->value;
}

struct lb_picker *lb_picker_get(struct lb_picker *p)
{
	if (p->n_refs != LB_PICKER_STATIC)
		p->n_refs++;
	return p;
}

void lb_picker_put(struct lb_picker *p)
{
	if (!p || p->n_refs == LB_PICKER_STATIC)
		return;
	CHECK(p->n_refs > 0);
	if (--p->n_refs == 0)
		p->free(p);
}

static const struct lb_cell *pick_queue(const struct lb_picker *p, struct lb_pick_ctx *ctx)
{
	(void)p;
	return lb_pick_other(ctx, (struct lb_pick){.kind = LB_PICK_QUEUE});
}

static const struct lb_cell *pick_fail(const struct lb_picker *p, struct lb_pick_ctx *ctx)
{
	const struct fail_picker *f = CONTAINER_OF(p, struct fail_picker, base);
	return lb_pick_other(ctx, (struct lb_pick){.kind = LB_PICK_FAIL, .text = f->text});
}

static void plain_free(struct lb_picker *p)
{
	free(p);
}

// Of ten thousand clusters that nobody is connected to each would have several.
struct lb_picker *lb_picker_queue(void)
{
	static const struct lb_picker queue = {LB_PICKER_STATIC, pick_queue, NULL};
	return (struct lb_picker *)(uintptr_t)&queue;
}

struct lb_picker *lb_picker_new_fail(const char *text)
{
	size_t size = strlen(text) + 1;
	struct fail_picker *p = malloc(sizeof(*p) + size);
	if (!p)
		return NULL;
	p->base = (struct lb_picker){1, pick_fail, plain_free};
	memcpy(p->text, text, size);
	return &p->base;
}

const char *lb_picker_error(const struct lb_picker *p)
{
	return p && p->pick == pick_fail ? CONTAINER_OF(p, struct fail_picker, base)->text : NULL;
}
