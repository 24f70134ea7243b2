// SPDX-License-Identifier: Apache-2.0
#include "tlshs/handshake.h"

#include "tlshs/impl.h"
#include "tlshs/session.h"

#include <openssl/err.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What a ClientHello may be on the wire: it may lie in more than one record.
#define MAX_HELLO_WIRE (TLSHS_MAX_HELLO + 64)

// The type of 1.2's is in the head; that of 1.3's is within, and the head says data.
static void on_read(struct tlshs_handshake *h, int type, const uint8_t *p)
{
	bool has_type = type == SSL3_RT_HEADER || type == SSL3_RT_INNER_CONTENT_TYPE;
	if (h->ended && has_type && *p != SSL3_RT_APPLICATION_DATA)
		tlshs_records_count(h);
}

// RFC 8446 4.1.3: a ServerHello that asks for another ClientHello.
static bool is_retry(const uint8_t *p, size_t len)
{
	static const uint8_t random[] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d,
		0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e,
		0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};
	return len >= 6 + sizeof(random) && *p == SSL3_MT_SERVER_HELLO &&
	       memcmp(p + 6, random, sizeof(random)) == 0;
}

static void on_written(struct tlshs_handshake *h, const uint8_t *p, size_t len)
{
	if (is_retry(p, len)) {
		h->hello_seen = false;
		h->hello_at = h->n_fed - BIO_ctrl_pending(h->in);
	} else if (len && *p == SSL3_MT_FINISHED) {
		h->n_written = 0;
		tlshs_secrets_log_12(h); // the peer has not been told of it
	}
}

// Counts the records behind our Finished, which are under the keys that we hand on: tickets.
static void on_message(
	int writes, int version, int type, const void *p, size_t len, SSL *ssl, void *handshake)
{
	struct tlshs_handshake *h = handshake;
	if (!writes) {
		on_read(h, type, p);
		return;
	}
	if (type == SSL3_RT_HEADER)
		h->n_written++;
	else if (type == SSL3_RT_HANDSHAKE)
		on_written(h, p, len);
}

static void end(struct tlshs_handshake *h, enum tlshs_outcome outcome, const char *why)
{
	h->ended = true;
	h->outcome = outcome;
	if (!h->why[0])
		snprintf(h->why, sizeof(h->why), "%s", why);
	tlshs_secrets_log_12(h);
	if (outcome != TLSHS_ok)
		tlshs_session_failed(h);
}

static enum tlshs_outcome outcome_of(int reason)
{
	switch (reason) {
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
	case SSL_R_VERSION_TOO_HIGH:
	case SSL_R_WRONG_SSL_VERSION:
		return TLSHS_version;
	case SSL_R_INAPPROPRIATE_FALLBACK:
		return TLSHS_fallback;
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_NO_SHARED_GROUPS:
	case SSL_R_NO_SUITABLE_GROUPS:
	case SSL_R_NO_SUITABLE_KEY_SHARE:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
		return TLSHS_cipher;
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		return TLSHS_no_peer_certificate;
	case SSL_R_UNEXPECTED_MESSAGE:
	case SSL_R_UNEXPECTED_RECORD:
	case SSL_R_APP_DATA_IN_HANDSHAKE:
		return TLSHS_unexpected_message;
	case SSL_R_DECRYPTION_FAILED:
	case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
	case SSL_R_DIGEST_CHECK_FAILED:
		return TLSHS_decryption;
	case SSL_R_BAD_SIGNATURE:
	case SSL_R_WRONG_SIGNATURE_TYPE:
		return TLSHS_signature;
	case SSL_R_BAD_ECPOINT:
	case SSL_R_BAD_KEY_SHARE:
	case SSL_R_WRONG_CURVE:
		return TLSHS_key_exchange;
	case SSL_R_EXCESSIVE_MESSAGE_SIZE:
		return TLSHS_flight_too_large;
	case ERR_R_MALLOC_FAILURE:
		return TLSHS_no_memory;
	case ERR_R_INTERNAL_ERROR:
		return TLSHS_internal;
	default:
		return TLSHS_malformed;
	}
}

// What the peer has against us, by its alert (RFC 8446 6.2).
static enum tlshs_outcome outcome_of_alert(int alert)
{
	switch (alert) {
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_REVOKED:
	case SSL_AD_CERTIFICATE_EXPIRED:
	case SSL_AD_CERTIFICATE_UNKNOWN:
	case SSL_AD_UNKNOWN_CA:
	case SSL_AD_CERTIFICATE_REQUIRED:
		return TLSHS_peer_alert_certificate;
	case SSL_AD_NO_APPLICATION_PROTOCOL:
		return TLSHS_peer_alert_protocol;
	case SSL_AD_PROTOCOL_VERSION:
		return TLSHS_peer_alert_version;
	default:
		return TLSHS_peer_alert;
	}
}

