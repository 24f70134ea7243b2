// SPDX-License-Identifier: Apache-2.0
// Contexts and connections: their memory, their beginning and their ends.
#include "dataplane/tls/impl.h"
#include "lb/base/check.h"

#include <stdlib.h>
#include <string.h>

#define RECORD_TIMEOUT_NS (20 * NS_PER_SECOND)
#define MAX_RECORDS (UINT64_C(1) << 23)
#define N_KEYS 512

static const char *const counter_names[] = {TLS_COUNTERS(COUNTER_NAME)};

// What the peer is told (RFC 8446 6, RFC 5246 7.2).
static const uint8_t alerts[TLS_N_CAUSES] = {
	[TLS_BAD_TAG] = TLS_BAD_RECORD_MAC,
	[TLS_OVERSIZE_RECORD] = TLS_RECORD_OVERFLOW,
	[TLS_UNEXPECTED_RECORD] = TLS_UNEXPECTED_MESSAGE,
	[TLS_UNEXPECTED_HANDSHAKE] = TLS_UNEXPECTED_MESSAGE,
	[TLS_WRONG_VERSION] = TLS_PROTOCOL_VERSION,
	[TLS_BAD_LENGTH] = TLS_DECODE_ERROR,
	[TLS_BAD_VALUE] = TLS_ILLEGAL_PARAMETER,
	[TLS_RENEGOTIATION] = TLS_NO_RENEGOTIATION,
	[TLS_EMPTY_FLOOD] = TLS_UNEXPECTED_MESSAGE,
	[TLS_MESSAGE_FLOOD] = TLS_UNEXPECTED_MESSAGE,
	[TLS_WARNING_FLOOD] = TLS_UNEXPECTED_MESSAGE,
	[TLS_LATE_RECORD] = TLS_CLOSE_NOTIFY,
	[TLS_SEQUENCE_END] = TLS_INTERNAL_ERROR,
};

static bool make_aead(struct tls_context *ctx)
{
	if (ctx->conf.aead) {
		ctx->aead = ctx->conf.aead->new (ctx->conf.n_keys);
		return ctx->aead != NULL;
	}
	ctx->conf.aead = &aead_mb;
	ctx->aead = aead_mb.new(ctx->conf.n_keys);
	if (ctx->aead)
		return true;
	ctx->conf.aead = &aead_evp;
	ctx->aead = aead_evp.new(ctx->conf.n_keys);
	return ctx->aead != NULL;
}

static bool fill(struct tls_context *ctx)
{
	if (pool_init(&ctx->conns, sizeof(struct tls_conn), ctx->conf.max_conns) < 0)
		return false;
	ctx->keys = calloc(ctx->conf.n_keys, sizeof(ctx->keys[0]));
	return ctx->keys && make_aead(ctx);
}

struct tls_context *tls_context_new(const struct tls_conf *conf, struct pool *chunks)
{
	struct tls_context *ctx = aligned_alloc(_Alignof(struct tls_context), sizeof(*ctx));
	if (!ctx)
		return NULL;
	memset(ctx, 0, offsetof(struct tls_context, scratch));
	ctx->conf = *conf;
	ctx->chunks = chunks;
	if (!conf->record_timeout_ns)
		ctx->conf.record_timeout_ns = RECORD_TIMEOUT_NS;
	if (!conf->max_records)
		ctx->conf.max_records = MAX_RECORDS;
	if (!conf->n_keys)
		ctx->conf.n_keys = N_KEYS;
	CHECK(ctx->conf.n_keys >= 2 && (ctx->conf.n_keys & (ctx->conf.n_keys - 1)) == 0);
	if (fill(ctx))
		return ctx;
	tls_context_free(ctx);
	return NULL;
}

void tls_context_free(struct tls_context *ctx)
{
	if (!ctx)
		return;
	if (ctx->aead)
		ctx->conf.aead->free(ctx->aead);
	free(ctx->keys);
	pool_fini(&ctx->conns);
	explicit_bzero(ctx->scratch, sizeof(ctx->scratch));
	free(ctx);
}

const char *tls_context_aead_name(const struct tls_context *ctx)
{
	return ctx->conf.aead->name(ctx->aead);
}

struct tls_conn *tls_conn_new(struct tls_context *ctx, enum tls_role role,
	const struct tls_secrets *s, const struct tls_events *events, void *user)
{
	DCHECK(s->version == TLS_1_2 || s->version == TLS_1_3);
	struct tls_conn *c = pool_take(&ctx->conns);
	if (!c)
		return NULL;
	size_t index = (size_t)((uint8_t *)c - ctx->conns.memory) / ctx->conns.size;
	memset(c, 0, sizeof(*c)); // no compound literal: it may leave secrets on the stack
	c->ctx = ctx;
	c->events = events;
	c->user = user;
	c->read = s->read;
	c->write = s->write;
	c->version = s->version;
	c->max_plain = s->max_plain ? s->max_plain : TLS_MAX_PLAIN;
	c->aead = s->aead;
	c->hash = s->hash;
	c->role = (uint8_t)role;
	c->place = (uint32_t)(2 * index) & (ctx->conf.n_keys - 1);
	return c;
}

void tls_conn_free(struct tls_conn *c)
{
	tls_keys_drop(c, &c->read);
	tls_keys_drop(c, &c->write);
	buf_clear(&c->part, c->ctx->chunks);
	struct pool *home = &c->ctx->conns;
	explicit_bzero(c, sizeof(*c));
	pool_put(home, c);
}

void tls_conn_fail(struct tls_conn *c, enum tls_cause cause)
{
	if (c->failed)
		return;
	counter_add(&c->ctx->counters[TLS_C_bad_tags + cause], 1);
	c->failed = true;
	c->alert = alerts[cause];
	buf_clear(&c->part, c->ctx->chunks);
}

bool tls_conn_failed(const struct tls_conn *c, uint8_t *ret_alert, bool *ret_by_peer)
{
	if (!c->failed)
		return false;
	if (ret_alert)
		*ret_alert = c->alert;
	if (ret_by_peer)
		*ret_by_peer = c->by_peer;
	return true;
}

bool tls_conn_ended(struct tls_conn *c)
{
	if (!c->ended && !c->failed && !c->truncated) {
		c->truncated = true;
		tls_count(c, TLS_C_truncations);
	}
	return c->ended;
}

uint64_t tls_conn_deadline_ns(const struct tls_conn *c)
{
	if (!c->n_head || c->waits || c->failed)
		return UINT64_MAX;
	return c->part_since_ns + c->ctx->conf.record_timeout_ns;
}

void tls_conn_expire(struct tls_conn *c)
{
	if (tls_conn_deadline_ns(c) <= tls_now(c->ctx))
		tls_conn_fail(c, TLS_LATE_RECORD);
}

uint16_t tls_conn_version(const struct tls_conn *c)
{
	return c->version;
}

struct counter_set tls_context_counters(const struct tls_context *ctx)
{
	return (struct counter_set){counter_names, ctx->counters, TLS_N_COUNTERS};
}

void tls_context_list_pools(struct tls_context *ctx, struct pool_list *list)
{
	pool_list_add(list, "tls_conns", &ctx->conns);
}
