// SPDX-License-Identifier: Apache-2.0
// Streams: table, states (RFC 9113 5.1), endings, and the owner's calls on them.
#include "dataplane/h2/impl.h"
#include "lb/base/check.h"

_Static_assert(sizeof(struct h2_stream) <= H2_STREAM_SIZE &&
		       sizeof(struct h2_stream) > H2_STREAM_SIZE - 16,
	"as the pool rounds it");

static struct h2_stream **bucket(const struct h2_conn *c, uint32_t id)
{
	unsigned __int128 m = (unsigned __int128)(c->hash_key ^ id) * c->ctx->hash_key;
	uint64_t h = (uint64_t)m ^ (uint64_t)(m >> 64);
	return &c->ctx->table[h & c->ctx->table_mask];
}

struct h2_stream *h2_stream_find(struct h2_conn *c, uint32_t id)
{
	struct h2_stream *s = c->recent;
	if (s && s->id == id)
		return s;
	s = *bucket(c, id);
	while (s && (s->id != id || s->conn != c))
		s = s->hash_next;
	c->recent = s;
	return s;
}

struct h2_stream *h2_stream_new(struct h2_conn *c, uint32_t id)
{
	struct h2_stream *s = pool_take(&c->ctx->streams);
	if (!s)
		return NULL;
	struct h2_stream **at = bucket(c, id);
	*s = (struct h2_stream){
		.conn = c,
		.id = id,
		.hash_next = *at,
		.content_length = -1,
		.live = true,
	};
	*at = c->recent = s;
	list_append(&c->streams, &s->link);
	c->n_streams++;
	c->n_opened++;
	return s;
}

static void off_wire(struct h2_stream *s)
{
	if (!s->live)
		return;
	s->live = false;
	s->conn->n_streams--;
	if (s->conn->recent == s)
		s->conn->recent = NULL;
	struct h2_stream **at = bucket(s->conn, s->id);
	while (*at != s)
		at = &(*at)->hash_next;
	*at = s->hash_next;
	list_remove(&s->credit);
}

static void remember_reset(struct h2_conn *c, uint32_t id)
{
	uint32_t *slot = &c->reset_ids[c->reset_at++ % H2_N_RESET_IDS];
	if (*slot > c->reset_forgotten)
		c->reset_forgotten = *slot;
	*slot = id;
}

static void remember_ended(struct h2_conn *c, uint32_t id)
{
	c->ended_ids[c->ended_at++ % H2_N_ENDED_IDS] = id;
}

