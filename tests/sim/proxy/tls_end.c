// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/proxy/tls_end.h"

#include "lb/base/check.h"

#include <string.h>

static size_t on_plain(struct tls_conn *tls, void *user, const uint8_t *p, size_t len)
{
	struct tls_end *e = user;
	return e->on_plain(e->user, p, len);
}

static void on_eof(struct tls_conn *tls, void *user)
{
	((struct tls_end *)user)->eof = true;
}

static const struct tls_events events = {.on_plain = on_plain, .on_eof = on_eof};

static void drain(struct tls_end *e)
{
	uint8_t bytes[700];
	for (size_t n; (n = tlshs_handshake_drain(e->handshake, bytes, sizeof(bytes)));)
		CHECK(buf_append(&e->out, e->chunks, bytes, n));
}

void tls_end_init(struct tls_end *e, const struct tls_end_conf *conf, struct tcp_conn *tcp,
	struct pool *chunks, size_t (*plain)(void *, const uint8_t *, size_t), void *user)
{
	*e = (struct tls_end){
		.conf = conf, .tcp = tcp, .chunks = chunks, .on_plain = plain, .user = user};
	e->handshake = tlshs_handshake_new(
		conf->context, str_from(conf->server_name ? conf->server_name : ""), 0);
	CHECK(e->handshake);
	drain(e);
}

void tls_end_fini(struct tls_end *e)
{
	if (!e->conf)
		return;
	tlshs_handshake_free(e->handshake);
	e->handshake = NULL;
	if (e->tls)
		tls_conn_free(e->tls);
	e->tls = NULL;
	buf_clear(&e->plain, e->chunks);
	buf_clear(&e->out, e->chunks);
	e->tcp = NULL;
}

static void take_result(struct tls_end *e)
{
	uint8_t rest[4096];
	enum tls_role role =
		tlshs_context_role(e->conf->context) == TLSHS_SERVER ? TLS_SERVER : TLS_CLIENT;
	tlshs_handshake_take(e->handshake, &e->result);
	e->tls = tls_conn_new(e->conf->records, role, &e->result.secrets, &events, e);
	CHECK(e->tls);
	for (size_t n; (n = tlshs_handshake_drain_rest(e->handshake, rest, sizeof(rest)));)
		CHECK(tls_conn_feed(e->tls, rest, n) == n);
}

size_t tls_end_feed(struct tls_end *e, const uint8_t *p, size_t len)
{
	if (e->tls) {
		size_t n = tls_conn_feed(e->tls, p, len);
		e->failed = tls_conn_failed(e->tls, &e->alert, &e->by_peer);
		return n;
	}
	if (!e->handshake || e->ended)
		return len;
	e->ended = tlshs_handshake_feed(e->handshake, p, len);
	drain(e);
	if (!e->ended)
		return len;
	e->outcome = tlshs_handshake_outcome(e->handshake);
	if (e->outcome == TLSHS_ok)
		take_result(e);
	if (e->tls)
		e->failed = tls_conn_failed(e->tls, &e->alert, &e->by_peer);
	return len;
}

// One byte, wherever it lies.
static void write_changed(struct tls_end *e)
{
	uint8_t byte;
	buf_copy_out(&e->out, 0, &byte, 1);
	buf_consume(&e->out, e->chunks, 1);
	byte ^= 1;
	CHECK(buf_append(tcp_conn_sendq(e->tcp), e->chunks, &byte, 1));
}

bool tls_end_pump(struct tls_end *e)
{
	if (!e->tcp || e->mute)
		return false;
	if (e->tls)
		tls_conn_seal(e->tls, &e->plain, &e->out, 1 << 20);
	size_t room = tcp_conn_send_room(e->tcp), n = e->out.len < room ? e->out.len : room;
	if (e->conf->piece && n > e->conf->piece)
		n = e->conf->piece;
	while (e->corrupt && n) {
		if (--e->corrupt) {
			CHECK(buf_move(tcp_conn_sendq(e->tcp), &e->out, 1, e->chunks));
		} else {
			write_changed(e);
		}
		n--;
	}
	if (n)
		CHECK(buf_move(tcp_conn_sendq(e->tcp), &e->out, n, e->chunks));
	tcp_conn_push(e->tcp);
	if (e->conf->hangs_up && e->ended && e->outcome != TLSHS_ok && !e->out.len)
		tcp_conn_shutdown(e->tcp);
	return e->out.len > 0;
}

void tls_end_shutdown(struct tls_end *e)
{
	if (e->tls)
		tls_conn_shutdown(e->tls);
}
