// SPDX-License-Identifier: Apache-2.0
#include "tlshs/session.h"

#include "lb/base/min.h"
#include "tlshs/hkdf.h"
#include "tlshs/impl.h"
#include "tlshs/link.h"
#include "tlshs/session_der.h"
#include "tlshs/sessions.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_DER (TLSHS_MAX_TICKET + 1024) // of 1.2, with its ticket

struct tlshs_promise {
	struct tlshs_session *session; // owned: without secret and ticket, with a counted context
	uint8_t hash; // enum tls_hash
	uint8_t secret[TLS_MAX_SECRET]; // resumption_master_secret (RFC 8446 7.1)
};

static bool may_resume(const struct tlshs_handshake *h)
{
	return h->peer && h->context->max_sessions;
}

static struct tlshs_origin origin_of(const struct tlshs_handshake *h)
{
	struct tlshs_origin o = {h->context, h->peer, h->judged_until_s};
	o.name_len = h->result.server_name_len;
	memcpy(o.name, h->result.server_name, o.name_len);
	return o;
}

// NULL = out of memory, or `der` is not what the library encodes.
static struct tlshs_session *session_new(const struct tlshs_origin *o, struct str peer,
	struct str der, const struct tlshs_der_field *fields, size_t n)
{
	size_t room = tlshs_der_room(der, fields, n);
	uint8_t *to = malloc(room); // for a certificate as well, which the session does without
	size_t len = to ? tlshs_der_set(der, fields, n, to) : 0;
	struct tlshs_session *s = len ? calloc(1, sizeof(*s) + peer.len + len) : NULL;
	if (s) {
		s->origin = *o;
		s->until_s = o->until_s;
		s->peer_len = peer.len;
		s->der_len = len;
		memcpy(s->bytes, peer.p, peer.len);
		memcpy(s->bytes + peer.len, to, len);
	}
	if (to)
		OPENSSL_cleanse(to, room);
	free(to);
	return s;
}

void tlshs_session_free(struct tlshs_session *s)
{
	if (!s)
		return;
	OPENSSL_cleanse(s->bytes, s->peer_len + s->der_len);
	free(s);
}

static struct str peer_of(const struct tlshs_session *s)
{
	return (struct str){(const char *)s->bytes, s->peer_len};
}

static struct str der_of(const struct tlshs_session *s)
{
	return (struct str){(const char *)s->bytes + s->peer_len, s->der_len};
}

// As it stands when the handshake is over.
static struct tlshs_session *session_of(const struct tlshs_handshake *h)
{
	const struct tlshs_origin o = origin_of(h);
	const struct tlshs_peer *p = &h->result.peer;
	struct str peer = {(const char *)p, tlshs_peer_size(p)};
	uint8_t *der = NULL;
	int len = i2d_SSL_SESSION(SSL_get_session(h->ssl), &der);
	if (len <= 0)
		return NULL;
	struct tlshs_session *s =
		session_new(&o, peer, (struct str){(const char *)der, (size_t)len}, NULL, 0);
	OPENSSL_clear_free(der, (size_t)len);
	return s;
}

// RFC 7627 5.3: without extended_master_secret another connection might have the same secret. That
// no time is told means that there is none (RFC 5077 3.3).
static void keep_12(struct tlshs_handshake *h)
{
	const SSL_SESSION *x = SSL_get_session(h->ssl);
	if (SSL_get_extms_support(h->ssl) != 1 || !SSL_SESSION_is_resumable(x))
		return;
	struct tlshs_session *s = session_of(h);
	if (!s || s->der_len > MAX_DER) {
		tlshs_session_free(s);
		tlshs_sessions_count(TLSHS_SESSIONS_tickets_unfit);
		return;
	}
	unsigned long hint = SSL_SESSION_get_ticket_lifetime_hint(x);
	int64_t end_s = (int64_t)SSL_SESSION_get_time(x) + (int64_t)hint;
	if (hint && end_s < s->until_s)
		s->until_s = end_s;
	tlshs_sessions_put(s);
}

static void promise(struct tlshs_handshake *h)
{
	struct tlshs_promise *p = calloc(1, sizeof(*p));
	struct tlshs_session *s = p ? session_of(h) : NULL;
	if (!s) {
		free(p);
		return;
	}
	tlshs_context_get(h->context);
	p->session = s;
	p->hash = h->result.secrets.hash;
	memcpy(p->secret, h->secrets[TLSHS_RESUMPTION], sizeof(p->secret));
	h->promise = p;
}

void tlshs_session_keep(struct tlshs_handshake *h)
{
	if (h->offered && !h->result.resumed)
		tlshs_sessions_count(TLSHS_SESSIONS_declined);
	if (!may_resume(h) || h->judged_until_s <= (int64_t)time(NULL))
		return;
	if (h->result.secrets.version == TLS_1_3)
		promise(h);
	else
		keep_12(h);
}

