// SPDX-License-Identifier: Apache-2.0
// What a server decides by a ClientHello: whether it serves the name (RFC 6066 3), and which
// protocol is spoken (RFC 7301 3.2).
#include "tlshs/impl.h"

#include <stdio.h>
#include <string.h>

// The first name of type host_name; nothing if the extension is not one, which the library finds.
static struct str host_name(const uint8_t *p, size_t len)
{
	if (len < 5 || p[2] != TLSEXT_NAMETYPE_host_name)
		return (struct str){0};
	size_t n = (size_t)p[3] << 8 | p[4];
	if (n > len - 5 || n > TLSHS_MAX_NAME || memchr(p + 5, 0, n))
		return (struct str){0};
	return (struct str){(const char *)p + 5, n};
}

static bool name_fits(struct str pattern, struct str name)
{
	if (!str_starts(pattern, STR("*.")))
		return str_eq_fold(pattern, name);
	struct str suffix = {pattern.p + 1, pattern.len - 1}; // with its dot
	return name.len > suffix.len &&
	       str_eq_fold(suffix, (struct str){name.p + name.len - suffix.len, suffix.len});
}

static bool is_served(const struct tlshs_context *c, struct str name)
{
	if (c->n_server_names == 0 || name.len == 0)
		return true;
	for (uint32_t i = 0; i < c->n_server_names; i++)
		if (name_fits(str_from(c->server_names[i]), name))
			return true;
	return false;
}

// In lower case, as Envoy has it: whoever compares it need not fold it.
static void keep_name(struct tlshs_result *r, struct str name)
{
	r->server_name_len = (uint8_t)name.len;
	for (size_t i = 0; i < name.len; i++)
		r->server_name[i] = str_fold(name.p[i]);
}

static struct str kept_name(const struct tlshs_result *r)
{
	return (struct str){r->server_name, r->server_name_len};
}

// Of a client that was asked to begin again it is the second.
static int on_hello(SSL *ssl, int *alert, void *context)
{
	struct tlshs_handshake *h = tlshs_of(ssl);
	const uint8_t *p;
	size_t len;
	struct str name = {0};
	h->hello_seen = true;
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &p, &len))
		name = host_name(p, len);
	if (h->name_known && !str_eq_fold(name, kept_name(&h->result))) { // RFC 8446 4.1.2
		h->refused = TLSHS_malformed;
		snprintf(h->why, sizeof(h->why), "the second ClientHello asks for another name");
		*alert = SSL_AD_ILLEGAL_PARAMETER;
		return SSL_CLIENT_HELLO_ERROR;
	}
	h->name_known = true;
	keep_name(&h->result, name);
	if (is_served(context, name))
		return SSL_CLIENT_HELLO_SUCCESS;
	h->refused = TLSHS_server_name;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	return SSL_CLIENT_HELLO_ERROR;
}

static int on_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
	const unsigned char *offered, unsigned offered_len, void *context)
{
	const struct tlshs_context *c = context;
	for (uint32_t i = 0; i < c->alpn_len; i += 1u + c->alpn[i])
		for (unsigned k = 0; k < offered_len; k += 1u + offered[k])
			if (offered[k] == c->alpn[i] &&
				memcmp(c->alpn + i + 1, offered + k + 1, offered[k]) == 0) {
				*ret = offered + k + 1;
				*ret_len = offered[k];
				return SSL_TLSEXT_ERR_OK;
			}
	tlshs_of(ssl)->refused = TLSHS_no_application_protocol;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

void tlshs_hello_setup(struct tlshs_context *c)
{
	SSL_CTX_set_client_hello_cb(c->ssl, on_hello, c);
	if (c->alpn_len)
		SSL_CTX_set_alpn_select_cb(c->ssl, on_alpn, c);
}
