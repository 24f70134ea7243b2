// SPDX-License-Identifier: Apache-2.0
// What one connection may cost us beyond honest use (TH-01 to TH-14, TH-87, TH-134). Who goes over
// gets GOAWAY(ENHANCE_YOUR_CALM); others don't notice.
#include "dataplane/h2/impl.h"

// What one connection has, and all that share budgets: as much as four clients at their own bound.
static const struct budget {
	struct gcra_limit own, shared;
	enum h2_abuse own_kind, shared_kind;
} budgets[H2_N_BUDGETS] = {
	// CVE-2023-44487, CVE-2025-8671: nghttp2's burst and rate.
	[H2_BUDGET_RESETS] = {GCRA_LIMIT(1000, 33), GCRA_LIMIT(4000, 133), H2_ABUSE_RESETS,
		H2_ABUSE_SHARED_RESETS},
	// TH-87, TH-133: of no honest client, however many there are behind an address, since what
	// they say is free (h2_abuse_header()).
	[H2_BUDGET_HEADER_BYTES] = {GCRA_LIMIT(1u << 20, 64u << 10),
		GCRA_LIMIT(4u << 20, 256u << 10), H2_ABUSE_HEADER_BYTES,
		H2_ABUSE_SHARED_HEADER_BYTES},
};
// The windows that a peer estimates from round trips change a few times in a second.
static const struct gcra_limit settings_limit = GCRA_LIMIT(100, 10);
// TH-87: an entry of the table is a byte to name, and kilobytes to us and to the backend. Free is
// what is paid for by bytes, what the table holds, each entry once, and short fields.
#define HEADER_FACTOR 4
#define HEADER_FREE (HPACK_TABLE_SIZE + 2048)
// TH-134: browsers send a frame of a reserved type or two with each stream (RFC 9113 5.5), and
// PRIORITY_UPDATE (RFC 9218 7.1). Ten cost what a request does.
#define IGNORED_PER_STREAM 10
static const struct gcra_limit ignored_limit = GCRA_LIMIT(1000, 33);
// CVE-2019-9512, 9515: answers to PING, SETTINGS and errors that the peer does not read.
#define MAX_ANSWERS 1000
// CVE-2019-9518.
#define MAX_EMPTY 1
// CVE-2019-9513, 9511: Envoy's allowances.
#define PRIORITY_PER_STREAM 100
#define UPDATES_FREE 5
#define UPDATES_PER_STREAM 2
#define UPDATES_PER_DATA 20

void h2_abuse_fail(struct h2_conn *c, enum h2_abuse kind)
{
	if (c->failed)
		return;
	counter_add(&c->ctx->counters[H2_C_abuse_resets + kind], 1);
	h2_conn_fail(c, H2_ENHANCE_YOUR_CALM);
}

static bool within(struct h2_conn *c, bool ok, enum h2_abuse kind)
{
	if (!ok)
		h2_abuse_fail(c, kind);
	return ok;
}

static bool charge(struct h2_conn *c, enum h2_budget which, uint64_t n)
{
	const struct budget *b = &budgets[which];
	uint64_t now = h2_now(c->ctx);
	bool own = gcra_charge_many(&c->own.of[which], &b->own, n, now);
	bool shared = !c->shared || gcra_charge_many(&c->shared->of[which], &b->shared, n, now);
	return within(c, own, b->own_kind) && within(c, shared, b->shared_kind);
}

// Backends reset what clients asked for; only clients can make us work for nothing.
bool h2_abuse_charge_reset(struct h2_conn *c)
{
	return c->role == H2_CLIENT || charge(c, H2_BUDGET_RESETS, 1);
}

void h2_conn_set_allowance(struct h2_conn *c, int64_t *allowance)
{
	c->allowance = allowance;
}

void h2_conn_share(struct h2_conn *c, struct h2_budgets *shared)
{
	c->shared = shared;
}

bool h2_shared_is_spent(const struct h2_budgets *shared, uint64_t now_ns)
{
	for (int i = 0; i < H2_N_BUDGETS; i++) {
		if (gcra_is_spent(&shared->of[i], &budgets[i].shared, now_ns))
			return true;
	}
	return false;
}

bool h2_abuse_charge_settings(struct h2_conn *c)
{
	return within(
		c, gcra_charge(&c->settings, &settings_limit, h2_now(c->ctx)), H2_ABUSE_SETTINGS);
}

// An answer's fields are the backend's, which is asked for no more than streams.
bool h2_abuse_header(struct h2_conn *c, uint64_t list_bytes, uint64_t len)
{
	uint64_t allowed = HEADER_FREE + HEADER_FACTOR * len;
	if (list_bytes <= allowed || c->role == H2_CLIENT)
		return true;
	uint64_t excess = list_bytes - allowed;
	*c->allowance -= (int64_t)excess;
	return charge(c, H2_BUDGET_HEADER_BYTES, excess);
}

bool h2_abuse_answer(struct h2_conn *c)
{
	uint64_t left = c->written > c->out->len ? c->written - c->out->len : 0;
	if (left >= c->answers_end)
		c->n_answers = 0;
	c->answers_end = c->written;
	c->n_answers++;
	return within(c, c->n_answers <= MAX_ANSWERS, H2_ABUSE_ANSWERS);
}

bool h2_abuse_empty(struct h2_conn *c, bool empty)
{
	c->n_empty = empty ? c->n_empty + 1 : 0;
	return within(c, c->n_empty <= MAX_EMPTY, H2_ABUSE_EMPTY_FRAMES);
}

bool h2_abuse_priority(struct h2_conn *c)
{
	c->n_priority++;
	return within(
		c, c->n_priority <= PRIORITY_PER_STREAM * (1 + c->n_opened), H2_ABUSE_PRIORITY);
}

bool h2_abuse_window_update(struct h2_conn *c)
{
	c->n_window_updates++;
	uint64_t allowed =
		UPDATES_FREE + UPDATES_PER_STREAM * c->n_opened + UPDATES_PER_DATA * c->n_data_sent;
	return within(c, c->n_window_updates <= allowed, H2_ABUSE_WINDOW_UPDATE);
}

bool h2_abuse_ignored(struct h2_conn *c)
{
	if (c->n_ignored < IGNORED_PER_STREAM * c->n_opened) {
		c->n_ignored++;
		return true;
	}
	return within(c, gcra_charge(&c->ignored, &ignored_limit, h2_now(c->ctx)),
		H2_ABUSE_IGNORED_FRAMES);
}
