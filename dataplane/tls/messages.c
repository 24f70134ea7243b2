// SPDX-License-Identifier: Apache-2.0
// What records carry besides data once the handshake is over: handshake messages (RFC 8446 4.6) and
// alerts (RFC 8446 6, RFC 5246 7.2).
#include "dataplane/tls/impl.h"
#include "lb/base/min.h"

#include <string.h>

// RFC 8446 4
enum message_type {
	HELLO_REQUEST = 0, // 1.2
	CLIENT_HELLO = 1,
	NEW_SESSION_TICKET = 4,
	KEY_UPDATE = 24,
};

// Two lengths of 16 bits, one of 8, and their contents (RFC 8446 4.6.1).
#define MAX_TICKET (4 + 4 + 1 + 255 + 2 + 65535 + 2 + 65534)

// TLS-15: nginx and OpenSSL send two tickets, others four; nobody needs new keys each second.
static const struct gcra_limit message_limit = GCRA_LIMIT(32, 1);
// TLS-22
static const struct gcra_limit warning_limit = GCRA_LIMIT(8, 1);

// TLS-12, TLS-13
static void on_key_update(struct tls_conn *c, uint8_t request, bool is_last)
{
	if (!is_last) {
		tls_conn_fail(c, TLS_UNEXPECTED_HANDSHAKE);
		return;
	}
	if (request > 1) {
		tls_conn_fail(c, TLS_BAD_VALUE);
		return;
	}
	tls_count(c, TLS_C_key_updates_in);
	tls_keys_update(c, &c->read);
	if (request) // which does for what we wished ourselves, too
		c->update = TLS_ANSWER_KEYS;
}

// TLS-16. The body follows, as far as this record has it.
static void on_ticket(struct tls_conn *c, const uint8_t *body, size_t here, uint32_t len)
{
	if (len > MAX_TICKET) {
		tls_conn_fail(c, TLS_BAD_LENGTH);
		return;
	}
	tls_count(c, TLS_C_tickets_in);
	if (here >= len && c->events->on_ticket)
		c->events->on_ticket(c, c->user, body, len);
	c->skip = len;
	c->n_message = 0;
}

// The header is whole. `here` bytes of the body are in this record.
static void begin_message(struct tls_conn *c, const uint8_t *body, size_t here)
{
	uint8_t type = c->message[0];
	uint32_t len = (uint32_t)c->message[1] << 16 | (uint32_t)c->message[2] << 8 | c->message[3];
	if (!gcra_charge(&c->messages, &message_limit, tls_now(c->ctx)))
		tls_conn_fail(c, TLS_MESSAGE_FLOOD);
	else if (type == NEW_SESSION_TICKET && c->role == TLS_CLIENT)
		on_ticket(c, body, here, len);
	else if (type != KEY_UPDATE)
		tls_conn_fail(c, TLS_UNEXPECTED_HANDSHAKE);
	else if (len != 1)
		tls_conn_fail(c, TLS_BAD_LENGTH);
}

// TLS-19: none of 1.2's messages may come any more.
static void refuse(struct tls_conn *c, uint8_t type)
{
	uint8_t renegotiates = c->role == TLS_SERVER ? CLIENT_HELLO : HELLO_REQUEST;
	tls_conn_fail(c, type == renegotiates ? TLS_RENEGOTIATION : TLS_UNEXPECTED_HANDSHAKE);
}

void tls_messages_feed(struct tls_conn *c, const uint8_t *p, size_t len)
{
	if (c->version == TLS_1_2) {
		refuse(c, p[0]);
		return;
	}
	while (len && !c->failed) {
		if (c->skip) {
			size_t n = min_size(c->skip, len);
			c->skip -= (uint32_t)n;
			p += n;
			len -= n;
			continue;
		}
		c->message[c->n_message++] = *p++;
		len--;
		if (c->n_message == TLS_MESSAGE_HEADER) {
			begin_message(c, p, len);
		} else if (c->n_message > TLS_MESSAGE_HEADER) {
			c->n_message = 0;
			on_key_update(c, c->message[TLS_MESSAGE_HEADER], len == 0);
		}
	}
}

static void on_warning(struct tls_conn *c)
{
	if (!gcra_charge(&c->warnings, &warning_limit, tls_now(c->ctx)))
		tls_conn_fail(c, TLS_WARNING_FLOOD);
}

static void on_fatal(struct tls_conn *c, uint8_t alert)
{
	tls_count(c, TLS_C_alerts_in);
	c->failed = c->by_peer = true;
	c->alert = alert;
}

// TLS-20, TLS-21
void tls_messages_alert(struct tls_conn *c, const uint8_t *p, size_t len)
{
	enum { WARNING = 1, FATAL = 2 };
	if (len != 2) {
		tls_conn_fail(c, TLS_BAD_LENGTH);
		return;
	}
	uint8_t level = p[0], alert = p[1];
	if (alert == TLS_CLOSE_NOTIFY) {
		tls_count(c, TLS_C_closes_in);
		c->ended = true;
		c->events->on_eof(c, c->user);
	} else if (c->version == TLS_1_3) {
		if (alert == TLS_USER_CANCELED)
			on_warning(c);
		else
			on_fatal(c, alert);
	} else if (level == WARNING) {
		on_warning(c);
	} else if (level == FATAL) {
		on_fatal(c, alert);
	} else {
		tls_conn_fail(c, TLS_BAD_VALUE);
	}
}
