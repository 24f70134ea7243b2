// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h1/impl.h"

#include <stdlib.h>

struct h1_context *h1_context_new(const struct h1_conf *conf, struct pool *chunks)
{
	struct h1_context *ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return NULL;
	ctx->conf = *conf;
	ctx->chunks = chunks;
	// One more: te, which may be added.
	ctx->fields = calloc(conf->max_header_fields + 1, sizeof(*ctx->fields));
	ctx->text = malloc(conf->max_header_bytes);
	ctx->gathered = malloc(conf->max_header_bytes);
	// An answer's list may be as large, and gets a status line and fields of ours.
	ctx->max_packed = conf->max_header_bytes + 256;
	ctx->packed = malloc(ctx->max_packed);
	if (pool_init(&ctx->conns, sizeof(struct h1_conn), conf->max_conns) || !ctx->fields ||
		!ctx->text || !ctx->gathered || !ctx->packed) {
		h1_context_free(ctx);
		return NULL;
	}
	return ctx;
}

void h1_context_free(struct h1_context *ctx)
{
	if (!ctx)
		return;
	pool_fini(&ctx->conns);
	free(ctx->fields);
	free(ctx->text);
	free(ctx->gathered);
	free(ctx->packed);
	free(ctx);
}

struct counter_set h1_context_counters(const struct h1_context *ctx)
{
	static const char *const names[] = {H1_COUNTERS(COUNTER_NAME)};
	return (struct counter_set){names, ctx->counters, H1_N_COUNTERS};
}

void h1_context_list_pools(struct h1_context *ctx, struct pool_list *list)
{
	pool_list_add(list, "h1_connections", &ctx->conns);
}
