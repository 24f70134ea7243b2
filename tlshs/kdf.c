// SPDX-License-Identifier: Apache-2.0
// TLS13-KDF as the TLS library asks providers for it: the key schedule of TLS 1.3 (RFC 8446 7.1),
// some twenty secrets a handshake. The library's own fetches digest and HMAC anew for each. And it
// is where traffic secrets pass by: the library's key log would tell them in hex, all five of them,
// where two are wanted.
// Thread: any; each hears what it asks for itself.
#include "tlshs/hkdf.h"
#include "tlshs/impl.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <string.h>

struct question {
	enum tls_hash hash;
	bool has_hash;
	int mode;
	struct str key, salt, prefix, label, data;
};

static _Thread_local tlshs_on_secret *on_secret;
static _Thread_local void *on_secrets_user;

void tlshs_kdf_listen(tlshs_on_secret *f, void *user)
{
	on_secret = f;
	on_secrets_user = user;
}

// Nothing is kept between calls: all that is asked comes with the call.
static void *new_context(void *provider)
{
	static char context;
	return &context;
}

static void free_context(void *context)
{
}

static bool read_hash(struct question *q, const OSSL_PARAM *p)
{
	static const struct {
		struct str name;
		enum tls_hash hash;
	} names[] = {{STR("SHA2-256"), TLS_SHA256}, {STR("SHA256"), TLS_SHA256},
		{STR("SHA2-384"), TLS_SHA384}, {STR("SHA384"), TLS_SHA384}};
	if (p->data_type != OSSL_PARAM_UTF8_STRING || !p->data)
		return false;
	struct str name = str_from(p->data);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq_fold(name, names[i].name)) {
			q->hash = names[i].hash;
			return q->has_hash = true;
		}
	return false;
}

static bool read_one(struct question *q, const OSSL_PARAM *p)
{
	const struct {
		const char *name;
		struct str *to;
	} texts[] = {{OSSL_KDF_PARAM_KEY, &q->key}, {OSSL_KDF_PARAM_SALT, &q->salt},
		{OSSL_KDF_PARAM_PREFIX, &q->prefix}, {OSSL_KDF_PARAM_LABEL, &q->label},
		{OSSL_KDF_PARAM_DATA, &q->data}};
	if (strcmp(p->key, OSSL_KDF_PARAM_DIGEST) == 0)
		return read_hash(q, p);
	if (strcmp(p->key, OSSL_KDF_PARAM_MODE) == 0)
		return OSSL_PARAM_get_int(p, &q->mode) == 1;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(p->key, texts[i].name) == 0) {
			*texts[i].to = (struct str){p->data, p->data_size};
			return p->data_type == OSSL_PARAM_OCTET_STRING;
		}
	return true; // properties of a digest's
}

// The next secret of the schedule, of the one before (the salt) and what is new (the key).
static bool extract(const struct question *q, uint8_t *ret, size_t len)
{
	static const uint8_t zeros[TLS_MAX_SECRET];
	uint8_t salt[TLS_MAX_SECRET] = {0}, nothing[TLS_MAX_SECRET];
	size_t hash_len = tlshs_hkdf_hash_len(q->hash);
	if (len != hash_len || (q->salt.p && q->salt.len != hash_len) ||
		q->label.len > TLSHS_HKDF_MAX_LABEL)
		return false;
	if (q->salt.p) {
		tlshs_hkdf_hash(q->hash, "", 0, nothing);
		tlshs_hkdf_expand_label(q->hash, (const uint8_t *)q->salt.p, q->label,
			(struct str){(const char *)nothing, hash_len}, salt, hash_len);
	}
	tlshs_hkdf_extract(q->hash, salt,
		q->key.p ? q->key : (struct str){(const char *)zeros, hash_len}, ret);
	OPENSSL_cleanse(salt, sizeof(salt));
	return true;
}

static bool expand(const struct question *q, uint8_t *ret, size_t len)
{
	size_t hash_len = tlshs_hkdf_hash_len(q->hash);
	if (len > hash_len || q->key.len != hash_len || q->label.len > TLSHS_HKDF_MAX_LABEL ||
		q->data.len > TLS_MAX_SECRET)
		return false;
	tlshs_hkdf_expand_label(q->hash, (const uint8_t *)q->key.p, q->label, q->data, ret, len);
	if (on_secret && len == hash_len)
		on_secret(on_secrets_user, q->label, ret, len);
	return true;
}

static int derive(void *context, unsigned char *ret, size_t len, const OSSL_PARAM params[])
{
	struct question q = {.mode = -1};
	for (const OSSL_PARAM *p = params; p && p->key; p++)
		if (!read_one(&q, p))
			return 0;
	if (!q.has_hash || !str_eq(q.prefix, STR("tls13 ")))
		return 0;
	return q.mode == EVP_KDF_HKDF_MODE_EXTRACT_ONLY  ? extract(&q, ret, len)
	       : q.mode == EVP_KDF_HKDF_MODE_EXPAND_ONLY ? expand(&q, ret, len)
	                                                 : false;
}

static const OSSL_DISPATCH tls13_kdf[] = {
	{OSSL_FUNC_KDF_NEWCTX, (void (*)(void))new_context},
	{OSSL_FUNC_KDF_FREECTX, (void (*)(void))free_context},
	{OSSL_FUNC_KDF_DERIVE, (void (*)(void))derive},
	{0, NULL},
};

const OSSL_ALGORITHM tlshs_kdfs[] = {
	{OSSL_KDF_NAME_TLS1_3_KDF, "provider=" TLSHS_PROVIDER, tls13_kdf, NULL},
	{NULL, NULL, NULL, NULL},
};
