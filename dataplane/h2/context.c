// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/hpack_memo.h"
#include "dataplane/h2/impl.h"
#include "lb/base/cacheline.h"

#include <stdlib.h>

// HPACK memory: most connections keep about a kilobyte, and the worst two full tables of 8.
// Untouched pages cost nothing.
#define HPACK_PAGES_SHARED 64
// Fields that the owner adds to a message it passes on.
#define FIELDS_ADDED 32
#define BYTES_ADDED 8192

static uint32_t power_of_two(uint32_t at_least)
{
	uint32_t n = 16;
	while (n < at_least && n < 1u << 31)
		n *= 2;
	return n;
}

static int init_memory(struct h2_context *ctx)
{
	const struct h2_conf *conf = &ctx->conf;
	uint32_t buckets = power_of_two(conf->max_streams);
	ctx->table_mask = buckets - 1;
	ctx->table = cacheline_alloc(buckets, sizeof(*ctx->table));
	ctx->max_fields = conf->max_header_fields + FIELDS_ADDED;
	ctx->trailers = cacheline_alloc(ctx->max_fields, sizeof(*ctx->trailers));
	ctx->gathered = cacheline_alloc(1, H2_MAX_GATHERED);
	ctx->decoded = cacheline_alloc(1, HPACK_ROOM(H2_MAX_GATHERED));
	ctx->max_encoded = (size_t)conf->max_header_bytes + BYTES_ADDED;
	ctx->encoded = cacheline_alloc(1, ctx->max_encoded);
	ctx->packed = cacheline_alloc(1, ctx->max_encoded);
	ctx->hpack_mem = hpack_mem_new(HPACK_PAGES_SHARED + conf->max_conns);
	ctx->hpack_memo = hpack_memo_new();
	if (!ctx->table || !ctx->trailers || !ctx->gathered || !ctx->decoded || !ctx->encoded ||
		!ctx->packed || !ctx->hpack_mem || !ctx->hpack_memo)
		return -1;
	if (h2_block_init(&ctx->block, conf->max_header_fields, conf->max_header_bytes))
		return -1;
	ctx->block.slow_path = conf->slow_path;
	if (pool_init(&ctx->conns, sizeof(struct h2_conn), conf->max_conns))
		return -1;
	return pool_init(&ctx->streams, sizeof(struct h2_stream), conf->max_streams);
}

struct h2_context *h2_context_new(const struct h2_conf *conf, struct pool *chunks)
{
	struct h2_context *ctx = cacheline_alloc(1, sizeof(*ctx));
	if (!ctx)
		return NULL;
	ctx->conf = *conf;
	ctx->chunks = chunks;
	ctx->unbounded = INT64_MAX;
	h2_greeting_pack(&ctx->greetings[H2_SERVER], conf, H2_SERVER);
	h2_greeting_pack(&ctx->greetings[H2_CLIENT], conf, H2_CLIENT);
	if (init_memory(ctx)) {
		h2_context_free(ctx);
		return NULL;
	}
	rand_init(&ctx->rand, conf->seed);
	ctx->hash_key = rand_u64(&ctx->rand) | 1;
	return ctx;
}

void h2_context_set_bounds(
	struct h2_context *ctx, uint32_t max_concurrent_streams, uint32_t conn_window)
{
	ctx->conf.max_concurrent_streams = max_concurrent_streams;
	ctx->conf.conn_window = conn_window;
	h2_greeting_pack(&ctx->greetings[H2_SERVER], &ctx->conf, H2_SERVER);
}

void h2_context_free(struct h2_context *ctx)
{
	if (!ctx)
		return;
	pool_fini(&ctx->conns);
	pool_fini(&ctx->streams);
	h2_block_fini(&ctx->block);
	hpack_mem_free(ctx->hpack_mem);
	hpack_memo_free(ctx->hpack_memo);
	cacheline_free(ctx->table);
	cacheline_free(ctx->trailers);
	cacheline_free(ctx->gathered);
	cacheline_free(ctx->decoded);
	cacheline_free(ctx->encoded);
	cacheline_free(ctx->packed);
	cacheline_free(ctx);
}

struct counter_set h2_context_counters(const struct h2_context *ctx)
{
	static const char *const names[] = {H2_COUNTERS(COUNTER_NAME)};
	return (struct counter_set){.names = names, .values = ctx->counters, .n = H2_N_COUNTERS};
}

void h2_context_list_pools(struct h2_context *ctx, struct pool_list *l)
{
	pool_list_add(l, "h2_connections", &ctx->conns);
	pool_list_add(l, "h2_streams", &ctx->streams);
	struct pool_view hpack = hpack_mem_view(ctx->hpack_mem);
	pool_list_add_view(l, &hpack);
}