void tlshs_session_failed(const struct tlshs_handshake *h)
{
	if (!h->offered)
		return;
	const struct tlshs_origin o = origin_of(h);
	tlshs_sessions_forget(&o, time(NULL));
}

// Who the server is was found out when it showed its certificate; its names are judged once more.
static bool offer(struct tlshs_handshake *h, const struct tlshs_session *s)
{
	struct str der = der_of(s);
	const uint8_t *p = (const uint8_t *)der.p;
	struct tlshs_peer *peer = &h->result.peer;
	memcpy(peer, s->bytes, s->peer_len);
	h->judged_until_s = s->origin.until_s;
	SSL_SESSION *x = NULL;
	bool ok = (!tlshs_verifies(h->context) || tlshs_verify_names(h, peer)) &&
	          (x = d2i_SSL_SESSION(NULL, &p, (long)der.len)) && SSL_set_session(h->ssl, x) == 1;
	SSL_SESSION_free(x);
	peer->present &= ok;
	return ok;
}

void tlshs_session_offer(struct tlshs_handshake *h)
{
	if (!may_resume(h))
		return;
	const struct tlshs_origin o = origin_of(h);
	struct tlshs_session *s = tlshs_sessions_take(&o, time(NULL));
	h->offered = s && offer(h, s);
	if (h->offered)
		tlshs_sessions_count(TLSHS_SESSIONS_offered);
	tlshs_session_free(s);
}

void tlshs_promise_free(struct tlshs_promise *p)
{
	if (!p)
		return;
	struct tlshs_context *c = p->session->origin.context;
	tlshs_session_free(p->session);
	tlshs_context_put(c);
	OPENSSL_cleanse(p, sizeof(*p));
	free(p);
}

struct ticket {
	uint64_t lifetime_s, age_add;
	struct str nonce, ticket;
};

static bool read_number(struct str *rest, unsigned n, uint64_t *ret)
{
	if (rest->len < n)
		return false;
	*ret = 0;
	for (unsigned i = 0; i < n; i++)
		*ret = *ret << 8 | (uint8_t)rest->p[i];
	*rest = (struct str){rest->p + n, rest->len - n};
	return true;
}

// With a length of n bytes before it.
static bool read_bytes(struct str *rest, unsigned n, struct str *ret)
{
	uint64_t len;
	if (!read_number(rest, n, &len) || rest->len < len)
		return false;
	*ret = (struct str){rest->p, (size_t)len};
	*rest = (struct str){rest->p + len, rest->len - (size_t)len};
	return true;
}

// RFC 8446 4.6.1. Its extensions speak of early data, which we have none of.
static bool read_ticket(struct str body, struct ticket *t)
{
	struct str extensions;
	return read_number(&body, 4, &t->lifetime_s) && read_number(&body, 4, &t->age_add) &&
	       read_bytes(&body, 1, &t->nonce) && read_bytes(&body, 2, &t->ticket) &&
	       read_bytes(&body, 2, &extensions) && !body.len && t->ticket.len && t->lifetime_s &&
	       t->nonce.len <= TLS_MAX_SECRET;
}

struct tlshs_session *tlshs_promise_redeem(
	const struct tlshs_promise *p, const uint8_t *body, size_t len, int64_t now_s)
{
	struct ticket t;
	uint8_t secret[TLS_MAX_SECRET];
	uint8_t id[32]; // with none the library does not begin anew when the server declines
	size_t secret_len = tlshs_hkdf_hash_len(p->hash);
	if (len > TLSHS_MAX_TICKET || !read_ticket((struct str){(const char *)body, len}, &t))
		return NULL;
	tlshs_hkdf_expand_label(p->hash, p->secret, STR("resumption"), t.nonce, secret, secret_len);
	tlshs_hkdf_hash(TLS_SHA256, t.ticket.p, t.ticket.len, id);
	const struct tlshs_der_field fields[] = {
		{TLSHS_DER_ID, {(const char *)id, sizeof(id)}, 0},
		{TLSHS_DER_SECRET, {(const char *)secret, secret_len}, 0},
		{TLSHS_DER_TIME, {0}, (uint64_t)now_s},
		{TLSHS_DER_LIFETIME, {0}, t.lifetime_s},
		{TLSHS_DER_TICKET, t.ticket, 0},
		{TLSHS_DER_AGE_ADD, {0}, t.age_add},
	};
	struct tlshs_session *s = session_new(&p->session->origin, peer_of(p->session),
		der_of(p->session), fields, sizeof(fields) / sizeof(fields[0]));
	OPENSSL_cleanse(secret, sizeof(secret));
	if (s)
		s->until_s = (int64_t)min_u64((uint64_t)s->until_s, (uint64_t)now_s + t.lifetime_s);
	return s;
}