static void fail(struct tlshs_handshake *h, int error)
{
	unsigned long e = ERR_peek_error();
	int reason = ERR_GET_REASON(e);
	const char *text = e ? ERR_reason_error_string(e) : NULL;
	if (h->refused != TLSHS_ok)
		end(h, h->refused, tlshs_outcome_name(h->refused));
	else if (error == SSL_ERROR_ZERO_RETURN)
		end(h, TLSHS_peer_closed, "close notify");
	else if (ERR_GET_LIB(e) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET &&
		 reason < SSL_AD_REASON_OFFSET + 256) // above: errors without a reason of its own
		end(h, outcome_of_alert(reason - SSL_AD_REASON_OFFSET),
			SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
	else
		end(h, outcome_of(reason), text ? text : "unknown error");
}

// What was agreed; earlier 3.0s of the library let a server choose what was not offered.
static bool take_alpn(struct tlshs_handshake *h)
{
	const unsigned char *alpn;
	unsigned len;
	SSL_get0_alpn_selected(h->ssl, &alpn, &len);
	const struct tlshs_context *c = h->context;
	bool found = len == 0;
	for (uint32_t i = 0; i < c->alpn_len && !found; i += 1u + c->alpn[i])
		found = c->alpn[i] == len && memcmp(c->alpn + i + 1, alpn, len) == 0;
	if (!found)
		return false;
	h->result.alpn_len = (uint8_t)len;
	if (len)
		memcpy(h->result.alpn, alpn, len);
	return true;
}

static void succeed(struct tlshs_handshake *h)
{
	struct tlshs_result *r = &h->result;
	r->resumed = SSL_session_reused(h->ssl);
	r->own_uris = h->context->own_uris;
	X509 *x = SSL_get0_peer_certificate(h->ssl);
	if (r->resumed && x && tlshs_verifies(h->context))
		tlshs_peer_read(&r->peer, x);
	if (!take_alpn(h))
		end(h, TLSHS_malformed, "the server chose a protocol that was not offered");
	else if (SSL_has_pending(h->ssl))
		end(h, TLSHS_malformed, "more than Finished in its record");
	else if (!tlshs_secrets_take(h, &r->secrets))
		end(h, TLSHS_internal, "no secrets");
	else
		end(h, TLSHS_ok, "");
	if (h->outcome == TLSHS_ok && h->context->role == TLSHS_CLIENT)
		tlshs_session_keep(h);
}

static void step(struct tlshs_handshake *h)
{
	ERR_clear_error();
	tlshs_kdf_listen(tlshs_secrets_on_derived, h);
	int is = SSL_do_handshake(h->ssl);
	tlshs_kdf_listen(NULL, NULL);
	if (is == 1) {
		succeed(h);
	} else {
		int error = SSL_get_error(h->ssl, is);
		if (error != SSL_ERROR_WANT_READ)
			fail(h, error);
	}
	ERR_clear_error();
}

struct tlshs_handshake *tlshs_handshake_new(
	struct tlshs_context *c, struct str server_name, uint64_t peer)
{
	struct tlshs_handshake *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->context = tlshs_context_get(c);
	h->peer = peer;
	h->ssl = SSL_new(c->ssl);
	h->in = BIO_new(BIO_s_mem());
	h->out = BIO_new(BIO_s_mem());
	if (!h->ssl || !h->in || !h->out || server_name.len > TLSHS_MAX_NAME)
		goto err;
	SSL_set_app_data(h->ssl, h);
	SSL_set_msg_callback(h->ssl, on_message);
	SSL_set_msg_callback_arg(h->ssl, h);
	SSL_set_quiet_shutdown(h->ssl, 1);
	if (c->role == TLSHS_CLIENT && server_name.len) {
		memcpy(h->result.server_name, server_name.p, server_name.len);
		h->result.server_name_len = (uint8_t)server_name.len;
		char name[TLSHS_MAX_NAME + 1] = {0};
		memcpy(name, server_name.p, server_name.len);
		if (SSL_set_tlsext_host_name(h->ssl, name) != 1)
			goto err;
	}
	SSL_set_bio(h->ssl, h->in, h->out);
	if (c->role == TLSHS_SERVER) {
		SSL_set_accept_state(h->ssl);
	} else {
		SSL_set_connect_state(h->ssl);
		tlshs_session_offer(h);
		step(h);
	}
	return h;
err:
	BIO_free(h->in);
	BIO_free(h->out);
	SSL_free(h->ssl);
	tlshs_context_put(h->context);
	free(h);
	return NULL;
}

void tlshs_handshake_log_keys(struct tlshs_handshake *h, struct tlshs_keylog *keys)
{
	h->keys = keys;
}

void tlshs_handshake_free(struct tlshs_handshake *h)
{
	if (!h)
		return;
	if (!h->ended) // the worker has no use for it any more: its connection was reset, or late
		tlshs_session_failed(h);
	SSL_free(h->ssl); // with both BIOs
	tlshs_promise_free(h->promise);
	tlshs_context_put(h->context);
	OPENSSL_cleanse(h, sizeof(*h));
	free(h);
}

// The library would gather a ClientHello of 128 KiB. Nothing is encrypted yet, and who waits for
// our answer has nothing more to say, since we take no early data.
static void refuse_hello(struct tlshs_handshake *h)
{
	static const uint8_t alert[] = {
		SSL3_RT_ALERT, 3, 3, 0, 2, SSL3_AL_FATAL, SSL_AD_ILLEGAL_PARAMETER};
	BIO_write(h->out, alert, sizeof(alert));
	end(h, TLSHS_hello_too_large, "ClientHello of more than 16 KiB");
}

void tlshs_handshake_gather(struct tlshs_handshake *h, const uint8_t *p, size_t len)
{
	if (h->ended && h->outcome != TLSHS_ok)
		return;
	h->n_fed += h->ended ? 0 : len;
	if (h->context->role == TLSHS_SERVER && !h->hello_seen &&
		h->n_fed - h->hello_at > MAX_HELLO_WIRE)
		refuse_hello(h);
	else if (len && BIO_write(h->in, p, (int)len) != (int)len)
		end(h, TLSHS_no_memory, "no memory");
}

void tlshs_handshake_run(struct tlshs_handshake *h)
{
	if (h->ended)
		return;
	step(h);
	if (!h->ended && h->n_fed >= TLSHS_MAX_FLIGHT)
		end(h, TLSHS_flight_too_large, "more than 128 KiB");
}

bool tlshs_handshake_feed(struct tlshs_handshake *h, const uint8_t *p, size_t len)
{
	tlshs_handshake_gather(h, p, len);
	tlshs_handshake_run(h);
	return h->ended;
}

static size_t drain(BIO *bio, uint8_t *to, size_t room)
{
	int n = room ? BIO_read(bio, to, (int)room) : 0;
	return n > 0 ? (size_t)n : 0;
}

size_t tlshs_handshake_drain(struct tlshs_handshake *h, uint8_t *to, size_t room)
{
	return drain(h->out, to, room);
}

struct tlshs_promise *tlshs_handshake_take_promise(struct tlshs_handshake *h)
{
	struct tlshs_promise *p = h->promise;
	h->promise = NULL;
	return p;
}

size_t tlshs_handshake_n_rest(const struct tlshs_handshake *h)
{
	return h->ended && h->outcome == TLSHS_ok ? BIO_ctrl_pending(h->in) : 0;
}

size_t tlshs_handshake_drain_rest(struct tlshs_handshake *h, uint8_t *to, size_t room)
{
	return tlshs_handshake_n_rest(h) ? drain(h->in, to, room) : 0;
}

void tlshs_handshake_stop(struct tlshs_handshake *h, enum tlshs_outcome outcome)
{
	if (!h->ended)
		end(h, outcome, tlshs_outcome_name(outcome));
}

bool tlshs_handshake_ended(const struct tlshs_handshake *h)
{
	return h->ended;
}

enum tlshs_outcome tlshs_handshake_outcome(const struct tlshs_handshake *h)
{
	return h->outcome;
}

const char *tlshs_handshake_why(const struct tlshs_handshake *h)
{
	return h->why;
}

void tlshs_handshake_take(struct tlshs_handshake *h, struct tlshs_result *ret)
{
	const struct tlshs_peer *p = &h->result.peer; // the most of it; mostly there is none
	memcpy(ret, &h->result, p->present ? sizeof(*ret) : offsetof(struct tlshs_result, peer));
	ret->peer.present = p->present;
	tlshs_result_wipe(&h->result);
}
