// SPDX-License-Identifier: Apache-2.0
// CAs that were parsed: contexts whose files have the same bytes share them, since a system's some
// 140 take 300 ms. They are there as long as a context is. Sharing needs no copy: X509 is immutable
// but for what the library caches in it behind locks of its own.
#include "tlshs/impl.h"

#include <openssl/evp.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of what follows, and of all refs
static struct tlshs_cas *all;

// Counted. NULL = there are none of that digest.
static struct tlshs_cas *find(const uint8_t digest[TLSHS_CAS_DIGEST])
{
	struct tlshs_cas *c = all;
	while (c && memcmp(c->digest, digest, TLSHS_CAS_DIGEST) != 0)
		c = c->next;
	if (c)
		c->refs++;
	return c;
}

static void cas_free(struct tlshs_cas *c)
{
	sk_X509_pop_free(c->list, X509_free);
	free(c);
}

static struct tlshs_cas *parse(struct str pem, struct lb_err *err)
{
	struct tlshs_cas *c = calloc(1, sizeof(*c));
	if (!c) {
		lb_err_set(err, "no memory");
		return NULL;
	}
	c->refs = 1;
	c->list = tlshs_pem_certificates(pem, err);
	if (c->list)
		return c;
	free(c);
	return NULL;
}

// Somebody may have been faster.
static struct tlshs_cas *keep(struct tlshs_cas *c)
{
	pthread_mutex_lock(&lock);
	struct tlshs_cas *earlier = find(c->digest);
	if (!earlier) {
		c->next = all;
		all = c;
	}
	pthread_mutex_unlock(&lock);
	if (!earlier)
		return c;
	cas_free(c);
	return earlier;
}

struct tlshs_cas *tlshs_cas_take(struct str pem, struct lb_err *err)
{
	uint8_t digest[TLSHS_CAS_DIGEST];
	if (EVP_Digest(pem.p, pem.len, digest, NULL, EVP_sha256(), NULL) != 1) {
		lb_err_set(err, "no memory");
		return NULL;
	}
	pthread_mutex_lock(&lock);
	struct tlshs_cas *c = find(digest);
	pthread_mutex_unlock(&lock);
	if (c)
		return c;
	c = parse(pem, err);
	if (!c)
		return NULL;
	memcpy(c->digest, digest, sizeof(digest));
	return keep(c);
}

void tlshs_cas_put(struct tlshs_cas *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&lock);
	bool is_last = --c->refs == 0;
	for (struct tlshs_cas **at = &all; is_last && *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	if (is_last)
		cas_free(c);
}
