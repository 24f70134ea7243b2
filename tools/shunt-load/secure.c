// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/secure.h"

#include "dataplane/tcp/tcp.h"
#include "tlshs/handshake.h"

#define PIECE 4096 // of a handshake's output, and of what comes behind it

bool secure_conf_init(struct secure_conf *s, uint32_t max_conns, const uint64_t *now_ns)
{
	const struct tls_conf conf = {.max_conns = max_conns, .now_ns = now_ns};
	if (s->context)
		s->records = tls_context_new(&conf, s->chunks);
	return !s->context || s->records;
}

void secure_conf_fini(struct secure_conf *s)
{
	tls_context_free(s->records);
	s->records = NULL;
}

// False = out of memory.
static bool drain(struct secure *s, struct tcp_conn *tcp)
{
	uint8_t bytes[PIECE];
	for (size_t n; (n = tlshs_handshake_drain(s->handshake, bytes, sizeof(bytes)));)
		if (!buf_append(tcp_conn_sendq(tcp), s->conf->chunks, bytes, n))
			return false;
	tcp_conn_push(tcp);
	return true;
}

bool secure_begin(struct secure *s, const struct secure_conf *conf, struct tcp_conn *tcp)
{
	*s = (struct secure){.conf = conf};
	s->handshake = tlshs_handshake_new(conf->context, STR(""), 0);
	return s->handshake && drain(s, tcp);
}

void secure_end(struct secure *s)
{
	if (!s->conf)
		return;
	tlshs_handshake_free(s->handshake);
	s->handshake = NULL;
	if (s->tls)
		tls_conn_free(s->tls);
	s->tls = NULL;
	buf_clear(&s->plain, s->conf->chunks);
}

static enum secure_state take_keys(
	struct secure *s, const struct tls_events *events, void *user, const char **ret_why)
{
	struct tlshs_result result;
	bool is_server = tlshs_context_role(s->conf->context) == TLSHS_SERVER;
	tlshs_handshake_take(s->handshake, &result);
	bool agreed = str_eq((struct str){result.alpn, result.alpn_len}, s->conf->alpn);
	s->tls = tls_conn_new(s->conf->records, is_server ? TLS_SERVER : TLS_CLIENT,
		&result.secrets, events, user);
	tlshs_result_wipe(&result);
	*ret_why = agreed ? "out of memory" : "TLS: the peer does not agree to the protocol";
	return agreed && s->tls ? SECURE_READY : SECURE_BROKEN;
}

enum secure_state secure_shake(struct secure *s, struct tcp_conn *tcp, const uint8_t *p, size_t len,
	const struct tls_events *events, void *user, const char **ret_why)
{
	bool ended = tlshs_handshake_feed(s->handshake, p, len);
	*ret_why = "out of memory";
	if (!drain(s, tcp))
		return SECURE_BROKEN;
	if (!ended)
		return SECURE_SHAKING;
	enum tlshs_outcome outcome = tlshs_handshake_outcome(s->handshake);
	*ret_why = tlshs_outcome_name(outcome);
	return outcome == TLSHS_ok ? take_keys(s, events, user, ret_why) : SECURE_BROKEN;
}

bool secure_feed_rest(struct secure *s)
{
	uint8_t bytes[PIECE];
	for (size_t n; (n = tlshs_handshake_drain_rest(s->handshake, bytes, sizeof(bytes)));)
		if (tls_conn_feed(s->tls, bytes, n) != n)
			return false;
	tlshs_handshake_free(s->handshake);
	s->handshake = NULL;
	return true;
}

bool secure_seal(struct secure *s, struct tcp_conn *tcp)
{
	struct buf *out = tcp_conn_sendq(tcp);
	size_t before = out->len;
	if (s->tls)
		tls_conn_seal(s->tls, &s->plain, out, tcp_conn_send_room(tcp));
	return out->len > before;
}

size_t secure_plain_room(const struct secure *s, const struct tcp_conn *tcp)
{
	size_t room = tls_conn_plain_room(s->tls, tcp_conn_send_room(tcp));
	return room > s->plain.len ? room - s->plain.len : 0;
}
