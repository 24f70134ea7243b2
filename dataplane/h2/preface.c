// SPDX-License-Identifier: Apache-2.0
// The client's preface (RFC 9113 3.4). We send nothing before it, so that a client of another
// protocol gets an answer that it understands.
#include "dataplane/h2/impl.h"

// The first bytes, which tell.
#define TELLING 8
_Static_assert(TELLING <= sizeof(((struct h2_rx *)0)->head), "kept there");
#define TLS_HANDSHAKE 0x16 // RFC 8446 5.1

// RFC 9110 15.6.6: the upgrade that 426 would offer is no more (RFC 9113 3.1).
#define HTTP1_BODY "HTTP/2 with prior knowledge is all that is spoken here.\n"
static const char http1_answer[] = "HTTP/1.1 505 HTTP Version Not Supported\r\n"
				   "content-type: text/plain\r\n"
				   "content-length: 56\r\n"
				   "connection: close\r\n"
				   "\r\n" HTTP1_BODY;
_Static_assert(sizeof(HTTP1_BODY) - 1 == 56, "content-length");

enum guess { UNSURE, HTTP1, TLS, OTHER };

static enum guess guess(struct str first)
{
	static const struct str methods[] = {STR("GET "), STR("HEAD "), STR("POST "), STR("PUT "),
		STR("DELETE "), STR("OPTIONS "), STR("PATCH "), STR("TRACE "), STR("CONNECT ")};
	if (first.p[0] == TLS_HANDSHAKE)
		return TLS;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (str_starts(first, methods[i]))
			return HTTP1;
		if (str_starts(methods[i], first))
			return UNSURE;
	}
	return OTHER;
}

static void turn_away(struct h2_conn *c, enum guess what)
{
	static const enum h2_counter counters[] = {[HTTP1] = H2_C_prefaces_http1,
		[TLS] = H2_C_prefaces_tls,
		[OTHER] = H2_C_prefaces_other};
	bool is_first = c->written == 0;
	h2_count(c->ctx, counters[what]);
	h2_conn_fail(c, H2_PROTOCOL_ERROR);
	size_t len = sizeof(http1_answer) - 1;
	if (what == HTTP1 && is_first && buf_append(c->out, c->ctx->chunks, http1_answer, len))
		c->written += len;
}

size_t h2_preface_feed(struct h2_conn *c, const uint8_t *p, size_t len)
{
	struct h2_rx *rx = &c->rx;
	size_t at = H2_PREFACE_LEN - rx->preface_left;
	size_t n = len < rx->preface_left ? len : rx->preface_left;
	if (at < TELLING)
		memcpy(rx->head + at, p, n < TELLING - at ? n : TELLING - at);
	rx->foreign |= memcmp(p, &H2_PREFACE[at], n) != 0;
	rx->preface_left = (uint8_t)(rx->preface_left - n);
	if (rx->foreign) {
		size_t seen = at + n < TELLING ? at + n : TELLING;
		enum guess what = guess((struct str){(const char *)rx->head, seen});
		if (what != UNSURE)
			turn_away(c, what);
	} else if (!rx->preface_left && !c->written && !h2_put_greeting(c)) {
		h2_conn_fail(c, H2_INTERNAL_ERROR);
	}
	return n;
}