static bool among(const uint32_t *ids, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

enum h2_past h2_stream_past(const struct h2_conn *c, uint32_t id)
{
	if (among(c->reset_ids, H2_N_RESET_IDS, id))
		return H2_PAST_RESET;
	if (among(c->ended_ids, H2_N_ENDED_IDS, id))
		return H2_PAST_ENDED;
	// What the ring has lost gets the benefit of the doubt.
	if (id <= c->reset_forgotten)
		return H2_PAST_RESET;
	return c->role == H2_CLIENT ? H2_PAST_ENDED : H2_PAST_NEVER;
}

bool h2_id_idle(const struct h2_conn *c, uint32_t id)
{
	if (id % 2 == 0) // nobody pushes
		return true;
	return c->role == H2_SERVER ? id > c->last_peer_id : id >= c->next_id;
}

static void put_turn(struct h2_stream *s, struct list_link *list)
{
	if (s->turn_list == list)
		return;
	list_remove(&s->turn);
	s->turn_list = list;
	if (list)
		list_append(list, &s->turn);
}

void h2_stream_schedule(struct h2_stream *s)
{
	struct h2_conn *c = s->conn;
	if (!s->live)
		return;
	if (!s->out.len) {
		put_turn(s, s->end_queued && !s->sent_end ? &c->end_turns : NULL);
	} else if (h2_send_window(s) > 0) {
		put_turn(s, &c->data_turns);
	} else {
		put_turn(s, &c->windowless);
		if (s->send_credit > c->windowless_credit)
			c->windowless_credit = s->send_credit;
	}
}

void h2_stream_check_done(struct h2_stream *s)
{
	if (!s->live || !s->got_end || !s->sent_end)
		return;
	off_wire(s);
	remember_ended(s->conn, s->id);
	put_turn(s, &s->conn->done);
}

void h2_stream_close(struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	struct h2_conn *c = s->conn;
	if (s->closing)
		return;
	s->closing = true;
	if (!s->live) { // both ends are out: whatever happens now comes too late to spoil it
		code = H2_NO_ERROR;
		by_peer = unprocessed = false;
	} else if (by_peer && !s->malformed) { // else we have reset it
		remember_ended(c, s->id);
	}
	off_wire(s);
	put_turn(s, NULL);
	list_remove(&s->link);
	if (c->rx.stream == s)
		c->rx.stream = NULL;
	c->queued -= s->out.len + s->trailers.len;
	buf_clear(&s->out, c->ctx->chunks);
	buf_clear(&s->trailers, c->ctx->chunks);
	c->unconsumed -= s->unconsumed;
	s->unconsumed = 0;
	c->events->on_closed(c, s, code, by_peer, unprocessed);
	pool_put(&c->ctx->streams, s);
}

void h2_stream_refuse(struct h2_conn *c, uint32_t id, enum h2_error code, bool charge)
{
	remember_reset(c, id);
	h2_put_rst(c, id, code);
	if (h2_abuse_answer(c) && charge)
		h2_abuse_charge_reset(c);
}

void h2_stream_fail(struct h2_stream *s, enum h2_error code)
{
	h2_count(s->conn->ctx, H2_C_stream_errors);
	h2_stream_refuse(s->conn, s->id, code, true);
	s->malformed = true;
	h2_stream_close(s, code, true, false);
}

void h2_stream_reset(struct h2_stream *s, enum h2_error code)
{
	if (s->closing)
		return;
	if (!s->live) { // over already, only on_closed was missing
		h2_stream_close(s, code, false, false);
		return;
	}
	remember_reset(s->conn, s->id);
	h2_put_rst(s->conn, s->id, code);
	h2_stream_close(s, code, false, false);
}

static void sent_end(struct h2_stream *s)
{
	s->sent_end = s->end_queued = true;
	h2_stream_check_done(s);
}

uint32_t h2_conn_stream_room(const struct h2_conn *c)
{
	if (c->role != H2_CLIENT || c->failed || c->goaway_got || c->goaway_sent ||
		c->next_id > H2_ID_MAX || c->n_streams >= c->peer_max_streams)
		return 0;
	uint32_t room = c->peer_max_streams - c->n_streams;
	uint32_t ids = (H2_ID_MAX - c->next_id) / 2 + 1;
	uint32_t left = pool_left(&c->ctx->streams);
	if (room > ids)
		room = ids;
	return room < left ? room : left;
}

struct h2_stream *h2_stream_open(struct h2_conn *c, const struct h2_message *m, void *user)
{
	if (h2_conn_stream_room(c) == 0)
		return NULL;
	struct h2_stream *s = h2_stream_new(c, c->next_id);
	if (!s)
		return NULL;
	s->user = user;
	s->is_head = str_eq(m->method, STR("HEAD"));
	s->is_connect = str_eq(m->method, STR("CONNECT"));
	s->is_grpc = m->is_grpc;
	if (!h2_put_message(s, m, m->end_stream)) {
		// Never seen by the peer nor by the owner: its id stays unused.
		off_wire(s);
		list_remove(&s->link);
		pool_put(&c->ctx->streams, s);
		return NULL;
	}
	c->next_id += 2;
	h2_count(c->ctx, H2_C_streams_opened);
	if (m->end_stream)
		sent_end(s);
	return s;
}

bool h2_stream_send_message(struct h2_stream *s, const struct h2_message *m)
{
	DCHECK(!s->end_queued);
	if (!s->live || s->end_queued || s->conn->failed)
		return !s->conn->failed;
	bool trailers = m->kind == H2_TRAILERS;
	bool end = trailers || m->end_stream;
	if (trailers && s->out.len) {
		if (!h2_pack_trailers(s, m))
			return false;
		s->has_trailers = s->end_queued = true;
		return true;
	}
	if (!h2_put_message(s, m, end))
		return false;
	if (end)
		sent_end(s);
	return true;
}

static bool may_queue(const struct h2_stream *s, size_t len)
{
	return len == 0 || !buf_is_short(s->conn->ctx->chunks);
}

static bool queued(struct h2_stream *s, bool end_stream)
{
	s->end_queued = end_stream;
	h2_stream_schedule(s);
	return true;
}

bool h2_stream_send_data(struct h2_stream *s, const uint8_t *data, size_t len, bool end_stream)
{
	DCHECK(!s->end_queued);
	if (!s->live || s->end_queued || s->conn->failed)
		return !s->conn->failed;
	if (!may_queue(s, len) || !buf_append(&s->out, s->conn->ctx->chunks, data, len))
		return false;
	s->conn->queued += len;
	return queued(s, end_stream);
}

// Larger pieces may come together in one frame.
#define PASS_MAX 1024

bool h2_stream_takes_at_once(const struct h2_stream *s, size_t len)
{
	const struct h2_conn *c = s->conn;
	return c->queued + len <= PASS_MAX && (int64_t)len <= h2_send_window(s) &&
	       (int64_t)len <= c->send_window;
}

static bool may_pass(const struct h2_stream *s, size_t len)
{
	const struct h2_conn *c = s->conn;
	return len <= PASS_MAX && s->out.len == 0 && list_empty(&c->data_turns) &&
	       (int64_t)len <= h2_send_window(s) && (int64_t)len <= c->send_window &&
	       c->written + H2_FRAME_HEAD + len <= c->room_end &&
	       !buf_is_short(c->ctx->chunks); // an end alone needs some, too
}

bool h2_stream_pass_data(
	struct h2_stream *s, const uint8_t *data, size_t len, bool end_stream, size_t *ret_sent)
{
	DCHECK(!s->end_queued);
	if (!s->live || s->end_queued || s->conn->failed || !may_pass(s, len)) {
		if (!h2_stream_send_data(s, data, len, end_stream))
			return false;
		*ret_sent = 0;
		return true;
	}
	if ((len || end_stream) && !h2_put_data(s, data, len, end_stream))
		return false;
	*ret_sent = len;
	if (end_stream)
		sent_end(s);
	return true;
}

bool h2_stream_send_buf(struct h2_stream *s, struct buf *body, bool end_stream)
{
	DCHECK(!s->end_queued);
	if (!s->live || s->end_queued || s->conn->failed)
		return !s->conn->failed;
	size_t len = body->len;
	if (!may_queue(s, len) || !buf_move(&s->out, body, len, s->conn->ctx->chunks))
		return false;
	s->conn->queued += len;
	return queued(s, end_stream);
}

size_t h2_stream_queued(const struct h2_stream *s)
{
	return s->out.len;
}

bool h2_stream_is_shut(const struct h2_stream *s)
{
	return s->out.len && h2_send_window(s) <= 0;
}

uint64_t h2_stream_n_received(const struct h2_stream *s)
{
	return (uint64_t)s->received;
}

uint64_t h2_stream_n_sent(const struct h2_stream *s)
{
	return s->body_sent;
}

void h2_stream_consumed(struct h2_stream *s, size_t n)
{
	DCHECK(n <= s->unconsumed);
	if (n > s->unconsumed)
		n = s->unconsumed;
	s->unconsumed -= n;
	s->conn->unconsumed -= n;
	h2_flow_consumed(s, n);
}

void h2_stream_set_user(struct h2_stream *s, void *user)
{
	s->user = user;
}

void *h2_stream_user(const struct h2_stream *s)
{
	return s->user;
}

struct h2_conn *h2_stream_conn(const struct h2_stream *s)
{
	return s->conn;
}

uint32_t h2_stream_id(const struct h2_stream *s)
{
	return s->id;
}

bool h2_stream_sent_end(const struct h2_stream *s)
{
	return s->end_queued;
}

bool h2_stream_got_end(const struct h2_stream *s)
{
	return s->got_end;
}

bool h2_stream_malformed(const struct h2_stream *s)
{
	return s->malformed;
}

bool h2_stream_too_large(const struct h2_stream *s)
{
	return s->too_large;
}
